"""Dates of mails (RFC 5322, section 3.3)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_MOST_CHARACTERS = 100


def read_date(value: str) -> datetime | None:
    """Read a date, in UTC; one without a zone is taken for UTC. None: nothing that can be read."""
    try:
        date = parsedate_to_datetime(value.strip()[:_MOST_CHARACTERS])
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    # The library gives `TypeError` and `IndexError` away on some nonsense; a zone may lead out of the calendar.
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
