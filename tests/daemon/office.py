"""A running approval desk in a house with a real store."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from tests.delivery.house import House, Houses
from tests.store.rows import a_turn
from zerobot.core.approvals import Approval, ApprovalPrompt, ApprovalState, PressReply
from zerobot.core.channel import ChannelKind
from zerobot.core.envelope import Button, ButtonPress
from zerobot.core.ids import ApprovalId, CallId, ConversationId, TurnId
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.daemon.desk import ApprovalDesk, DeskWires
from zerobot.daemon.routing import OperatorRules
from zerobot.security.prompt import approval_prompt
from zerobot.security.redact import Redactor
from zerobot.store import approvals as approval_rows
from zerobot.store import conversations
from zerobot.store.approvals import Approvals
from zerobot.store.columns import stamp
from zerobot.store.conversations import Conversations
from zerobot.store.inbox import Inbox
from zerobot.testing.channel import PlainChannel

ROOM = Place("fake", "room")
USER = Identity("fake", "user")
OLGA = Identity("fake", "olga")
OTTO = Identity("fake", "otto")
OLGAS = Place("fake", "olga")
OTTOS = Place("fake", "otto")
LOCAL = Identity("fake", "local")
ONE_OPERATOR = OperatorRules(users=(OLGA,))
TWO_OPERATORS = OperatorRules(users=(OLGA, OTTO), notify="direct")


@dataclass
class Office:
    """A running desk, and the house that it stands in."""

    house: House
    desk: ApprovalDesk
    approvals: Approvals
    woken: list[ConversationId]

    @property
    def channel(self) -> PlainChannel:
        """What people see."""
        return self.house.channel

    async def ask(
        self,
        name: str = "1",
        *,
        turn: str = "t1",
        place: Place = ROOM,
        asker: Identity = USER,
        shown_in: tuple[Place, ...] | None = None,
        minutes: float = 60,
    ) -> Approval:
        """Do what the engine's pausing transaction does, the approval and where it is shown, and tell the desk."""
        places = await self.desk.routes(asker, place) if shown_in is None else shown_in
        rows = await self.house.database.read(
            lambda db: db.execute("SELECT 1 FROM turns WHERE id = ?", (turn,)).fetchall()
        )
        if not rows:
            await self.house.database.write(
                lambda db: conversations.ensure(db, ConversationKey(place), direct=False, now=self.house.clock.now())
            )
            await a_turn(self.house.database, turn, place=place, state="paused")
        now = self.house.clock.now()

        def transaction(db: sqlite3.Connection) -> Approval:
            conversation = db.execute("SELECT conversation_id FROM turns WHERE id = ?", (turn,)).fetchone()[0]
            approval = Approval(
                id=ApprovalId(f"approval-{name}-0123456789"),
                code=f"CODE{name}",
                conversation=ConversationId(conversation),
                turn=TurnId(turn),
                call=CallId(f"c-{turn}"),
                tool="shell",
                arguments={"command": "make `all`"},
                digest="d",
                rule="risk",
                why="it runs a command",
                description="run a command",
                asker=asker,
                asker_name="Ann",
                place=place,
                requested_at=now,
                expires_at=now + timedelta(minutes=minutes),
            )
            approval = approval_rows.insert(db, approval)
            for each in places:
                approval_rows.insert_prompt(db, approval.id, each)
            return approval

        approval = await self.house.database.write(transaction)
        self.desk.look()
        await self.house.clock.settle()
        return approval

    async def press(
        self,
        approval: Approval,
        presser: Identity = OLGA,
        button: Button = Button.APPROVE,
        *,
        place: Place | None = None,
        reason: str = "",
    ) -> PressReply:
        """Somebody presses a button."""
        reply = await self.desk.press(
            ButtonPress(
                channel="fake",
                presser=presser,
                presser_name=presser.id.title(),
                approval=approval.id,
                button=button,
                place=place,
                reason=reason,
            )
        )
        await self.house.clock.settle()
        return reply

    async def type(self, code: str, presser: Identity = OLGA) -> PressReply:
        """Somebody types `/approve CODE`."""
        return await self.desk.press(ButtonPress(channel="fake", presser=presser, code=code, button=Button.APPROVE))

    async def state(self, approval: Approval) -> ApprovalState:
        """How an approval stands."""
        found = await self.approvals.get(approval.id)
        assert found is not None
        return found.state

    async def write(self, who: Identity, place: Place, *, direct: bool = False) -> None:
        """Somebody writes in a place."""
        now = self.house.clock.now()

        def transaction(db: sqlite3.Connection) -> None:
            conversation = conversations.ensure(db, ConversationKey(place), direct=direct, now=now)
            db.execute(
                "INSERT INTO inbox"
                " (channel, event_id, conversation_id, message_id, sender, state, envelope, accepted_at)"
                " VALUES (?, ?, ?, 'm', ?, 'done', '', ?)",
                (place.channel, f"e{who}{stamp(now)}", conversation, str(who), stamp(now)),
            )

        await self.house.database.write(transaction)


class Offices:
    """Opens offices on one store, one after another."""

    def __init__(self, houses: Houses) -> None:
        self.houses = houses

    @asynccontextmanager
    async def open(
        self,
        rules: OperatorRules = ONE_OPERATOR,
        channel: PlainChannel | None = None,
        store: type[Approvals] = Approvals,
        notice_after: float | None = None,
        kind: ChannelKind | None = None,
    ) -> AsyncIterator[Office]:
        """A running desk; leaving it is as abrupt as a kill."""
        async with self.houses.open(channel, notice_after=notice_after, kind=kind) as house:
            approvals = store(house.database, house.clock)
            woken: list[ConversationId] = []
            redactor = Redactor()

            def draw(approval: Approval) -> ApprovalPrompt:
                return approval_prompt(approval, redactor, house.clock.now())

            wires = DeskWires(
                database=house.database,
                approvals=approvals,
                conversations=Conversations(house.database),
                inbox=Inbox(house.database, house.clock),
                delivery=house.delivery,
                draw=draw,
                grant_pattern=lambda _: "make",
                wake=woken.append,
                clock=house.clock,
                log=house.log,
            )
            desk = ApprovalDesk(rules, wires, jitter=lambda longest: longest)
            task = asyncio.create_task(desk.run())
            await house.clock.settle()
            try:
                yield Office(house, desk, approvals, woken)
            finally:
                task.cancel()
                await asyncio.wait((task,))
                if not task.cancelled():
                    task.result()
