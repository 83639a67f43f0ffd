"""What holds for every press, whatever it decides: who is no operator learns nothing, and a full disk is told."""

from collections.abc import Awaitable
from typing import TypeVar

from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.envelope import ButtonPress
from zerobot.core.errors import StorageError
from zerobot.core.log import EventLog
from zerobot.core.places import Place
from zerobot.daemon.routing import OperatorRules

NOT_OPERATOR = "Only an operator may decide this; the request stays open."
NOT_STORED = "The decision could not be stored (is the disk full?). The request stays open; please try again later."

Answer = TypeVar("Answer")


def unless_operator(rules: OperatorRules, press: ButtonPress, log: EventLog) -> PressReply | None:
    """What somebody is told who is no operator, not even whether there is such a request; None: it is one."""
    if rules.is_operator(press.presser, press.place or Place(press.channel, "")):
        return None
    log("press.refused", channel=press.channel, by=str(press.presser))
    return PressReply(PressOutcome.NOT_OPERATOR, NOT_OPERATOR)


async def unless_not_stored(answer: Awaitable[Answer], press: ButtonPress, log: EventLog) -> Answer | PressReply:
    """The answer to a press; where the store refuses to give it, the word that nothing was decided."""
    try:
        return await answer
    except StorageError as error:
        log("storage.failed", level="error", error=error, channel=press.channel)
        return PressReply(PressOutcome.UNKNOWN, NOT_STORED)
