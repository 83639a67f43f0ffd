"""The daemon's long-lived parts, wired to each other. Built once; nothing of it is global."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from zerobot.core.approvals import Approval, ApprovalPrompt
from zerobot.core.envelope import TurnOrigin
from zerobot.core.ids import ConversationId
from zerobot.core.places import Place
from zerobot.core.tools import BadArgumentsError, BlockedByToolError, Tool
from zerobot.daemon.access_state import DaemonAccess, configured_policy
from zerobot.daemon.books import Books, books_of
from zerobot.daemon.budget import BudgetPurse
from zerobot.daemon.budget_alarm import BudgetAlarm
from zerobot.daemon.channel_alarm import ChannelAlarms
from zerobot.daemon.command_lane import CommandLane
from zerobot.daemon.commands import ChatCommands, CommandWires
from zerobot.daemon.costs import Costs
from zerobot.daemon.desk import ApprovalDesk, DeskWires
from zerobot.daemon.dispatcher import Dispatcher, DispatcherWires
from zerobot.daemon.door import Door, admission_of
from zerobot.daemon.doorbell import Doorbell, DoorbellWires
from zerobot.daemon.emergency import EmergencyStop
from zerobot.daemon.foundation import Foundation
from zerobot.daemon.intake import IntakeWires
from zerobot.daemon.kits import KitMaker
from zerobot.daemon.routing import Homes, OperatorRules, direct_places, home_of
from zerobot.daemon.start_warnings import start_warnings
from zerobot.daemon.supervisor import Supervisor
from zerobot.daemon.turn_parts import shared_kit, turn_parts
from zerobot.daemon.wards import Wards
from zerobot.delivery.delivery import Delivery
from zerobot.security.access import grant_pattern
from zerobot.security.policy import AccessPolicy
from zerobot.security.prompt import approval_prompt
from zerobot.store.approvals import Approvals
from zerobot.store.channel_state import DAEMON, channel_state
from zerobot.store.moving import move_chat
from zerobot.store.outbox import Outbox
from zerobot.store.turn_rows import Turn, WaitingInput
from zerobot.store.turns import Turns
from zerobot.turn.kit import CostOf, StrayTasks

WAITS = "I am waiting for an operator's decision first; your message comes right after it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything between a channel's intake and its outbox."""

    foundation: Foundation
    books: Books
    access: DaemonAccess
    delivery: Delivery
    wards: Wards
    dispatcher: Dispatcher
    lane: CommandLane
    supervisor: Supervisor
    intake: IntakeWires
    strays: StrayTasks
    costs: Costs
    budget_alarm: BudgetAlarm | None
    """None: no spending limit is set."""


def build_parts(foundation: Foundation) -> Parts:
    """Wire the parts. Where they call each other in a circle, a function looks the other up when it is called."""
    database, clock, log = foundation.database, foundation.clock, foundation.log
    books = books_of(database, clock)
    policy = configured_policy(foundation.config, foundation.bounds, foundation.box.state)
    access = DaemonAccess(policy, books.grants, channel_state(database, DAEMON), foundation.own_secrets, clock)
    for_turns = turn_parts(foundation, books.usage)
    _warn(foundation, policy, for_turns.tools)

    def wake(conversation: ConversationId) -> None:
        dispatcher.wake(conversation)

    async def moved(old: Place, new_chat: str) -> None:
        for conversation in await move_chat(database, old.channel, old.chat, new_chat):
            wake(conversation)

    async def stop(conversation: ConversationId) -> bool:
        return await dispatcher.stop(conversation)

    delivery = Delivery(foundation.channels, Outbox(database, clock), clock, log, moved)

    rules = _operator_rules(foundation)
    desk = ApprovalDesk(rules, _desk_wires(foundation, books, delivery, for_turns.tools, rules, wake))
    wards = _wards(foundation, books, access, delivery, rules, desk, stop)
    shared = shared_kit(foundation, for_turns, books.turns, access, desk)
    kits = KitMaker(foundation.config, for_turns.models, shared, delivery.command_prefix)
    dispatcher = Dispatcher(
        _dispatcher_wires(foundation, books.turns, kits, delivery, rules, wards, shared.cost),
        foundation.config.settings.daemon.max_turns,
    )
    commands = CommandWires(
        books=books,
        dispatcher=dispatcher,
        access=access,
        wards=wards,
        answered=delivery.reply_queued,
        models=for_turns.models,
        kits=kits,
        memory=for_turns.memory.backend,
        costs=for_turns.costs,
        budget=for_turns.reservations,
        command_prefix=delivery.command_prefix,
        agent_for=foundation.config.settings.agent_for,
        clock=clock,
        log=log,
    )
    lane = CommandLane(books.inbox, ChatCommands(commands).carry_out, clock, log)
    supervisor = Supervisor(foundation.bare_channels, clock, log)
    intake = IntakeWires(
        inbox=books.inbox,
        wake=wake,
        command=lane.begin,
        interrupt=dispatcher.interrupt,
        guards=shared.guards,
        press=wards.press,
        may_press=wards.may_press,
        notice=delivery.notice,
        stranger=wards.doorbell.look,
        move=moved,
        alarm=_channel_alarms(foundation, rules, delivery).tell,
        alive=supervisor.alive,
        log=log,
    )
    return Parts(
        foundation=foundation,
        books=books,
        access=access,
        delivery=delivery,
        wards=wards,
        dispatcher=dispatcher,
        lane=lane,
        supervisor=supervisor,
        intake=intake,
        strays=shared.strays,
        costs=for_turns.costs,
        budget_alarm=_budget_alarm(foundation, for_turns.purse, delivery),
    )


