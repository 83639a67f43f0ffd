"""Whether a message whose sending ended unclear stands in a chat's history; pure."""

from __future__ import annotations

from collections.abc import Iterable

from channels.discord.content import Payload
from channels.discord.decode import referred_interaction
from zerobot.core.channel import OutboundMessage
from zerobot.core.errors import CannotTellError

TELLING = 200
"""Characters of a text that no other message has by chance."""


def find_in(history: Iterable[Payload], message: OutboundMessage, nonce: str, *, is_all: bool) -> str | None:
    """Look for a message.

    A history need not have nonces. Without, a message is known by what it says and answers.

    Args:
        history: What was written in the chat since the message was made.
        message: What was to be sent.
        nonce: What it was sent with.
        is_all: Whether nothing was left out of the history.

    Returns:
        The id of the message in the history; None: it surely is not there.

    Raises:
        CannotTellError: Something is there that may be it, or what was left out is.
    """
    doubtful = False
    for found in history:
        same = _is(found, message, nonce)
        if same:
            return str(found["id"])
        doubtful = doubtful or same is None
    if doubtful or not is_all:
        raise CannotTellError("something in the history may be it" if doubtful else "the history is too long")
    return None


def _is(found: Payload, message: OutboundMessage, nonce: str) -> bool | None:
    """Whether a message of the history is this one; None: nobody can tell."""
    if found.get("nonce") is not None:
        return str(found["nonce"]) == nonce
    if not (found.get("author") or {}).get("bot"):
        return False
    wanted = "" if referred_interaction(message.reply_to) else message.reply_to
    answered = str((found.get("message_reference") or {}).get("message_id", ""))
    same_words = found.get("content") == message.body.text
    if same_words and answered == wanted and (wanted or len(message.body.text) >= TELLING):
        return True
    # What was answered may be deleted, and the words may have been those of a draft.
    may_be = (same_words and not answered) or (wanted and answered == wanted)
    return None if may_be else False
