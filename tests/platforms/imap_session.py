"""One connection to the IMAP double: commands in their states, and what the server says by itself."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from tests.platforms.imap_grammar import LITERAL, GrammarError, Request, Text, read, text, without_end
from tests.platforms.imap_world import Mailbox, StoredMail, fetched, flags_of

if TYPE_CHECKING:
    from tests.platforms.imap_server import ImapServer

NOT_IN, IN, SELECTED = "not authenticated", "authenticated", "selected"
_EVERYWHERE = frozenset({"CAPABILITY", "NOOP", "LOGOUT", "ID"})
_STATES: Mapping[str, frozenset[str]] = {
    NOT_IN: _EVERYWHERE | {"STARTTLS", "LOGIN", "AUTHENTICATE"},
    IN: _EVERYWHERE | {"SELECT", "EXAMINE", "LIST", "APPEND", "CREATE"},
    SELECTED: _EVERYWHERE
    | {"SELECT", "EXAMINE", "LIST", "APPEND", "CREATE", "IDLE", "UID SEARCH", "UID FETCH", "UID STORE", "UID COPY"}
    | {"UID MOVE", "UID EXPUNGE"},
}
_NEEDS = {"IDLE": "IDLE", "UID MOVE": "MOVE", "UID EXPUNGE": "UIDPLUS", "ID": "ID", "STARTTLS": "STARTTLS"}


class RefusalError(Exception):
    """The answer is NO, with this text."""


class Session:
    """A client's connection."""

    def __init__(self, server: ImapServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer
        self.state = NOT_IN
        self.idling = False
        self.mute = False
        """Whether the other side hears nothing any more, as on a line that is half open."""
        self.introduced = False
        self.over_tls = writer.get_extra_info("ssl_object") is not None
        self.folder: Mailbox | None = None
        self.view: list[StoredMail] = []
        """The mails that the client knows of."""

    @property
    def capabilities(self) -> list[str]:
        """What is offered in this state."""
        server = self.server
        offered = list(server.capabilities)
        if self.state == NOT_IN:
            offered += ["STARTTLS"] if server.context is not None and not self.over_tls else []
            offered += [f"AUTH={each}" for each in server.mechanisms]
            offered += [] if server.passwords_count else ["LOGINDISABLED"]
        return offered

    async def serve(self) -> None:
        """Greet, and answer until one of the two goes."""
        await self.say(self.server.greeting)
        if self.server.greeting.upper().startswith("* BYE"):
            return
        if self.server.greeting.upper().startswith("* PREAUTH"):
            self.state = IN
        while (request := await self._next()) is not None:
            self.server.commands.append(request.name)
            for happen in self.server.before.pop(request.name, []):
                happen()
            self.server.signal.fire()
            if not await self._answer(request):
                return

    async def say(self, line: str | bytes) -> None:
        """Write a line."""
        await self.write((line.encode() if isinstance(line, str) else line) + b"\r\n")

    async def write(self, data: bytes) -> None:
        """Write, unless the line is dead."""
        if not self.mute:
            self.writer.write(data)
            await self.writer.drain()

    def announcements(self) -> bytes:
        """What has changed in the folder since the client heard of it last."""
        if self.folder is None:
            return b""
        lines = [
            b"* %d EXPUNGE\r\n" % (number + 1)
            for number in reversed(range(len(self.view)))
            if self.view[number] not in self.folder.mails
        ]
        kept = [mail for mail in self.view if mail in self.folder.mails]
        if len(self.folder.mails) > len(kept):
            lines.append(b"* %d EXISTS\r\n" % len(self.folder.mails))
        self.view = list(self.folder.mails)
        return b"".join(lines)

    async def announce(self) -> None:
        """Tell a client that idles what has changed."""
        if self.idling and self.server.announces:
            await self.write(self.announcements())

    async def _next(self) -> Request | None:
        """The next command; None: the client has gone, or wrote what no client may write."""
        parts: list[bytes] = []
        try:
            while True:
                line = await self.reader.readline()
                if not line:
                    return None
                parts.append(without_end(line))
                literal = LITERAL.search(parts[-1])
                if literal is None:
                    return read(parts)
                await self.say("+ go on")
                parts.append(await self.reader.readexactly(int(literal[1])))
        except (GrammarError, UnicodeDecodeError) as error:
            self.server.faults.append(f"{error} in {parts!r}")
            await self.say("* BYE this is no command")
            return None

    async def _answer(self, request: Request) -> bool:
        """Answer a command; returns whether there may be another one."""
        scripted = self.server.scripted.get(request.name)
        if scripted:
            answer = scripted.pop(0)
            if answer is None:
                return False
            await self.write(answer.replace(b"TAG", request.tag.encode()))
            return True
        try:
            self._check(request)
            done = await self._handlers[request.name](request)
        except RefusalError as refusal:
            await self.say(f"{request.tag} NO {refusal}")
            return True
        except (GrammarError, ValueError, IndexError, KeyError) as error:
            self.server.faults.append(f"{error!r} at {request}")
            await self.say(f"{request.tag} BAD {error!r}".replace("\r\n", " "))
            return True
        if done is None:
            return False
        changes = self.announcements() if self.server.announces else b""
        injected = self.server.injected if request.name == "STARTTLS" else b""
        await self.write(changes + f"{request.tag} OK {done}\r\n".encode() + injected)
        if request.name == "STARTTLS":
            await self._turn_to_tls()
        return True

    def _check(self, request: Request) -> None:
        if request.name not in _STATES[self.state]:
            raise GrammarError(f"{request.name} while {self.state}")
        needed = _NEEDS.get(request.name)
        if needed is not None and needed not in self.capabilities:
            raise GrammarError(f"{request.name}, which is not offered")

    @property
    def _handlers(self) -> Mapping[str, Callable[[Request], Awaitable[str | None]]]:
        return {
            "CAPABILITY": self._capability,
            "NOOP": self._noop,
            "LOGOUT": self._logout,
            "ID": self._id,
            "STARTTLS": self._starttls,
            "LOGIN": self._login,
            "AUTHENTICATE": self._authenticate,
            "SELECT": self._select,
            "EXAMINE": self._select,
            "LIST": self._list,
            "CREATE": self._create,
            "APPEND": self._append,
            "IDLE": self._idle,
            "UID SEARCH": self._search,
            "UID FETCH": self._fetch,
            "UID STORE": self._store,
            "UID COPY": self._copy,
            "UID MOVE": self._move,
            "UID EXPUNGE": self._expunge,
        }

    # Each returns the text behind OK; None: nothing more is said on this connection.

    async def _capability(self, request: Request) -> str:
        _none(request)
        await self.say(f"* CAPABILITY {' '.join(self.capabilities)}")
        return "done"

    async def _noop(self, request: Request) -> str:
        _none(request)
        return "done"

    async def _logout(self, request: Request) -> None:
        await self.say("* BYE until next time")
        await self.say(f"{request.tag} OK done")

    async def _id(self, request: Request) -> str:
        (pairs,) = request.words
        if not isinstance(pairs, list) or [text(word) for word in pairs[::2]] != ["name", "version"]:
            raise GrammarError("an ID of other things than name and version")
        self.introduced = True
        await self.say('* ID ("name" "double")')
        return "done"

    async def _starttls(self, request: Request) -> str:
        _none(request)
        return "go on"

    async def _turn_to_tls(self) -> None:
        if not self.mute:
            await self.writer.start_tls(self.server.needed_context)
            self.over_tls = True

    async def _login(self, request: Request) -> str:
        user, password = (text(word) for word in request.words)
        return self._let_in(self.server.accounts.get(user) == password)

    async def _authenticate(self, request: Request) -> str:
        mechanism, *initial = request.words
        if mechanism not in self.server.mechanisms:
            raise RefusalError("[CANNOT] no such mechanism")
        if initial and "SASL-IR" not in self.capabilities:
            raise GrammarError("an initial response, which is not offered")
        if not initial:
            await self.say("+ ")
        shown = b64decode(
            text(initial[0]) if initial else (await self.reader.readline()).strip(), validate=True
        ).decode()
        if mechanism == "PLAIN":
            _, user, password = shown.split("\0")
            return self._let_in(self.server.accounts.get(user) == password)
        user, bearer, *end = shown.split("\1")
        right = user.removeprefix("user=") in self.server.accounts and end == ["", ""]
        if right and bearer.removeprefix("auth=Bearer ") in self.server.tokens:
            return self._let_in(right)
        await self.say("+ eyJzdGF0dXMiOiI0MDEiLCJzY2hlbWVzIjoiYmVhcmVyIn0=")
        if await self.reader.readline() != b"\r\n":
            raise GrammarError("a challenge that says no was not answered by an empty line")
        return self._let_in(right=False)

    def _let_in(self, right: bool) -> str:  # noqa: FBT001
        if self.server.refusal or not right:
            raise RefusalError(self.server.refusal or "[AUTHENTICATIONFAILED] wrong")
        self.state = IN
        return "welcome"

    async def _select(self, request: Request) -> str:
        (word,) = request.words
        if self.server.wants_id and not self.introduced:
            raise RefusalError("Unsafe Login. Please contact the provider")
        self.state, self.folder = IN, None
        folder = self.server.folder(text(word))
        self.state, self.folder, self.view = SELECTED, folder, list(folder.mails)
        await self.say("* FLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft)")
        await self.say(f"* {len(folder.mails)} EXISTS")
        await self.say("* 0 RECENT")
        if folder.validity:
            await self.say(f"* OK [UIDVALIDITY {folder.validity}] valid")
        await self.say(f"* OK [UIDNEXT {folder.next_uid}] next")
        return "[READ-ONLY] examined" if request.name == "EXAMINE" else "[READ-WRITE] selected"

    async def _list(self, request: Request) -> str:
        *selection, reference, pattern = request.words
        if (text(reference), text(pattern)) != ("", "*") or selection not in ([], [["SPECIAL-USE"]]):
            raise GrammarError("a LIST of another kind")
        for folder in self.server.folders.values():
            if folder.attributes or not selection:
                await self.write(b"* LIST (%s) " % " ".join(folder.attributes).encode())
                await self.say(b'"/" {%d}\r\n%s' % (len(folder.name), folder.name.encode()))
        return "done"

    async def _create(self, request: Request) -> str:
        (word,) = request.words
        if text(word) in self.server.folders:
            raise RefusalError("[ALREADYEXISTS] it is there")
        self.server.add_folder(text(word))
        return "done"

    async def _append(self, request: Request) -> str:
        word, *flags, mail = request.words
        if not isinstance(mail, Text):
            raise GrammarError("a mail that is no literal")
        if b"\n" in mail.value.replace(b"\r\n", b""):
            raise GrammarError("a line of a mail without CRLF")
        folder = self.server.folder(text(word))
        stored = folder.add(mail.value, *(flags_of(flags[0]) if flags else ()))
        self.server.changed(folder)
        return f"[APPENDUID {folder.validity} {stored.uid}] done" if "UIDPLUS" in self.capabilities else "done"

    async def _idle(self, request: Request) -> str:
        _none(request)
        await self.say("+ idling")
        self.idling = True
        await self.announce()
        self.server.signal.fire()
        try:
            line = await self.reader.readline()
        finally:
            self.idling = False
        if not line:
            raise ConnectionResetError
        if line.upper() != b"DONE\r\n":
            raise GrammarError(f"{line!r} while it idles")
        for happen in self.server.before.pop("DONE", []):
            happen()
        return "idled"

    async def _search(self, request: Request) -> str:
        found = self._selected.search(list(request.words))
        await self.say(" ".join(["* SEARCH", *(str(mail.uid) for mail in found)]))
        return "searched"

    async def _fetch(self, request: Request) -> str:
        word, items = request.words
        folder = self._selected
        if not isinstance(items, list):
            raise GrammarError("no list of items")
        answer = bytearray()
        wanted = {mail.uid for mail in folder.by_uids(word)}
        for number, mail in enumerate(folder.mails, 1):
            if mail.uid not in wanted:
                continue
            answer += b"* %d FETCH (%s)\r\n" % (number, b" ".join(fetched(mail, items)))
        if self.server.cut_fetches_after is not None:
            await self.write(bytes(answer[: self.server.cut_fetches_after]))
            self.writer.transport.abort()
            raise ConnectionResetError
        # In as few segments as it takes.
        await self.write(bytes(answer))
        return "fetched"

    async def _store(self, request: Request) -> str:
        word, how, flags = request.words
        if how != "+FLAGS.SILENT":
            raise GrammarError("a change of flags that is not known")
        for mail in self._selected.by_uids(word):
            mail.flags |= flags_of(flags)
        self.server.signal.fire()
        return "stored"

    async def _copy(self, request: Request) -> str:
        word, name = request.words
        target = self.server.folder(text(name))
        for mail in self._selected.by_uids(word):
            target.add(mail.raw, *mail.flags)
        self.server.changed(target)
        return "copied"

    async def _move(self, request: Request) -> str:
        done = await self._copy(request)
        gone = self._selected.by_uids(request.words[0])
        self._selected.mails = [mail for mail in self._selected.mails if mail not in gone]
        self.server.changed(self._selected)
        return done

    async def _expunge(self, request: Request) -> str:
        (word,) = request.words
        gone = [mail for mail in self._selected.by_uids(word) if "\\Deleted" in mail.flags]
        self._selected.mails = [mail for mail in self._selected.mails if mail not in gone]
        self.server.changed(self._selected)
        return "gone"

    @property
    def _selected(self) -> Mailbox:
        assert self.folder is not None
        return self.folder


def _none(request: Request) -> None:
    if request.words:
        raise GrammarError("words behind a command that takes none")
