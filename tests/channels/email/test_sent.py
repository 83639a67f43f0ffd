"""Copies of what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from channels.email.sent import MOST_BYTES, TRIES, SentCopies
from tests.platforms.adapter_parts import HastyClock, Lines


@dataclass
class Folder:
    """A folder that fails as often as it is told to."""

    mails: dict[str, bytes] = field(default_factory=dict)
    failures: int = 0
    after: bool = False
    """It fails after it has stored a mail, as when the connection breaks before the answer."""
    entered: int = 0

    async def find(self, message_id: str, folder: str) -> object | None:
        assert folder == "Sent"
        return self.mails.get(message_id)

    async def append(self, folder: str, raw: bytes) -> None:
        assert folder == "Sent"
        ident = raw.decode()
        assert ident not in self.mails
        if self.failures and not self.after:
            self.failures -= 1
            raise ConnectionError("the mailbox is away")
        self.mails[ident] = raw
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the answer is lost")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Folder, str]]:
        self.entered += 1
        yield self, "Sent"


async def copied(folder: Folder, *idents: str) -> Lines:
    """Copy some mails, each of which is only its id; the log of it."""
    log = Lines()
    copies = SentCopies(folder.opened, HastyClock(), log)
    for ident in idents:
        copies.add(ident, ident.encode())
    async with asyncio.TaskGroup() as group:
        running = group.create_task(copies.run())
        await copies.finish()
        running.cancel()
    return log


async def test_each_mail_is_copied() -> None:
    """In order."""
    folder = Folder()
    log = await copied(folder, "a", "b")
    assert list(folder.mails) == ["a", "b"]
    assert log.names == []


async def test_a_copy_that_is_there_stays_the_only_one() -> None:
    """After a crash the same mail may be asked for again."""
    folder = Folder({"a": b"a"})
    await copied(folder, "a", "a")
    assert folder.mails == {"a": b"a"}


async def test_an_answer_that_was_lost_makes_no_second_copy() -> None:
    """The next try looks first."""
    folder = Folder(failures=1, after=True)
    await copied(folder, "a")
    assert folder.mails == {"a": b"a"}
    assert folder.entered == 2


async def test_a_mailbox_that_is_away_is_tried_again_and_then_left() -> None:
    """A copy that can't be made is logged; the next one is tried all the same."""
    folder = Folder(failures=TRIES)
    log = await copied(folder, "a", "b")
    assert list(folder.mails) == ["b"]
    assert log.names == ["email.copy_failed"]


async def test_copies_that_wait_take_only_so_much_memory() -> None:
    """A mailbox that is away for long costs no memory without end."""
    log = Lines()
    copies = SentCopies(Folder().opened, HastyClock(), log)
    half = b"x" * (MOST_BYTES // 2)
    for ident in ("a", "b", "c"):
        copies.add(ident, half)
    assert log.names == ["email.copy_failed"]


async def test_what_still_waits_is_copied_at_the_close() -> None:
    """One that was under way when the daemon stopped, and those behind it."""
    folder = Folder()
    begun = asyncio.Event()

    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Folder, str]]:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        yield folder, "Sent"

    copies = SentCopies(opened, HastyClock(), Lines())
    copies.add("a", b"a")
    copies.add("b", b"b")
    running = asyncio.create_task(copies.run())
    await begun.wait()
    running.cancel()
    await asyncio.wait([running])
    await copies.close()
    assert sorted(folder.mails) == ["a", "b"]
    await copies.close()
