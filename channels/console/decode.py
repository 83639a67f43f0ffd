"""What a terminal says, in the common form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zerobot.core.envelope import InboundEnvelope
from zerobot.core.places import ConversationKey, Identity, Place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

LOCAL = Identity("console", "local")
"""The person at the terminal: whoever may open the state directory is its owner."""

CHAT = "local"
"""The one chat of this platform; its conversation goes on from one start to the next."""

_EVENT_ID = re.compile(r"[0-9A-Za-z-]{8,64}")


def decode(value: Mapping[str, object], channel: str, now: datetime) -> InboundEnvelope | None:
    """Bring what a terminal said into the common form; None when it said nothing.

    Args:
        value: From a terminal: `id`, unique over all of them, and `text`.
        channel: The name of the channel's table.
        now: UTC.
    """
    match value:
        case {"id": str(event_id), "text": str(text)} if _EVENT_ID.fullmatch(event_id) and text.strip():
            return InboundEnvelope(
                conversation=ConversationKey(Place(channel, CHAT)),
                sender=LOCAL,
                event_id=event_id,
                message_id=event_id,
                text=text,
                direct=True,
                sent_at=now,
            )
    return None
