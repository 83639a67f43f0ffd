"""A mailbox by IMAP: what is new in a folder, its mails, and what becomes of them (RFC 3501 and its extensions)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from channels.email.imap.answers import (
    MAX_UID,
    Entry,
    Folder,
    appended_uid,
    entries_of,
    folder_of,
    found_by,
    special_folders,
)
from channels.email.imap.errors import ImapLostError, ImapNoError, ImapRefusedError
from channels.email.imap.line import Endpoint, ImapLine, Patience
from channels.email.imap.names import encode_name, quoted
from channels.email.oauth import xoauth2
from zerobot.core.clock import Clock

SIZES_AT_ONCE = 300
"""Mails a FETCH: one line each, and a command that servers still take (8,000 bytes)."""
HEADERS_AT_ONCE = 50
LONGEST_HEADER = 64 * 1024
"""Bytes of a header that are asked for; more is no header of a mail to people."""
PIECE = 1024 * 1024
"""Bytes of a mail that are asked for at once."""
_ROOM_AN_ENTRY = 1024
# Response codes (RFC 5530) after which the same credentials may do later.
_PASSING = frozenset({"UNAVAILABLE", "LIMIT", "INUSE", "SERVERBUG"})
# Large providers say it in words as well, under no code or `ALERT`.
_PASSING_WORDS = re.compile(r"too many|temporar|try (?:again|later)|\bsystem error", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RawMail:
    """A mail as it is."""

    raw: bytes
    whole: bool
    """Whether this is all of it; else it is longer than what was asked for."""


class Imap:
    """One connection to a mailbox, for one task: a folder stays selected from one call to the next.

    Every call may raise `ImapLostError`: the connection is of no use any more. A call that is cancelled, or to which
    the server says nothing in time, gives it up.
    """

    def __init__(self, line: ImapLine) -> None:
        """Use a line; `connect` is how a connection is made."""
        self._line = line

    @classmethod
    async def connect(cls, endpoint: Endpoint, patience: Patience | None = None) -> Imap:
        """Connect; nobody is logged in yet.

        Raises:
            ImapUntrustedError: The connection would not be as safe as configured.
            ImapLostError: The server cannot be reached, or says goodbye.
            ImapNoError: The server does not even say what it can do.
        """
        return cls(await ImapLine.open(endpoint, patience or Patience()))

    @property
    def can_idle(self) -> bool:
        """Whether the server tells of new mail by itself."""
        return "IDLE" in self._line.capabilities

    async def log_in(self, user: str, password: str) -> None:
        """Log in by password.

        Raises:
            ImapRefusedError: The server does not let us in; see its `code` and `passing`.
        """
        can = self._line.capabilities
        if "AUTH=PLAIN" in can and ("LOGINDISABLED" in can or not (user + password).isascii()):
            # RFC 4616; LOGIN has no word for other characters than ASCII's.
            await self._authenticate("PLAIN", b64encode(f"\0{user}\0{password}".encode()))
        elif "LOGINDISABLED" in can:
            raise ImapRefusedError("the server takes no password over this connection", code="LOGINDISABLED")
        else:
            await self._let_in("LOGIN", quoted(user), quoted(password))

    async def log_in_by_token(self, user: str, token: str) -> None:
        """Log in by an OAuth 2 access token.

        Raises:
            ImapRefusedError: As for a password; `EXPIRED` or `AUTHENTICATIONFAILED` may mean a token that is too old.
        """
        if "AUTH=XOAUTH2" not in self._line.capabilities:
            raise ImapRefusedError("the server takes no access tokens (XOAUTH2)", code="LOGINDISABLED")
        await self._authenticate("XOAUTH2", xoauth2(user, token))

    async def introduce(self, name: str, version: str) -> None:
        """Say who we are (RFC 2971), where the server asks for it: some let nobody read who has not."""
        if "ID" in self._line.capabilities:
            try:
                await self._line.command("ID", f'("name" {quoted(name)} "version" {quoted(version)})')
            except ImapNoError:
                return

    async def select(self, name: str) -> Folder:
        """Select a folder.

        Raises:
            ImapNoError: There is none of this name, or we must not see it; or its mails have no lasting numbers.
        """
        lines = await self._line.command("SELECT", quoted(encode_name(name)))
        self._line.became(selected=True)
        self._line.forget_news()
        folder = folder_of(name, lines)
        if not folder.validity:
            raise ImapNoError("SELECT: the folder has no UIDVALIDITY, so its mails have no lasting numbers")
        return folder

    async def new_uids(self, after: int, *, unseen: bool = False, since: date | None = None) -> list[int]:
        """The UIDs above a number, smallest first.

        Args:
            after: What was seen last; 0: nothing.
            unseen: Only of mails that nobody has read.
            since: Only of mails that came in on this day or later, as the folder says.
        """
        if after >= MAX_UID:
            return []
        # What comes from here on is news, even if it is found right now.
        self._line.forget_news()
        # No CHARSET: these words need none, and some servers refuse it.
        words = (*(("UNSEEN",) if unseen else ()), *(("SINCE", _day(since)) if since is not None else ()))
        found = found_by(await self._line.command("SEARCH", "UID", f"{after + 1}:*", *words, uid=True))
        # The last mail is always in N:*, which is *:N as well (RFC 3501, section 6.4.8).
        return [uid for uid in found if uid > after]

    async def sizes(self, uids: Sequence[int]) -> list[Entry]:
        """Sizes and flags of mails, without bodies; a mail that is gone is left out."""
        return await self._entries(uids, "(UID RFC822.SIZE FLAGS)", SIZES_AT_ONCE, 0)

    async def headers(self, uids: Sequence[int], fields: Sequence[str] = ()) -> list[Entry]:
        """Sizes, flags and headers of mails, at most `LONGEST_HEADER` bytes each; a mail that is gone is left out.

        Args:
            uids: Which ones.
            fields: Only these fields of the header; none: all of it.
        """
        part = f"HEADER.FIELDS ({' '.join(fields)})" if fields else "HEADER"
        items = f"(UID RFC822.SIZE FLAGS BODY.PEEK[{part}]<0.{LONGEST_HEADER}>)"
        return await self._entries(uids, items, HEADERS_AT_ONCE, LONGEST_HEADER)

    async def fetch(self, uid: int, limit: int) -> RawMail | None:
        """A mail, without marking it as read; None: it is gone.

        Args:
            uid: Which one.
            limit: Bytes that are kept of it.
        """
        raw = bytearray()
        while len(raw) <= limit:
            size = min(PIECE, limit + 1 - len(raw))
            entries = await self._entries([uid], f"(UID BODY.PEEK[]<{len(raw)}.{size}>)", 1, size)
            piece = entries[0].body if entries else None
            if piece is None:
                return None
            raw += piece
            if len(piece) < size:
                break
        return RawMail(bytes(raw[:limit]), len(raw) <= limit)

    async def mark_seen(self, uid: int) -> None:
        """Mark a mail as read; one that is gone is no error.

        Raises:
            ImapNoError: We must not.
        """
        await self._line.command("STORE", str(uid), "+FLAGS.SILENT", "(\\Seen)", uid=True)

    async def move(self, uid: int, folder: str) -> None:
        """Move a mail to another folder; one that is gone is no error.

        Where the server cannot move (RFC 6851), it is copied and marked as read and deleted, and deleted if that can be
        done for it alone (RFC 4315): a plain EXPUNGE would take along what others have marked.

        Raises:
            ImapNoError: It cannot be put there; code `TRYCREATE`: there is no such folder.
        """
        can, name = self._line.capabilities, quoted(encode_name(folder))
        if "MOVE" in can:
            await self._line.command("MOVE", str(uid), name, uid=True)
            return
        await self._line.command("COPY", str(uid), name, uid=True)
        await self._line.command("STORE", str(uid), "+FLAGS.SILENT", "(\\Seen \\Deleted)", uid=True)
        if "UIDPLUS" in can:
            await self._line.command("EXPUNGE", str(uid), uid=True)

    async def create(self, folder: str) -> None:
        """Make a folder; one that is there already is no error.

        Raises:
            ImapNoError: It cannot be made.
        """
        try:
            await self._line.command("CREATE", quoted(encode_name(folder)))
        except ImapNoError as error:
            if error.code != "ALREADYEXISTS":
                raise

    async def find(self, message_id: str, folder: str) -> int | None:
        """Look for a mail by its Message-ID; afterwards that folder is the selected one, and read-only.

        Args:
            message_id: With its angle brackets, as it stands in the header.
            folder: Where.

        Returns:
            Its UID, the newest if there are several; None: it is not there.

        Raises:
            ImapNoError: There is no such folder.
        """
        await self._line.command("EXAMINE", quoted(encode_name(folder)))
        self._line.became(selected=True)
        lines = await self._line.command("SEARCH", "HEADER", "Message-ID", quoted(message_id), uid=True)
        # The server looks for it anywhere in the field.
        for entry in reversed(await self.headers(found_by(lines)[-HEADERS_AT_ONCE:], ["MESSAGE-ID"])):
            _, _, value = (entry.body or b"").partition(b":")
            if value.strip() == message_id.encode():
                return entry.uid
        return None

    async def append(self, folder: str, raw: bytes, *, seen: bool = True) -> int | None:
        """Put a mail into a folder.

        Args:
            folder: Where.
            raw: The mail, with CRLF at its lines' ends.
            seen: Whether it counts as read.

        Returns:
            Its UID, where the server tells it (RFC 4315).

        Raises:
            ImapNoError: It is not taken; code `TRYCREATE`: there is no such folder; `OVERQUOTA`: it is full.
        """
        flags = ("(\\Seen)",) if seen else ()
        words = (quoted(encode_name(folder)), *flags, f"{{{len(raw)}}}")
        return appended_uid((await self._line.command("APPEND", *words, replies=[raw]))[-1])

    async def special_folders(self) -> Mapping[str, str]:
        r"""The folders that have a use of their own, by that, in lower case: `\sent`, `\trash`, ... (RFC 6154)."""
        asked = ("(SPECIAL-USE)",) if "SPECIAL-USE" in self._line.capabilities else ()
        return special_folders(await self._line.command("LIST", *asked, '""', '"*"'))

    async def idle(self, clock: Clock, seconds: float) -> None:
        """IDLE until there is new mail, but no longer than this; see `idle.wait_for_mail`.

        Raises:
            ImapNoError: The server refuses to idle.
        """
        await self._line.idle(clock, seconds)

    async def news(self, clock: Clock, seconds: float) -> None:
        """Wait without asking anything, no longer than this; the end of the connection ends it at once."""
        await self._line.news(clock, seconds)

    async def close(self) -> None:
        """Log out, if that is quickly done, and let go of the connection."""
        await self._line.close()

    async def _entries(self, uids: Sequence[int], items: str, at_once: int, room: int) -> list[Entry]:
        entries: list[Entry] = []
        for start in range(0, len(uids), at_once):
            asked = uids[start : start + at_once]
            words = (",".join(map(str, asked)), items)
            lines = await self._line.command("FETCH", *words, uid=True, room=_room(len(asked), room))
            wanted = set(asked)
            entries += [entry for entry in entries_of(lines) if entry.uid in wanted]
        return entries

    async def _authenticate(self, mechanism: str, response: bytes) -> None:
        if "SASL-IR" in self._line.capabilities:
            await self._let_in("AUTHENTICATE", mechanism, response.decode())
        else:
            await self._let_in("AUTHENTICATE", mechanism, replies=[response])

    async def _let_in(self, name: str, *words: str, replies: Sequence[bytes] = ()) -> None:
        if self._line.logged_in:
            return
        try:
            await self._line.command(name, *words, replies=replies, seconds=self._line.patience.login)
        except ImapNoError as error:
            passing = error.code in _PASSING or bool(_PASSING_WORDS.search(str(error)))
            raise ImapRefusedError(str(error), code=error.code, passing=passing) from None
        self._line.became(selected=False)
        await self._capabilities()

    async def _capabilities(self) -> None:
        """Learn what the server can do for who is logged in."""
        try:
            await self._line.ask_capabilities()
        except ImapNoError as error:
            raise ImapLostError(f"the server does not say what it can do: {error}") from error


def _room(mails: int, bytes_each: int) -> int:
    """Bytes that a FETCH may bring: what was asked for, and some more for words and for the doings of others."""
    return 256 * 1024 + mails * (_ROOM_AN_ENTRY + bytes_each)


def _day(day: date) -> str:
    """A date as IMAP writes it (RFC 3501, section 9): the months have English names, whatever the locale."""
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    return f"{day.day}-{months[day.month - 1]}-{day.year}"
