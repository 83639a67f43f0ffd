"""What has to be done from time to time so that nothing grows for ever."""

from datetime import timedelta

from zerobot.core.errors import StorageError
from zerobot.daemon.foundation import Foundation
from zerobot.store.inbox import Inbox
from zerobot.store.outbox import Outbox

KEPT = timedelta(days=7)
"""How long the text of worked-off envelopes and of settled replies is kept; what was said stays in the history."""
ROUND = 6 * 3600.0
"""Seconds between two rounds."""


async def keep_house(foundation: Foundation, inbox: Inbox) -> None:
    """Forget old envelopes and replies, now and every six hours, until cancelled."""
    outbox = Outbox(foundation.database, foundation.clock)
    while True:
        before = foundation.clock.now() - KEPT
        try:
            envelopes, replies = await inbox.forget_old(before), await outbox.forget_old(before)
            foundation.log("housekeeping.done", level="debug", envelopes=envelopes, replies=replies)
        except StorageError as error:
            foundation.log("storage.failed", level="error", error=error)
        await foundation.clock.sleep(ROUND)
