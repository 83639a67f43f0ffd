"""Strangers at the door: operators are asked in their direct chats whether to let somebody in, and answer by a button.

Whoever asks has a code as well, so nobody is left outside because a message got lost; and strangers cannot flood
operators: only so many requests an hour are shown, the others stand in the list of `/pair`.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from zerobot.core.approvals import ApprovalPrompt, PressOutcome, PressReply
from zerobot.core.channel import AsksApproval, SentMessage
from zerobot.core.clock import Clock
from zerobot.core.command_text import with_prefix
from zerobot.core.envelope import Button, ButtonPress
from zerobot.core.errors import DeliveryError, TryLaterError, UnclearError
from zerobot.core.ids import PAIRING
from zerobot.core.log import EventLog
from zerobot.core.places import Place
from zerobot.daemon.presses import unless_not_stored, unless_operator
from zerobot.daemon.prompt_calls import PromptCalls
from zerobot.daemon.routing import OperatorRules, direct_places
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.fence import fenced
from zerobot.delivery.pacing import Priority
from zerobot.delivery.patience import Jitter, Patience, full_jitter
from zerobot.delivery.waiting import event_or_moment
from zerobot.security.pairing_prompt import pairing_prompt, settled_pairing
from zerobot.store.pairing import Pairing, PairingPrompt, Pairings

ASKS = 5
"""Requests that operators are asked about within `WITHIN`."""
WITHIN = timedelta(hours=1)
SHOW_TRIES = 5
WELCOME = "You are in. Write to me whenever you like; /help says more."
UNKNOWN = "There is no such request any more; /pair lists who is waiting."


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorbellWires:
    """What the doorbell works with."""

    pairings: Pairings
    delivery: Delivery
    clock: Clock
    log: EventLog


class Doorbell:
    """Asks about strangers, and takes the answers.

    Args:
        rules: Who the operators are.
        wires: What it works with.
        jitter: Draws the waits between tries to show a prompt.
    """

    def __init__(self, rules: OperatorRules, wires: DoorbellWires, jitter: Jitter = full_jitter) -> None:
        self._rules = rules
        self._wires = wires
        self._patience = Patience(wires.clock, wires.log, jitter)
        self._calls = PromptCalls(wires.delivery, self._patience, wires.log)
        self._settling: set[int] = set()
        self._news = asyncio.Event()

    def look(self) -> None:
        """Somebody asks to be let in, or it was decided about somebody."""
        self._news.set()

    @staticmethod
    def is_meant(press: ButtonPress) -> bool:
        """Whether a press is about a stranger, not about a tool call."""
        return press.approval is not None and press.approval.startswith(PAIRING)

    async def let_in(self, pairing: Pairing) -> None:
        """Somebody was let in, by whatever way: he is told so, and nobody is asked about him any more."""
        if pairing.chat:
            text = with_prefix(WELCOME, self._wires.delivery.command_prefix(pairing.channel))
            await self._wires.delivery.notice(Place(pairing.channel, pairing.chat), text)
        self.look()

    async def press(self, press: ButtonPress) -> PressReply:
        """Take an operator's answer. The first one counts; everybody else is told the truth."""
        return await unless_not_stored(self._press(press), press, self._wires.log)

    async def may_press(self, press: ButtonPress) -> PressReply | None:
        """What a press would be refused with, nothing being decided; None: it would count now."""
        return await unless_not_stored(self._may_press(press), press, self._wires.log)

    async def run(self) -> None:
        """Ask, settle, and see to it that what is over has no buttons, until cancelled."""
        pairings, clock, stored = self._wires.pairings, self._wires.clock, self._patience.stored
        await stored(pairings.ask_again)
        async with asyncio.TaskGroup() as group:
            while True:
                self._news.clear()
                # One moment for the whole look: what ends in the middle of it is seen by the next.
                now = clock.now()
                for pairing in await stored(partial(pairings.to_ask, now, ASKS, WITHIN)):
                    for place in direct_places(self._wires.delivery, self._rules.users):
                        group.create_task(self._ask(pairing, place), name=f"stranger to {place}")
                for prompt in await stored(partial(pairings.unsettled, now)):
                    if prompt.id not in self._settling:
                        self._settling.add(prompt.id)
                        group.create_task(self._settle(prompt), name=f"stranger {prompt.id}")
                await event_or_moment(self._news, clock, await stored(partial(pairings.next_end, now)))

    async def _may_press(self, press: ButtonPress) -> PressReply | None:
        pairing = await self._meant(press)
        if isinstance(pairing, PressReply):
            return pairing
        return None if pairing.open_until(self._wires.clock.now()) else _too_late(pairing)

    async def _press(self, press: ButtonPress) -> PressReply:
        meant = await self._meant(press)
        if isinstance(meant, PressReply):
            return meant
        let_in, now = press.button is not Button.DENY, self._wires.clock.now()
        pairing, won = await self._wires.pairings.decide(meant.request, press.presser, now, let_in=let_in)
        if pairing is None:
            return self._unknown(press)
        if press.place is not None and press.message_id:
            # A crash may have come between the sending of this message and its record; its buttons are to go as well.
            await self._wires.pairings.shown(pairing, press.place, press.message_id)
        if won:
            self._wires.log("pairing.decided", channel=pairing.channel, by=str(press.presser), let_in=let_in)
            if let_in:
                await self.let_in(pairing)
        self.look()
        if not won:
            return _too_late(pairing)
        if let_in:
            return PressReply(PressOutcome.APPROVED, f"{pairing.identity} may talk to me now.")
        return PressReply(PressOutcome.DENIED, f"{pairing.identity} is shut out.")

    async def _meant(self, press: ButtonPress) -> Pairing | PressReply:
        """The request that is meant, if this presser may decide it; else what the presser is told."""
        stranger = unless_operator(self._rules, press, self._wires.log)
        if stranger is not None:
            return stranger
        return await self._wires.pairings.of_request(press.approval or "") or self._unknown(press)

    def _unknown(self, press: ButtonPress) -> PressReply:
        prefix = self._wires.delivery.command_prefix(press.channel)
        return PressReply(PressOutcome.UNKNOWN, with_prefix(UNKNOWN, prefix))

    async def _ask(self, pairing: Pairing, place: Place) -> None:
        """Show one operator one request. What cannot be shown is let be: the list and the code are there as well."""
        with fenced(self._wires.log, "prompt.failed", "error", channel=place.channel):
            for faults in range(1, SHOW_TRIES + 1):
                try:
                    sent = await self._show(pairing, place)
                except (TryLaterError, UnclearError) as error:
                    await self._calls.wait(place, error, faults)
                except DeliveryError as error:
                    self._wires.log(
                        "prompt.failed", level="warning", error=error, approval=pairing.request, place=str(place)
                    )
                    return
                else:
                    if sent is not None:
                        await self._patience.stored(
                            lambda: self._wires.pairings.shown(pairing, sent.place, sent.id)  # noqa: B023 - used now
                        )
                        # It may have been decided while it was being shown.
                        self.look()
                    return

    async def _show(self, pairing: Pairing, place: Place) -> SentMessage | None:
        """Call the platform; None: it was decided meanwhile, or its channel is gone."""
        line = self._wires.delivery.line(place.channel)
        if line is None or not isinstance(line.channel, AsksApproval):
            return None
        async with line.gate.turn_to_call(place, Priority.APPROVAL):
            found = await self._patience.stored(lambda: self._wires.pairings.of_request(pairing.request))
            now = self._wires.clock.now()
            until = found.open_until(now) if found else None
            if found is None or until is None:
                return None
            prompt = pairing_prompt(found.request, found.identity, found.name, found.channel, found.code, until, now)
            return await line.channel.ask(place, prompt, f"s{pairing.request[len(PAIRING) :][:14]}")

    async def _settle(self, prompt: PairingPrompt) -> None:
        """Take the buttons of one message away and show what was decided."""
        pairings, stored = self._wires.pairings, self._patience.stored
        line = self._wires.delivery.line(prompt.place.channel)
        # A channel that is not open in this process settles its messages when it is open again.
        if line is not None:
            with fenced(self._wires.log, "prompt.failed", "error", channel=prompt.place.channel):
                drawn = _settled(prompt, await stored(lambda: pairings.of_request(prompt.request)))
                await self._calls.settle(SentMessage(prompt.place, prompt.platform_id), lambda: drawn, line)
                await stored(lambda: pairings.settled(prompt.id))
        self._settling.discard(prompt.id)


def _too_late(pairing: Pairing) -> PressReply:
    if pairing.decided_by is None:
        return PressReply(PressOutcome.ALREADY, "Its time is over: it expired.")
    said = f"Already decided: {pairing.identity} is {pairing.state} by {pairing.decided_by}."
    return PressReply(PressOutcome.ALREADY, said)


def _settled(prompt: PairingPrompt, found: Pairing | None) -> ApprovalPrompt:
    decided = found if found is not None and found.decided_by is not None else None
    return settled_pairing(
        prompt.request,
        prompt.identity,
        prompt.name,
        prompt.on_channel,
        let_in=decided.state == "allowed" if decided else None,
        by=decided.decided_by if decided else None,
        at=decided.decided_at if decided else None,
    )