def _warn(foundation: Foundation, policy: AccessPolicy, tools: Mapping[str, Tool]) -> None:
    for text in start_warnings(foundation.config, policy, tools):
        foundation.log("config.warning", level="warning", text=text)


def _wards(
    foundation: Foundation,
    books: Books,
    access: DaemonAccess,
    delivery: Delivery,
    rules: OperatorRules,
    desk: ApprovalDesk,
    stop: Callable[[ConversationId], Awaitable[bool]],
) -> Wards:
    settings, local, log = foundation.config.settings, foundation.local_operator, foundation.log
    bells = DoorbellWires(pairings=books.pairings, delivery=delivery, clock=foundation.clock, log=log)
    return Wards(
        desk=desk,
        door=Door(
            admissions={
                name: admission_of(settings, name, each.kind, local) for name, each in foundation.channels.items()
            },
            channels=foundation.bare_channels,
            homes=_homes(foundation),
            pairings=books.pairings,
            inbox=books.inbox,
            conversations=books.conversations,
            stop=stop,
        ),
        doorbell=Doorbell(rules, bells),
        emergency=EmergencyStop(access=access, conversations=books.conversations, delivery=delivery, log=log),
    )


def _operator_rules(foundation: Foundation) -> OperatorRules:
    settings = foundation.config.settings
    timeouts = {
        name: timedelta(seconds=table.approval_timeout)
        for name, table in settings.channels.items()
        if table.approval_timeout is not None
    }
    return OperatorRules(
        users=settings.operators.identities,
        notify=settings.operators.notify,
        self_approval=settings.operators.self_approval,
        local=foundation.local_operator,
        platforms={name: each.kind.name for name, each in foundation.channels.items()},
        timeout=timedelta(seconds=settings.security.approval_timeout),
        timeouts=timeouts,
        homes=_homes(foundation),
    )


def _homes(foundation: Foundation) -> Homes:
    """The own scopes of the open channels, as they are known when they are asked for."""

    def homes(platform: str) -> tuple[str, ...]:
        channels = (each.channel for each in foundation.channels.values() if each.kind.name == platform)
        return tuple(dict.fromkeys(home for channel in channels for home in home_of(channel)))

    return homes


def _channel_alarms(foundation: Foundation, rules: OperatorRules, delivery: Delivery) -> ChannelAlarms:
    return ChannelAlarms(
        lambda: direct_places(delivery, rules.users),
        delivery.notice,
        lambda channel: channel_state(foundation.database, channel),
        foundation.clock,
    )


def _desk_wires(
    foundation: Foundation,
    books: Books,
    delivery: Delivery,
    tools: Mapping[str, Tool],
    rules: OperatorRules,
    wake: Callable[[ConversationId], None],
) -> DeskWires:
    def draw(approval: Approval) -> ApprovalPrompt:
        prompt = approval_prompt(approval, foundation.redactor, foundation.clock.now(), foundation.own_secrets)
        return replace(prompt, operators=rules.operators_at(approval.place))

    def pattern(approval: Approval) -> str | None:
        try:
            return grant_pattern(approval.tool, tools[approval.tool].resolve(approval.arguments))
        except (KeyError, BadArgumentsError, BlockedByToolError):
            return None

    return DeskWires(
        database=foundation.database,
        approvals=Approvals(foundation.database, foundation.clock),
        conversations=books.conversations,
        inbox=books.inbox,
        delivery=delivery,
        draw=draw,
        grant_pattern=pattern,
        wake=wake,
        clock=foundation.clock,
        log=foundation.log,
    )


def _dispatcher_wires(
    foundation: Foundation,
    turns: Turns,
    kits: KitMaker,
    delivery: Delivery,
    rules: OperatorRules,
    wards: Wards,
    cost: CostOf,
) -> DispatcherWires:
    settings = foundation.config.settings

    def supersedes(waiting: WaitingInput) -> bool:
        place = waiting.envelope.place
        rule = settings.agent_for(place.channel).on_message_during_approval
        if rule == "auto":
            return waiting.envelope.sender in rules.deciders(waiting.asker, place, direct=waiting.envelope.direct)
        return rule == "supersede"

    async def welcome(turn: Turn) -> bool:
        return turn.origin is not TurnOrigin.USER or await wards.door.welcome(turn.asker, turn.place.channel)

    async def queued_behind(turn: Turn) -> None:
        await delivery.notice_once(turn.place, WAITS, turn.conversation, turn.id)

    return DispatcherWires(
        turns=turns,
        kit=kits.kit,
        supersedes=supersedes,
        welcome=welcome,
        channels={name: timedelta(seconds=settings.agent_for(name).debounce) for name in foundation.channels},
        view=delivery.view,
        approvals_changed=wards.desk.look,
        queued_behind=queued_behind,
        cost=cost,
        clock=foundation.clock,
        log=foundation.log,
    )


def _budget_alarm(foundation: Foundation, purse: BudgetPurse | None, delivery: Delivery) -> BudgetAlarm | None:
    if purse is None:
        return None
    operators = foundation.config.settings.operators.identities
    return BudgetAlarm(
        purse,
        lambda: direct_places(delivery, operators),
        delivery.notice,
        channel_state(foundation.database, DAEMON),
        foundation.clock,
        foundation.log,
    )
