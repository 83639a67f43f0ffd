"""How far a folder was read, over restarts; and what is new when its numbers have changed. Pure, but for the state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pydantic import AwareDatetime, TypeAdapter

from channels.email.mail import Mail
from channels.email.reading.dates import read_date
from zerobot.core.channel import ChannelState

STALE_AFTER = timedelta(days=30)
"""A mail that came in earlier is let be. The ids of what was taken in are kept for longer, so nothing is answered twice
though a folder is copied, restored or numbered anew."""
SLACK = timedelta(hours=1)
"""By how much the mail server's clock and ours may differ."""
OVERLAP = timedelta(days=2)
"""How far before the newest known mail it is looked for others when a folder was numbered anew."""
POSTPONED = 100
_KEY = "position"


@dataclass(frozen=True, slots=True)
class Postponed:
    """A mail that could not be judged yet."""

    uid: int
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a folder was read."""

    folder: str
    validity: int
    """The UIDVALIDITY under which `uid` counts (RFC 9051, section 2.3.1.1)."""
    uid: int
    """The last mail that was looked at, whatever became of it."""
    began: AwareDatetime
    """When this folder was first read: what came before is left alone. UTC."""
    newest: AwareDatetime
    """When the newest mail of those looked at came in. UTC."""
    postponed: tuple[Postponed, ...] = ()
    """Mails before `uid` that are to be looked at again, at most `POSTPONED`."""

    def tries(self, uid: int) -> int:
        """How often a mail was looked at in vain."""
        return next((each.tries for each in self.postponed if each.uid == uid), 0)

    def with_try(self, uid: int) -> Position:
        """The position after a mail was looked at in vain."""
        others = tuple(each for each in self.postponed if each.uid != uid)
        return replace(self, postponed=(*others, Postponed(uid, self.tries(uid) + 1))[-POSTPONED:])

    def without(self, uid: int) -> Position:
        """The position after a mail was judged, or is gone."""
        return replace(self, postponed=tuple(each for each in self.postponed if each.uid != uid))


_STORED = TypeAdapter(Position)


async def load_position(state: ChannelState, folder: str) -> Position | None:
    """Read what was stored; None: nothing, of another folder, or not to be read.

    Raises:
        StorageError: It cannot be read now.
    """
    try:
        position = _STORED.validate_json(await state.get(_KEY) or "")
    except ValueError:
        return None
    return position if position.folder == folder else None


async def store_position(state: ChannelState, position: Position) -> None:
    """Make a position last.

    Raises:
        StorageError: It is not stored.
    """
    await state.set(_KEY, _STORED.dump_json(position).decode())


def arrival(mail: Mail, now: datetime) -> datetime:
    """When a mail came in: by the date that our own server wrote into the topmost Received field; else now.

    The date of a copy that the folder itself tells may be that of the copying, and that of the header is the sender's.
    """
    received = next(iter(mail.values("received")), "")
    return min(read_date(received.rpartition(";")[2]) or now, now)


def is_stale(mail: Mail, position: Position, now: datetime, *, backlog: bool) -> bool:
    """Whether a mail is too old to be answered.

    One that was written long ago and comes in now is somebody's who has kept it, and may not be who wrote it.

    Args:
        mail: The mail.
        position: Of its folder.
        now: UTC.
        backlog: Whether what was there before the first start is answered too.
    """
    oldest = now - STALE_AFTER
    if mail.sent_at is not None and mail.sent_at < oldest:
        return True
    # The clock may have been wrong at the first start.
    began = min(position.began, now)
    return arrival(mail, now) < (oldest if backlog else max(oldest, began - SLACK))
