"""How far a folder was read, over restarts; and what is new when its numbers have changed. Pure, but for the state."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from channels.email.mail import Mail
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
    began: datetime
    """When this folder was first read: what came before is left alone. UTC."""
    newest: datetime
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


async def load_position(state: ChannelState, folder: str) -> Position | None:
    """Read what was stored; None: nothing, of another folder, or not to be read.

    Raises:
        StorageError: It cannot be read now.
    """
    try:
        value = json.loads(await state.get(_KEY) or "")
        position = Position(
            folder=str(value["folder"]),
            validity=int(value["validity"]),
            uid=int(value["uid"]),
            began=datetime.fromisoformat(value["began"]),
            newest=datetime.fromisoformat(value["newest"]),
            postponed=tuple(Postponed(int(uid), int(tries)) for uid, tries in value["postponed"]),
        )
    except (ValueError, TypeError, KeyError):
        return None
    return position if position.folder == folder else None


async def store_position(state: ChannelState, position: Position) -> None:
    """Make a position last.

    Raises:
        StorageError: It is not stored.
    """
    value = {
        "folder": position.folder,
        "validity": position.validity,
        "uid": position.uid,
        "began": position.began.isoformat(),
        "newest": position.newest.isoformat(),
        "postponed": [[each.uid, each.tries] for each in position.postponed],
    }
    await state.set(_KEY, json.dumps(value))


def arrival(mail: Mail, now: datetime) -> datetime:
    """When a mail came in: by the date that our own server wrote into the topmost Received field; else now.

    The date of a copy that the folder itself tells may be that of the copying, and that of the header is the sender's.
    """
    for received in mail.values("received")[:1]:
        try:
            moment = parsedate_to_datetime(received.rpartition(";")[2].strip())
        except (ValueError, IndexError, TypeError, OverflowError):
            return now
        return min(moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC), now)
    return now


def is_stale(came_in: datetime, position: Position, now: datetime, *, backlog: bool) -> bool:
    """Whether a mail is too old to be answered.

    Args:
        came_in: When it arrived.
        position: Of its folder.
        now: UTC.
        backlog: Whether what was there before the first start is answered too.
    """
    oldest = now - STALE_AFTER
    return came_in < (oldest if backlog else max(oldest, position.began - SLACK))
