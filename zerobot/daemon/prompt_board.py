"""Shows approval prompts, and settles them when they are decided, in every place and over every restart."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from zerobot.core.approvals import Approval, ApprovalPrompt, ApprovalState
from zerobot.core.channel import AsksApproval, MessageBody, OutboundMessage, SentMessage, SettlesUnclear
from zerobot.core.errors import DeliveryError, MovedError, TryLaterError, UnclearError, UnreachableError
from zerobot.core.ids import ApprovalId
from zerobot.core.log import EventLog
from zerobot.core.places import Place
from zerobot.daemon.prompt_calls import PromptCalls, as_text
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.fence import fenced
from zerobot.delivery.line import Line
from zerobot.delivery.pacing import Priority
from zerobot.delivery.patience import Patience
from zerobot.store.approvals import Approvals, Prompt, PromptState

TEXT_FIRST = 3.0
"""Seconds that a prompt waits for what the turn said before it, so that it stands under that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardWires:
    """What the board works with."""

    approvals: Approvals
    delivery: Delivery
    draw: Callable[[Approval], ApprovalPrompt]
    """Builds the words of a prompt, open or decided."""
    others: Callable[[Approval], Awaitable[Sequence[Place]]]
    """Where else an approval can be shown, when a place takes nothing."""
    unreachable: Callable[[Approval], Awaitable[None]]
    """Told that no place is left."""
    patience: Patience
    log: EventLog


@dataclass(slots=True)
class _Telling:
    """How much of a prompt that is shown as text was taken, so that nothing of it is said again."""

    bodies: list[MessageBody] = field(default_factory=list)
    taken: int = 0
    last: SentMessage | None = None


