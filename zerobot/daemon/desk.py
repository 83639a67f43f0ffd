"""The approval desk: asks operators, takes their decisions, and ends what nobody decides in time."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from zerobot.core.access import Grant
from zerobot.core.approvals import Approval, ApprovalPrompt, ApprovalState, PressOutcome, PressReply, Withdrawal
from zerobot.core.channel import SentMessage
from zerobot.core.clock import Clock
from zerobot.core.envelope import Button, ButtonPress
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.log import EventLog
from zerobot.core.places import Identity, Place
from zerobot.daemon.presses import NOT_OPERATOR, unless_not_stored, unless_operator
from zerobot.daemon.prompt_board import BoardWires, PromptBoard
from zerobot.daemon.routing import OperatorRules, direct_places
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.patience import Jitter, Patience, full_jitter
from zerobot.delivery.waiting import event_or_moment
from zerobot.security.access import GRANT_LIFE, grant_text
from zerobot.security.prompt import outcome_text
from zerobot.store import approvals as approval_rows
from zerobot.store import grants
from zerobot.store.approvals import Approvals, Decided
from zerobot.store.conversations import Conversations
from zerobot.store.database import Database
from zerobot.store.inbox import Inbox

LATELY = timedelta(hours=24)
"""An operator who wrote in a chat within this time is asked there."""
LONGEST_REASON = 1_000
"""Characters of what an operator says about a decision; it goes into the prompt and to the model."""

NOT_YOUR_OWN = "You asked for this yourself, so another operator has to decide it."
UNKNOWN = "There is no such request, or too many wrong codes were typed lately."
WAITING = "_(I am waiting for an operator's decision; the answer comes after it.)_"
NOBODY = "What I wanted to do needs an operator's decision, and no operator can be reached, so I did not do it."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskWires:
    """What the desk works with."""

    database: Database
    approvals: Approvals
    conversations: Conversations
    inbox: Inbox
    delivery: Delivery
    draw: Callable[[Approval], ApprovalPrompt]
    """Builds the words of a prompt, open or decided."""
    grant_pattern: Callable[[Approval], str | None]
    """What "always" covers of a call; None: nothing that can be said narrowly enough."""
    wake: Callable[[ConversationId], None]
    """A conversation's turn can go on."""
    clock: Clock
    log: EventLog


