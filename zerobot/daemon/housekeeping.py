"""What has to be done from time to time so that nothing grows for ever."""

from datetime import timedelta

from zerobot.core.errors import StorageError
from zerobot.daemon.parts import Foundation
from zerobot.store.inbox import Inbox

KEPT = timedelta(days=7)
"""How long the text of worked-off envelopes is kept; their ids are known for longer."""
ROUND = 6 * 3600.0
"""Seconds between two rounds."""


async def keep_house(house: Foundation, inbox: Inbox) -> None:
    """Forget old envelopes, now and every six hours, until cancelled."""
    while True:
        try:
            gone = await inbox.forget_old(house.clock.now() - KEPT)
            house.log("housekeeping.done", level="debug", forgotten=gone)
        except StorageError as error:
            house.log("storage.failed", level="error", error=error)
        await house.clock.sleep(ROUND)
