"""What was not taken in: a line in the log, a count for doctor, and a word to the operators once a day."""

from __future__ import annotations

import json
from collections.abc import Mapping

from zerobot.core.channel import ChannelServices, ChannelState, Intake
from zerobot.core.envelope import Acceptance

_KEY = "refused"

LOOP = "loop"
UNPROVED = "unproved"
UNREADABLE = "unreadable"


class Refusals:
    """Keeps account of mails that nobody answers. Towards their senders all of it is quiet.

    Args:
        services: Name, clock, log and state.
    """

    def __init__(self, services: ChannelServices) -> None:
        self._services = services

    async def note(self, reason: Acceptance, why: str, sender: str) -> None:
        """A mail was refused.

        Args:
            reason: As it stands in the event.
            why: A short stable word, of the same or finer meaning.
            sender: As the mail says; proved or not.

        Raises:
            StorageError: It was not counted.
        """
        log, name = self._services.log, self._services.name
        log("envelope.refused", channel=name, reason=reason, why=why, sender=f"email:{sender}" if sender else "")
        counts = dict(await counted(self._services.state))
        counts[why] = counts.get(why, 0) + 1
        await self._services.state.set(_KEY, json.dumps(counts))

    async def alarm_unproved(self, intake: Intake, why: str, sender: str) -> None:
        """Tell the operators that mail comes in whose sender is not proved.

        Raises:
            StorageError: It is told another time.
        """
        who = self._quoted(sender) if sender else "nobody that can be read"
        await intake.alarm(
            UNPROVED,
            f"On channel {self._services.name} I refused a mail that says to be from {who}, since my mail server "
            f"does not vouch for that ({why}). There may be more of them: the log has a line for each, and "
            f"`zerobot doctor` counts them and shows whose results I could trust. I say this once a day.",
        )

    async def alarm_loop(self, intake: Intake, sender: str, limit: int) -> None:
        """Tell the operators that somebody gets no more answers for the moment.

        Raises:
            StorageError: It is told another time.
        """
        await intake.alarm(
            LOOP,
            f"On channel {self._services.name} I let a mail from {self._quoted(sender)} be: there were "
            f"{limit} within an hour already, which looks like two machines that answer each other. "
            f"`channels.{self._services.name}.answers_per_hour` sets the limit. There may be others of whom this is "
            f"true: the log has a line for each mail. I say this once a day.",
        )

    async def alarm_unreadable(self, intake: Intake, folder: str) -> None:
        """Tell the operators that there is a mail which could not be taken in.

        Raises:
            StorageError: It is told another time.
        """
        await intake.alarm(
            UNREADABLE,
            f"On channel {self._services.name} there is a mail that I cannot read; it lies unread in the folder "
            f"{self._quoted(folder)}, and others are not kept waiting for it. The log has a line for each "
            f"(`email.unreadable`). I say this once a day.",
        )

    def _quoted(self, address: str) -> str:
        """An address as code: whoever chose it, nothing of it is read as Markdown."""
        return f"`{self._services.escape(address).replace('`', '?')}`"


async def counted(state: ChannelState) -> Mapping[str, int]:
    """How many mails were refused so far, by the reason.

    Raises:
        StorageError: It cannot be read now.
    """
    try:
        value = json.loads(await state.get(_KEY) or "{}")
        return {str(why): int(count) for why, count in value.items()}
    except (ValueError, TypeError, AttributeError):
        return {}
