"""aioimaplib's protocol, with what it lacks: limits, an end that wakes whoever waits, answers to challenges.

The library's parser and its table of commands are used, not its client: `IMAP4` waits by `asyncio.wait_for`, tells
nobody of a lost connection and cannot be given a STARTTLS. Seen in aioimaplib 2.0.3.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import aioimaplib  # type: ignore[import-untyped]

from channels.email.imap.answers import BEGINS_MAIL, told

# At debug it writes passwords, tokens and mails; at info the lines that it cannot place.
logging.getLogger("aioimaplib.aioimaplib").setLevel(logging.WARNING)

MAX_ANSWER = 8 * 1024 * 1024
"""Bytes that a server may send for one command, unless the command says otherwise: the numbers of a million mails."""
# The parser calls itself once for each line of what it is given, and Python ends that at about 970.
_LINES_AT_ONCE = 100
_COUNT = re.compile(rb"\* (\d{1,10}) (EXISTS|EXPUNGE)$", re.IGNORECASE)


class Protocol(aioimaplib.IMAP4ClientProtocol):  # type: ignore[misc]
    """One connection as the event loop sees it."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.lost = ""
        """Why the connection is of no use any more; empty: it is."""
        self.greeting: asyncio.Future[bytes] = self.loop.create_future()
        self.news = asyncio.Event()
        """Set when there are more mails than before, and when the connection is lost."""
        self.exists = 0
        """How many mails the selected folder has, as far as the server has said."""
        self.room = MAX_ANSWER
        """Bytes that the server may still send."""
        self.replies: list[bytes] = []
        """What it is sent when it asks for more, in this order."""
        self.sign: Callable[[], None] = nothing
        """Called at each sign of life, and when the connection is lost."""
        self.ends_plain = False
        """Whether the command that is out is the last one in plain text (STARTTLS)."""

    def drop(self, why: str) -> None:
        """Give the connection up; whoever waits for it is woken."""
        if not self.lost:
            self.lost = why
        if self.transport is not None:
            self.transport.abort()
        self.news.set()
        self.sign()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection ended."""
        self.drop("the connection ended" if exc is None else f"the connection broke: {type(exc).__name__}")

    def data_received(self, d: bytes) -> None:
        """Take what came, a few lines at once, and no more than there is room for."""
        if self.lost:
            return
        self.room -= len(d)
        if self.room < 0:
            self.drop("the server sends more than any answer may have")
            return
        for piece in _pieces(d, 1 if self.ends_plain else _LINES_AT_ONCE):
            if self.ends_plain and self.pending_sync_command is None:
                self.drop("something came in plain text behind the answer to STARTTLS")
            if self.lost:
                return
            try:
                super().data_received(piece)
            # It fails in many ways; what escaped would be logged by asyncio, with the pending command and its secret.
            except Exception as error:  # noqa: BLE001
                self.drop(f"the server sends what cannot be read ({type(error).__name__})")
        self.sign()

    def _handle_line(self, line: bytes, current_cmd: Any) -> Any:
        count = _COUNT.match(line)
        if count and count[2].upper() == b"EXPUNGE":
            self.exists -= 1
        elif count:
            if int(count[1]) > self.exists:
                self.news.set()
            self.exists = int(count[1])
        if self.has_pending_idle_command():
            # Hints are not kept, so they may go on for as long as they like.
            self.room = MAX_ANSWER
        if line[:5].upper() == b"* BYE":
            self.drop(f"the server says goodbye: {told(line[5:])}")
            return None
        if not self.greeting.done():
            self._greeted(line)
            return None
        return super()._handle_line(line, current_cmd)

    def _greeted(self, line: bytes) -> None:
        """Take the first line. Nothing is asked yet: what the server says it can do may change by TLS and login."""
        word = line[:10].upper().split()[1:2]
        if not line.startswith(b"* ") or word not in ([b"OK"], [b"PREAUTH"]):
            self.drop("this is no IMAP server")
            return
        self.state = aioimaplib.AUTH if word == [b"PREAUTH"] else aioimaplib.NONAUTH
        self.greeting.set_result(line)

    def _continuation(self, line: bytes) -> None:
        command = self.pending_sync_command
        if isinstance(command, Idle):
            command.begun.set()
        elif command is not None:
            command.append_to_resp(line)
            # A refused XOAUTH2 wants an empty line before it says no.
            self.transport.write(self.replies.pop(0) if self.replies else b"")
            self.transport.write(b"\r\n")


class Idle(aioimaplib.IdleCommand):  # type: ignore[misc]
    """IDLE whose pushes are kept nowhere: `Protocol.news` is all that counts."""

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol.new_tag(), None, loop=protocol.loop)
        self.begun = asyncio.Event()
        """Set when the server idles, or has refused to."""

    def flush(self) -> None:
        """Forget the pushes."""
        self.buffer.clear()

    def close(self, line: bytes, result: str) -> None:
        """It ended, or never began."""
        super().close(line, result)
        self.begun.set()


class Fetch(aioimaplib.FetchCommand):  # type: ignore[misc]
    """FETCH that knows whether a mail's answer goes on, where the library reads all lines so far again at each line."""

    def __init__(self, protocol: Protocol, *words: str, prefix: str) -> None:
        super().__init__(protocol.new_tag(), *words, prefix=prefix, loop=protocol.loop)
        self._open = 0

    def append_to_resp(self, line: bytes | bytearray, result: str = "Pending") -> None:
        """Take a line, or a literal."""
        super().append_to_resp(line, result)
        if isinstance(line, bytes):
            begins = BEGINS_MAIL.match(line) is not None
            self._open = (0 if begins else self._open) + line.count(b"(") - line.count(b")")

    def wait_data(self) -> bool:
        """Whether the next line belongs to the same mail."""
        return self._open != 0


def nothing() -> None:
    """Nobody waits."""


def _pieces(data: bytes, lines: int) -> Iterator[bytes]:
    """Cut what came behind each so many lines."""
    start = 0
    while start < len(data):
        end = start
        for _ in range(lines):
            end = data.find(b"\n", end) + 1
            if not end:
                end = len(data)
                break
        yield data[start:end]
        start = end
