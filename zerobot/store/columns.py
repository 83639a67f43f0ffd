"""How values are written into columns: times, places, texts, JSON. One form each, so that they compare as text."""

import json
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime

from zerobot.core.places import Identity, Place

OPEN_INBOX = "inbox INDEXED BY inbox_open"
"""SQL: the inbox by its index of open rows; by another one SQLite looks at all that was ever said in a conversation."""
_OPEN = "state IN ('waiting', 'command')"
WAITS = f"state = 'waiting' AND {_OPEN}"
"""SQL: nothing has taken this row yet. The second half says nothing new; by it SQLite sees that the index will do."""
IS_COMMAND = f"state = 'command' AND {_OPEN}"
"""SQL: a command that nobody has carried out yet; likewise."""


def stamp(moment: datetime) -> str:
    """Write an aware time as UTC in ISO 8601 with microseconds: all have one length, so text order is time order.

    Raises:
        ValueError: The time is naive: nobody could say which moment it means.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def moment(text: str) -> datetime:
    """Read a stamp as an aware UTC time."""
    return datetime.fromisoformat(text)


def moment_or_none(text: str | None) -> datetime | None:
    """Read a stamp that may be missing (NULL or empty)."""
    return moment(text) if text else None


def storable(text: str) -> str:
    """Make any `str` one that UTF-8 can hold: halves of a surrogate pair are joined, lone ones become U+FFFD.

    JSON from outside may carry them (RFC 8259, section 8.2); SQLite's driver refuses the whole row for one.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def place_columns(place: Place) -> dict[str, str]:
    """A place as the columns `channel`, `chat`, `thread` (empty: none)."""
    return {"channel": place.channel, "chat": place.chat, "thread": place.thread or ""}


def place_of(row: sqlite3.Row) -> Place:
    """The place in the columns `channel`, `chat`, `thread`."""
    return Place(row["channel"], row["chat"], row["thread"] or None)


def identity_or_none(text: str | None) -> Identity | None:
    """The identity in a column that may be NULL or empty."""
    return Identity.parse(text) if text else None


def json_text(value: Mapping[str, object]) -> str:
    """Write a JSON object, keys in their order. It is pure ASCII, so that any `str` survives, lone surrogates too."""
    return json.dumps(value, separators=(",", ":"))


def json_object(text: str) -> dict[str, object]:
    """Read a JSON object.

    Raises:
        ValueError: It is something else.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")  # noqa: TRY004 - a caller handles one error, as from `loads`
    return value
