"""The ids of the bot's own mails: made of the outbox's key, known again in answers. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

_OWN_ID = re.compile(r"<zerobot\.[0-9a-f]{20}(?:\.([0-9a-f]{16}))?@([^<>@\s]+)>")


def own_id(key: str, address: str, thread: str = "") -> str:
    """The id of the mail with a key of the outbox: the same for every try, another one for every other mail.

    It is short, since some programs fold ids of more than 77 characters, which breaks them.

    Args:
        key: Of the outbox.
        address: The bot's own; nobody else makes ids for its domain.
        thread: The key of its conversation; empty: it is in none.
    """
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:20]
    return f"<zerobot.{digest}{f'.{thread}' if thread else ''}@{_domain(address)}>"


def read_own_id(ident: str, addresses: Collection[str]) -> str | None:
    """Read an id that may be ours.

    Args:
        ident: With its brackets.
        addresses: The bot's own.

    Returns:
        The key of the conversation that its mail belongs to, empty when to none; None: it is somebody else's.
    """
    found = _OWN_ID.fullmatch(ident)
    ours = found is not None and found[2].lower() in {_domain(each) for each in addresses}
    return found[1] or "" if found is not None and ours else None


def _domain(address: str) -> str:
    return address.rpartition("@")[2].lower()
