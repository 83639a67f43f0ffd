"""Ids of mails (RFC 5322, section 3.6.4), read out of fields that hold other things as well."""

from __future__ import annotations

import re
from collections.abc import Sequence

from channels.email.reading.comments import without_comments

MOST_REFERENCES = 100
_MOST_ID_CHARACTERS = 500
_ID = re.compile(r"<[!-;=?A-Z\[-~]{1,300}+@(?:\[[!-;=?-Z^-~]{0,300}+\]|[!-;=?A-Z^-~]{1,300}+)>")


def ids_in(value: str) -> tuple[str, ...]:
    """The ids in a field, each once, in their order; words, comments and what is no id are passed over."""
    found = _ID.findall(without_comments(value))
    return tuple(dict.fromkeys(each for each in found if len(each) <= _MOST_ID_CHARACTERS))


def references_in(value: str) -> tuple[str, ...]:
    """The ids of a References field, within bounds."""
    return first_and_newest(ids_in(value), MOST_REFERENCES)


def first_and_newest(ids: Sequence[str], most: int) -> tuple[str, ...]:
    """Of very many ids the first, which names the thread, and the newest.

    Args:
        ids: Oldest first.
        most: How many, two at least.
    """
    return tuple(ids) if len(ids) <= most else (ids[0], *ids[1 - most :])
