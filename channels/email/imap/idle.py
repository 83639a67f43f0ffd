"""Waiting for new mail, by IDLE where the server has it, by looking again where it has not."""

from __future__ import annotations

from channels.email.imap.errors import ImapNoError
from channels.email.imap.mailbox import Imap
from zerobot.core.clock import Clock


async def wait_for_mail(imap: Imap, clock: Clock, *, renewal: float, poll: float) -> None:
    """Wait until it is time to search again: there is new mail, or there may be.

    Search, then wait, then search: a push says only that there is something. What comes between a search and the next
    IDLE is announced by the server before or within IDLE, and either ends the wait at once; should it not be, the
    renewal finds it.

    Args:
        imap: With a selected folder, searched by `new_uids`.
        clock: Counts the waits.
        renewal: Seconds that one IDLE lasts at most. Its end must be answered in time, so a connection that hangs is
            found out no later than then.
        poll: Seconds between two searches where the server has no IDLE, or refuses it.

    Raises:
        ImapLostError: The connection is lost, also in the middle of the wait; connect again.
    """
    if imap.can_idle:
        try:
            await imap.idle(clock, renewal)
        except ImapNoError:
            await imap.news(clock, poll)
    else:
        await imap.news(clock, poll)