class PromptBoard:
    """Keeps what is shown equal to what is stored: undecided approvals are shown, decided ones have no buttons.

    Args:
        wires: What it works with.
    """

    def __init__(self, wires: BoardWires) -> None:
        self._wires = wires
        self._calls = PromptCalls(wires.delivery, wires.patience, wires.log)
        self._busy: set[int] = set()
        self._strays: dict[SentMessage, ApprovalId] = {}
        """Messages with buttons of a decided approval that no stored prompt stands for."""
        self._tellers: WeakValueDictionary[Place, asyncio.Lock] = WeakValueDictionary()
        """Held while a prompt is told in a place as text: those of two prompts must not mix."""
        self._news = asyncio.Event()

    def look(self) -> None:
        """Something in the store has changed."""
        self._news.set()

    def settle_stray(self, approval: ApprovalId, message: SentMessage) -> None:
        """Take the buttons of a message away that shows an approval and is in no stored prompt."""
        self._strays[message] = approval
        self._news.set()

    async def run(self) -> None:
        """Show and settle until cancelled, beginning with what an earlier process left."""
        approvals = self._wires.approvals
        async with asyncio.TaskGroup() as group:
            while True:
                self._news.clear()
                await self._begin_all(group, approvals.unshown, self._show)
                await self._begin_all(group, approvals.unsettled, self._settle)
                while self._strays:
                    message, stray = self._strays.popitem()
                    group.create_task(self._settle_one(message, stray), name=f"stray prompt {message.id}")
                await self._news.wait()

    async def _begin_all(
        self,
        group: asyncio.TaskGroup,
        read: Callable[[], Awaitable[Sequence[Prompt]]],
        work: Callable[[Prompt], Awaitable[bool]],
    ) -> None:
        """Begin the work on what the store names, but for what is worked on when it is read: that may be done since."""
        busy = frozenset(self._busy)
        for prompt in await self._wires.patience.stored(read):
            if prompt.id not in busy and prompt.id not in self._busy:
                self._busy.add(prompt.id)
                group.create_task(self._work(prompt, work), name=f"prompt {prompt.id}")

    async def _work(self, prompt: Prompt, work: Callable[[Prompt], Awaitable[bool]]) -> None:
        changed = False
        with fenced(self._wires.log, "prompt.failed", "error", channel=prompt.place.channel):
            changed = await work(prompt)
        self._busy.discard(prompt.id)
        if changed:
            # It may have been decided while it was being shown.
            self._news.set()

    async def _show(self, prompt: Prompt) -> bool:
        """Show a prompt; when its place takes nothing, see to another.

        Returns:
            Whether the store says something new.
        """
        approval = await self._wires.patience.stored(lambda: self._wires.approvals.get(prompt.approval))
        if approval is None:
            return False
        if approval.place == prompt.place:
            await self._wires.delivery.quiet(prompt.place, approval.turn, TEXT_FIRST)
        line = self._wires.delivery.line(prompt.place.channel)
        if line is None:
            # Its channel is not open in this process; it is shown when that is open again.
            return False
        try:
            sent = await self._shown(prompt, line)
        except MovedError as error:
            await self._follow(prompt, error.chat)
        except DeliveryError as error:
            self._wires.log(
                "prompt.failed", level="warning", error=error, approval=approval.id, place=str(prompt.place)
            )
            await self._nowhere(prompt, approval)
        else:
            if sent is not None:
                await self._record(prompt, sent)
        return True

    async def _record(self, prompt: Prompt, sent: SentMessage) -> None:
        """Put on record what was shown. An earlier copy may have been pressed meanwhile: it is settled as well."""
        approvals = self._wires.approvals
        before = await self._wires.patience.stored(lambda: approvals.prompt_sent(prompt.id, sent.id))
        self._wires.log("approval.shown", level="debug", approval=prompt.approval, place=str(prompt.place))
        if before:
            self.settle_stray(prompt.approval, SentMessage(prompt.place, before))

    async def _shown(self, prompt: Prompt, line: Line) -> SentMessage | None:
        """Show a prompt with buttons, or where they are not taken as text; None: it was decided before.

        Raises:
            DeliveryError: Its place takes neither.
        """
        if isinstance(line.channel, AsksApproval):
            channel = line.channel
            try:
                return await self._persist(prompt.place, lambda: self._ask_or_find(prompt, line, channel))
            except (UnreachableError, MovedError):
                raise
            except DeliveryError as error:
                self._wires.log("prompt.as_text", level="warning", error=error, approval=prompt.approval)
        telling = _Telling()
        async with self._tellers.setdefault(prompt.place, asyncio.Lock()):
            return await self._persist(prompt.place, lambda: self._tell(prompt, line, telling))

    async def _ask_or_find(self, prompt: Prompt, line: Line, channel: AsksApproval) -> SentMessage | None:
        """Show a prompt, unless an earlier try was taken: a second copy could keep its buttons."""
        if prompt.state is PromptState.SENDING and (taken := await self._taken(prompt, line)) is not None:
            return taken
        try:
            return await self._ask(prompt, line, channel)
        except UnclearError:
            if (taken := await self._taken(prompt, line)) is None:
                raise
            return taken

    async def _taken(self, prompt: Prompt, line: Line) -> SentMessage | None:
        """The message of an earlier try, where the platform can be asked for it."""
        if not isinstance(line.channel, SettlesUnclear):
            return None
        try:
            async with line.gate.turn_to_call(prompt.place, Priority.APPROVAL):
                return await line.channel.find(_message(prompt.place, MessageBody(""), _key(prompt)))
        except DeliveryError:
            return None

    async def _ask(self, prompt: Prompt, line: Line, channel: AsksApproval) -> SentMessage | None:
        """Make the call that shows a prompt with buttons; None: it was decided meanwhile."""
        async with line.gate.turn_to_call(prompt.place, Priority.APPROVAL):
            approval = await self._about_to_show(prompt)
            if approval is None:
                return None
            return await channel.ask(prompt.place, self._wires.draw(approval), _key(prompt))

    async def _tell(self, prompt: Prompt, line: Line, telling: _Telling) -> SentMessage | None:
        """Show what is left of a prompt as messages with its code, each in a turn of its own.

        Returns:
            The last of them; when it was decided meanwhile, the last that was taken, None: nothing was.
        """
        while not telling.bodies or telling.taken < len(telling.bodies):
            async with line.gate.turn_to_call(prompt.place, Priority.APPROVAL):
                approval = await self._about_to_show(prompt)
                if approval is None:
                    return telling.last
                if not telling.bodies:
                    text = as_text(self._wires.draw(approval), line.command_prefix)
                    telling.bodies.extend(line.channel.render(text))
                    assert telling.bodies, "a prompt has words"
                number = telling.taken
                key = f"{_key(prompt)}.{number}" if number else _key(prompt)
                telling.last = await line.channel.send(_message(prompt.place, telling.bodies[number], key))
                telling.taken += 1
        return telling.last

    async def _about_to_show(self, prompt: Prompt) -> Approval | None:
        """Note that the platform is about to be called for a prompt; None: it is not pending any more."""
        approvals, stored = self._wires.approvals, self._wires.patience.stored
        approval = await stored(lambda: approvals.get(prompt.approval))
        if approval is None or approval.state is not ApprovalState.PENDING:
            return None
        await stored(lambda: approvals.prompt_sending(prompt.id))
        return approval

    async def _persist(self, place: Place, call: Callable[[], Awaitable[SentMessage | None]]) -> SentMessage | None:
        """Try until it is shown. Unclear is tried again too: a second prompt does no harm, a decision counts once."""
        faults = 0
        while True:
            try:
                return await call()
            except (TryLaterError, UnclearError) as error:
                faults += 1
                await self._calls.wait(place, error, faults)

    async def _follow(self, prompt: Prompt, chat: str) -> None:
        """A chat has a new id: the prompt is shown there."""
        approvals, stored = self._wires.approvals, self._wires.patience.stored
        await stored(lambda: self._wires.delivery.moved(prompt.place, chat))
        there = replace(prompt.place, chat=chat)
        await stored(lambda: approvals.add_prompt(prompt.approval, there))
        prompts = await stored(lambda: approvals.prompts_of(prompt.approval))
        if not any(each.id == prompt.id and each.place == there for each in prompts):
            await self._give_up(prompt)

    async def _nowhere(self, prompt: Prompt, approval: Approval) -> None:
        """A place takes nothing: ask the next operator, unless somebody else was asked already."""
        approvals, stored = self._wires.approvals, self._wires.patience.stored
        await self._give_up(prompt)
        prompts = await stored(lambda: approvals.prompts_of(approval.id))
        if any(not each.settled for each in prompts):
            return
        tried = {each.place for each in prompts}
        place = next((place for place in await self._wires.others(approval) if place not in tried), None)
        if place is None:
            await self._wires.unreachable(approval)
        else:
            await stored(lambda: approvals.add_prompt(approval.id, place))

    async def _give_up(self, prompt: Prompt) -> None:
        approvals, stored = self._wires.approvals, self._wires.patience.stored
        await stored(lambda: approvals.prompt_failed(prompt.id))
        await stored(lambda: approvals.prompt_settled(prompt.id))

    async def _settle(self, prompt: Prompt) -> bool:
        """Take the buttons of a decided prompt away and show what was decided; False: at a later start."""
        approvals, stored = self._wires.approvals, self._wires.patience.stored
        approval = await stored(lambda: approvals.get(prompt.approval))
        line = self._wires.delivery.line(prompt.place.channel)
        if line is None:
            return False
        if approval is not None and prompt.state is PromptState.SENT:
            sent = SentMessage(prompt.place, prompt.platform_id)
            await self._calls.settle(sent, lambda: self._wires.draw(approval), line)
        await stored(lambda: approvals.prompt_settled(prompt.id))
        return True

    async def _settle_one(self, message: SentMessage, ident: ApprovalId) -> None:
        """Settle a message that is in no stored prompt. Should it fail for good, its next press tries it again."""
        with fenced(self._wires.log, "prompt.failed", "error", channel=message.place.channel):
            approval = await self._wires.patience.stored(lambda: self._wires.approvals.get(ident))
            line = self._wires.delivery.line(message.place.channel)
            if approval is not None and approval.state is not ApprovalState.PENDING and line is not None:
                await self._calls.settle(message, lambda: self._wires.draw(approval), line)


def _key(prompt: Prompt) -> str:
    """Of a prompt's message: the same whenever it is sent, and short."""
    return f"p{prompt.id}.{prompt.approval[:14]}"


def _message(place: Place, body: MessageBody, key: str) -> OutboundMessage:
    return OutboundMessage(place=place, body=body, key=key)