class ApprovalDesk:
    """Where operators are asked and answer.

    Args:
        rules: Who they are and how they are asked.
        wires: What it works with.
        jitter: Draws the waits between tries to show a prompt.
    """

    def __init__(self, rules: OperatorRules, wires: DeskWires, jitter: Jitter = full_jitter) -> None:
        self._rules = rules
        self._wires = wires
        self._patience = Patience(wires.clock, wires.log, jitter)
        self._board = PromptBoard(
            BoardWires(
                approvals=wires.approvals,
                delivery=wires.delivery,
                draw=wires.draw,
                others=self._direct_places_for,
                unreachable=self._unreachable,
                patience=self._patience,
                log=wires.log,
            )
        )
        self._expiry_changed = asyncio.Event()

    def is_operator(self, person: Identity, place: Place) -> bool:
        """Whether somebody is an operator for what happens in a place."""
        return self._rules.is_operator(person, place)

    def waiting_words(self, place: Place, shown: Sequence[Place]) -> str:
        """What is said in a chat whose turn begins to wait; empty where people see it otherwise."""
        line = self._wires.delivery.line(place.channel)
        return "" if line is None or line.open.notice_after is None or place in shown else WAITING

    def timeout(self, place: Place, shown: Sequence[Place]) -> timedelta:
        """How long operators have for what is asked in a place, and shown to them in others."""
        return self._rules.time_for(place, shown)

    def still_counts(self, approval: Approval) -> bool:
        """Whether an approval was given by somebody who may still give it."""
        by = approval.decided_by
        return by is not None and self._rules.still_counts(by, approval.asker, approval.place)

    async def routes(self, asker: Identity, place: Place) -> Sequence[Place]:
        """Where to ask operators about what somebody asks for in a place; empty: nobody can be asked."""
        deciders = self._rules.deciders(asker, place, direct=await self._is_direct(place))
        if not deciders:
            return ()
        if self._rules.notify == "here" or (
            self._rules.notify == "auto" and await self._present(deciders, asker, place)
        ):
            return (place,) if self._wires.delivery.line(place.channel) else ()
        return direct_places(self._wires.delivery, deciders)

    async def nobody(self, conversation: ConversationId, turn: TurnId, place: Place) -> None:
        """Tell a chat, once a turn, that something it wants needs an operator, and that none can be asked."""
        await self._wires.delivery.notice_once(place, NOBODY, conversation, turn)

    def look(self) -> None:
        """Approvals were stored or withdrawn: prompts are to be shown or settled."""
        self._board.look()
        self._expiry_changed.set()

    def decided_elsewhere(self, decided: Decided) -> None:
        """An operator has decided at the shell: everything follows from it as from a button."""
        self._decided(decided)

    async def run(self) -> None:
        """Show, settle and expire until cancelled, beginning with what passed while nothing ran."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._expire(), name="approval expiry")
            group.create_task(self._board.run(), name="approval prompts")

    async def press(self, press: ButtonPress) -> PressReply:
        """Take a decision, by button or by code. The first one counts; everybody else is told the truth."""
        return await unless_not_stored(self._press(press), press, self._wires.log)

    async def may_press(self, press: ButtonPress) -> PressReply | None:
        """What a press would be refused with, nothing being decided; None: it would count now."""
        return await unless_not_stored(self._may_press(press), press, self._wires.log)

    async def _may_press(self, press: ButtonPress) -> PressReply | None:
        approval = await self._meant(press)
        if isinstance(approval, PressReply):
            return approval
        if approval.state is ApprovalState.PENDING and approval.expires_at > self._wires.clock.now():
            return None
        return PressReply(PressOutcome.ALREADY, _too_late(approval))

    async def _meant(self, press: ButtonPress) -> Approval | PressReply:
        """The approval that is meant, if this presser may decide it; else what the presser is told."""
        stranger = unless_operator(self._rules, press, self._wires.log)
        if stranger is not None:
            return stranger
        approval = await self._find(press)
        if approval is None:
            return PressReply(PressOutcome.UNKNOWN, UNKNOWN)
        refusal = await self._refusal(press, approval)
        return approval if refusal is None else PressReply(PressOutcome.NOT_OPERATOR, refusal)

    async def _press(self, press: ButtonPress) -> PressReply:
        approval = await self._meant(press)
        if isinstance(approval, PressReply):
            return approval
        decided, granted, stray = await self._decide(press, approval)
        if stray is not None:
            self._board.settle_stray(approval.id, stray)
        if decided.won:
            self._decided(decided, granted=granted is not None)
            return _thanks(press, decided.approval, granted, self._wires.delivery.command_prefix(press.channel))
        # Whoever won may have been cut off right after it was stored: what follows from it is done again.
        self._follow(decided)
        return PressReply(PressOutcome.ALREADY, _too_late(decided.approval))

    async def _find(self, press: ButtonPress) -> Approval | None:
        """The approval that is meant; a wrong code is counted, and too many of them hide the right ones too."""
        approvals, now = self._wires.approvals, self._wires.clock.now()
        if press.approval is not None:
            return await approvals.get(press.approval)
        if not press.code or await approvals.code_locked(press.presser, now):
            return None
        found = await approvals.by_code(press.code)
        if found is None:
            await approvals.wrong_code(press.presser, now)
        return found

    async def _refusal(self, press: ButtonPress, approval: Approval) -> str | None:
        """Why this operator may not decide this approval; None: they may. A decided one has nothing to refuse."""
        if not self._rules.is_operator(press.presser, approval.place):
            return NOT_OPERATOR
        if press.presser != approval.asker or approval.state is not ApprovalState.PENDING:
            return None
        place = press.place or approval.place
        direct = place in direct_places(self._wires.delivery, (press.presser,)) or await self._is_direct(place)
        return None if self._rules.may_decide_own(direct=direct) else NOT_YOUR_OWN

    async def _decide(self, press: ButtonPress, approval: Approval) -> tuple[Decided, Grant | None, SentMessage | None]:
        """Store the decision, and with it the grant that "always" gives, and which message was pressed.

        Returns:
            What became of it; the grant, None: there is none; the pressed message, None: the store knows it.
        """
        now = self._wires.clock.now()
        state = ApprovalState.DENIED if press.button is Button.DENY else ApprovalState.APPROVED
        pattern = None
        if press.button is Button.ALWAYS and approval.grantable:
            pattern = self._wires.grant_pattern(approval)

        pressed = SentMessage(press.place, press.message_id) if press.place and press.message_id else None

        def transaction(db: sqlite3.Connection) -> tuple[Decided, Grant | None, SentMessage | None]:
            reason = press.reason.strip()[:LONGEST_REASON]
            decided = approval_rows.decide(db, approval.id, state, press.presser, press.presser_name, reason, now)
            assert decided is not None, "approvals are never deleted, and this one was found"
            stray = None
            if pressed is not None and approval_rows.note_pressed(db, approval.id, pressed.place, pressed.id):
                stray = pressed
            if not decided.won or pattern is None:
                return decided, None, stray
            until = now + GRANT_LIFE
            grant = grants.insert(db, approval.conversation, approval.tool, pattern, press.presser, now, until)
            return decided, grant, stray

        return await self._wires.database.write(transaction)

    def _decided(self, decided: Decided, *, granted: bool = False) -> None:
        """Let everything follow from a decision that is stored."""
        self._log_decided(decided.approval, granted=granted)
        self._follow(decided)

    def _follow(self, decided: Decided) -> None:
        """Settle prompts and let the turn go on; doing it again changes nothing."""
        self._board.look()
        self._expiry_changed.set()
        if decided.all_decided:
            self._wires.wake(decided.approval.conversation)

    def _log_decided(self, approval: Approval, *, granted: bool = False) -> None:
        self._wires.log(
            "approval.decided",
            channel=approval.place.channel,
            conversation=approval.conversation,
            turn=approval.turn,
            tool_call=approval.call,
            approval=approval.id,
            state=approval.state,
            by=str(approval.decided_by) if approval.decided_by else "",
            granted=granted,
        )

    async def _expire(self) -> None:
        """End approvals when their time is over, by the wall clock; also those whose time passed while nothing ran."""
        clock, approvals = self._wires.clock, self._wires.approvals
        while True:
            self._expiry_changed.clear()
            for approval in await self._patience.stored(lambda: approvals.expire_due(clock.now())):
                await self._ended(approval)
            await event_or_moment(self._expiry_changed, clock, await self._patience.stored(approvals.next_expiry))

    async def _ended(self, approval: Approval) -> None:
        """An approval ended without an operator."""
        turn = await self._patience.stored(
            lambda: self._wires.database.read(lambda db: approval_rows.of_turn(db, approval.turn))
        )
        pending = any(each.state is ApprovalState.PENDING for each in turn)
        self._decided(Decided(won=True, approval=approval, all_decided=not pending))

    async def _unreachable(self, approval: Approval) -> None:
        """No operator can be reached: the turn's open requests are withdrawn, so that it goes on without them."""
        now = self._wires.clock.now()

        def withdraw(db: sqlite3.Connection) -> list[Approval]:
            ended = set(approval_rows.cancel_open(db, approval.turn, Withdrawal.UNREACHABLE, now))
            return [each for each in approval_rows.of_turn(db, approval.turn) if each.id in ended]

        withdrawn = await self._patience.stored(lambda: self._wires.database.write(withdraw))
        if withdrawn:
            await self._patience.stored(lambda: self.nobody(approval.conversation, approval.turn, approval.place))
        for each in withdrawn:
            await self._ended(each)

    async def _present(self, deciders: Sequence[Identity], asker: Identity, place: Place) -> bool:
        """Whether an operator is in the chat: the asker, or one who has written there lately."""
        if asker in deciders:
            return True
        since = self._wires.clock.now() - LATELY
        for decider in deciders:
            if await self._wires.inbox.wrote_lately(decider, place, since):
                return True
        return False

    async def _is_direct(self, place: Place) -> bool:
        return any(each.direct for each in await self._wires.conversations.at(place))

    async def _direct_places_for(self, approval: Approval) -> Sequence[Place]:
        if self._rules.notify == "here":
            return ()
        direct = await self._is_direct(approval.place)
        deciders = self._rules.deciders(approval.asker, approval.place, direct=direct)
        return direct_places(self._wires.delivery, deciders)


def _too_late(approval: Approval) -> str:
    if approval.state is ApprovalState.PENDING:
        return "Its time is over: it expired, and does not run."
    return f"Already decided. {outcome_text(approval)}"


def _thanks(press: ButtonPress, approval: Approval, granted: Grant | None, command_prefix: str) -> PressReply:
    if approval.state is ApprovalState.DENIED:
        return PressReply(PressOutcome.DENIED, "Denied.")
    if press.button is not Button.ALWAYS:
        return PressReply(PressOutcome.APPROVED, "Approved.")
    if granted is None:
        return PressReply(PressOutcome.APPROVED, "Approved, this once: it is too broad to be allowed for always.")
    always = f"always, for {GRANT_LIFE.days} days in this chat: {grant_text(approval.tool, granted.pattern)}"
    revoke = f"{command_prefix}grants revoke {granted.id}"
    return PressReply(PressOutcome.APPROVED, f"Approved, and {always}. {revoke} ends that.")
