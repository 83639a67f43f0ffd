"""The daemon's long-lived parts, wired to each other. Built once; nothing of it is global."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from zerobot.config.loader import LoadedConfig
from zerobot.core.approvals import Approval, ApprovalPrompt
from zerobot.core.channel import Channel
from zerobot.core.clock import Clock
from zerobot.core.envelope import TurnOrigin
from zerobot.core.guards import Guards, StreamPost
from zerobot.core.hooks import Hooks
from zerobot.core.ids import ConversationId
from zerobot.core.log import EventLog
from zerobot.core.places import Identity, Place
from zerobot.core.plugin import Plugin
from zerobot.core.provider_kind import ProviderServices
from zerobot.core.terminal import TakesTerminals
from zerobot.core.tools import BadArgumentsError, BlockedByToolError, Tool
from zerobot.daemon.access_state import DaemonAccess, configured_policy
from zerobot.daemon.attachments import AttachmentFetcher, PictureReader
from zerobot.daemon.budget import purse_of, reservations_of
from zerobot.daemon.command_lane import CommandLane
from zerobot.daemon.commands import ChatCommands, CommandBooks, CommandWires
from zerobot.daemon.costs import Costs
from zerobot.daemon.desk import ApprovalDesk, DeskWires
from zerobot.daemon.dispatcher import Dispatcher, DispatcherWires
from zerobot.daemon.door import Door, admission_of
from zerobot.daemon.doorbell import Doorbell, DoorbellWires
from zerobot.daemon.emergency import EmergencyStop
from zerobot.daemon.http import HttpClients
from zerobot.daemon.intake import IntakeWires
from zerobot.daemon.kits import KitMaker
from zerobot.daemon.memory_parts import MemoryParts, memory_parts
from zerobot.daemon.models import Models
from zerobot.daemon.plugins import tools_by_name
from zerobot.daemon.result_files import ResultFiles
from zerobot.daemon.result_redaction import RedactResults
from zerobot.daemon.routing import OperatorRules
from zerobot.daemon.start_warnings import start_warnings
from zerobot.daemon.supervisor import Supervisor
from zerobot.daemon.wards import Wards
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.line import OpenChannel
from zerobot.sandbox.box import Box
from zerobot.security.access import grant_pattern
from zerobot.security.bounds import Bounds
from zerobot.security.leaks import LeakGuard
from zerobot.security.own_secrets import OwnSecrets
from zerobot.security.paths import GuardedFiles
from zerobot.security.policy import AccessPolicy
from zerobot.security.prompt import approval_prompt
from zerobot.security.redact import Redactor
from zerobot.security.web import WebReader
from zerobot.store.approvals import Approvals
from zerobot.store.audit import Audit
from zerobot.store.channel_state import DAEMON, channel_state
from zerobot.store.conversations import Conversations
from zerobot.store.database import Database
from zerobot.store.grants import Grants
from zerobot.store.inbox import Inbox
from zerobot.store.moving import move_chat
from zerobot.store.outbox import Outbox
from zerobot.store.pairing import Pairings
from zerobot.store.state_dir import StateDir
from zerobot.store.summaries import Summaries
from zerobot.store.turn_rows import Turn, WaitingInput
from zerobot.store.turns import Turns
from zerobot.store.usage import UsageLog
from zerobot.tools.fetch_url import fetch_tool
from zerobot.tools.registry import builtin_tools
from zerobot.tools.shell import ShellSettings
from zerobot.turn.kit import NO_ROUTE, CostOf, StrayTasks, TurnKit, TurnLimits
from zerobot.turn.purse import Purse

WAITS = "I am waiting for an operator's decision first; your message comes right after it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """What the engine stands on: made by the daemon before it, and closed after it."""

    config: LoadedConfig
    state: StateDir
    """Locked."""
    database: Database
    channels: Mapping[str, OpenChannel]
    plugin: Plugin
    """All plug-ins, as one."""
    http: HttpClients
    redactor: Redactor
    """Knows the configured secrets."""
    bounds: Bounds
    box: Box
    """Holds the commands of tools."""
    own_secrets: OwnSecrets
    """The same by their keys."""
    clock: Clock
    log: EventLog

    @property
    def local_operator(self) -> Identity | None:
        """The person at the terminal, if there is a channel for terminals."""
        kinds = [each.kind.name for each in self.channels.values() if isinstance(each.channel, TakesTerminals)]
        return Identity(kinds[0], "local") if kinds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything between a channel's intake and its outbox."""

    foundation: Foundation
    books: CommandBooks
    access: DaemonAccess
    delivery: Delivery
    desk: ApprovalDesk
    wards: Wards
    dispatcher: Dispatcher
    lane: CommandLane
    supervisor: Supervisor
    intake: IntakeWires
    strays: StrayTasks
    purse: Purse


def build_parts(foundation: Foundation) -> Parts:
    """Wire the parts. Where they call each other in a circle, a function looks the other up when it is called."""
    database, clock, log = foundation.database, foundation.clock, foundation.log
    books = _books(database, clock)
    policy = configured_policy(foundation.config, foundation.bounds, foundation.box.state)
    access = DaemonAccess(policy, books.grants, channel_state(database, DAEMON), foundation.own_secrets, clock)
    costs = Costs(foundation.config, books.usage)
    files = GuardedFiles(policy.bounds)
    models = _models(foundation, costs, files)
    memory = memory_parts(foundation.config, database, clock, log)
    tools = _tools(foundation, files, memory)
    _warn(foundation, policy, tools)

    async def moved(old: Place, new_chat: str) -> None:
        for conversation in await move_chat(database, old.channel, old.chat, new_chat):
            dispatcher.wake(conversation)

    def wake(conversation: ConversationId) -> None:
        dispatcher.wake(conversation)

    async def stop(conversation: ConversationId) -> bool:
        return await dispatcher.stop(conversation)

    delivery = Delivery(foundation.channels, Outbox(database, clock), clock, log, moved)

    rules = _operator_rules(foundation)
    desk = ApprovalDesk(rules, _desk_wires(foundation, books, delivery, tools, wake))
    wards = _wards(foundation, books, access, delivery, rules, desk, stop)
    shared = _shared_kit(foundation, books.turns, access, desk, costs, files, tools, memory)
    kits = KitMaker(foundation.config, models, shared)
    dispatcher = Dispatcher(
        _dispatcher_wires(foundation, books.turns, kits, delivery, desk, rules, wards.door, costs.of_turn),
        foundation.config.settings.daemon.max_turns,
    )
    commands = CommandWires(
        books=books,
        dispatcher=dispatcher,
        desk=desk,
        access=access,
        wards=wards,
        answered=delivery.reply_queued,
        models=models,
        kits=kits,
        memory=memory.backend,
        costs=costs,
        budget=reservations_of(costs, database, clock),
        agent_for=foundation.config.settings.agent_for,
        clock=clock,
        log=log,
    )
    lane = CommandLane(books.inbox, ChatCommands(commands).carry_out, clock, log)
    supervisor = Supervisor(_bare(foundation), clock, log)
    intake = IntakeWires(
        inbox=books.inbox,
        wake=wake,
        command=lane.begin,
        interrupt=dispatcher.interrupt,
        guards=shared.guards,
        press=wards.press,
        may_press=wards.may_press,
        notice=_notice(delivery),
        stranger=wards.doorbell.look,
        move=moved,
        alive=supervisor.alive,
        log=log,
    )
    return Parts(
        foundation=foundation,
        books=books,
        access=access,
        delivery=delivery,
        desk=desk,
        wards=wards,
        dispatcher=dispatcher,
        lane=lane,
        supervisor=supervisor,
        intake=intake,
        strays=shared.strays,
        purse=shared.purse,
    )


def _tools(foundation: Foundation, files: GuardedFiles, memory: MemoryParts) -> Mapping[str, Tool]:
    builtin = builtin_tools(files, ShellSettings(box=foundation.box), foundation.clock)
    fetch = fetch_tool(WebReader(), foundation.own_secrets)
    return tools_by_name([*builtin, fetch, *memory.tools, *foundation.plugin.tools])


def _models(foundation: Foundation, costs: Costs, files: GuardedFiles) -> Models:
    services = ProviderServices(http=foundation.http.guarded, clock=foundation.clock, log=foundation.log)
    pictures = PictureReader(files, foundation.log)
    return Models(foundation.config, services, lambda: costs.catalogue, pictures)


def _warn(foundation: Foundation, policy: AccessPolicy, tools: Mapping[str, Tool]) -> None:
    for text in start_warnings(foundation.config, policy, tools):
        foundation.log("config.warning", level="warning", text=text)


def _shared_kit(
    foundation: Foundation,
    turns: Turns,
    access: DaemonAccess,
    desk: ApprovalDesk,
    costs: Costs,
    files: GuardedFiles,
    tools: Mapping[str, Tool],
    memory: MemoryParts,
) -> TurnKit:
    """What the kits of all turns have in common; route, prompt, tools and limits are those of no agent yet."""
    clock, log = foundation.clock, foundation.log
    return TurnKit(
        turns=turns,
        summaries=Summaries(foundation.database, clock),
        route=NO_ROUTE,
        system="",
        tools=tools,
        limits=TurnLimits(),
        access=access,
        operators=desk,
        fetch=AttachmentFetcher(_bare(foundation), files, _attachment_limits(foundation), log),
        receipt_key=foundation.state.receipt_key(),
        hooks=_hooks(foundation),
        guards=_guards(foundation),
        show_receipts=foundation.config.settings.security.show_receipts,
        save_result=ResultFiles(files, log),
        recall=memory.recall,
        cost=costs.of_turn,
        purse=purse_of(costs, foundation.database, clock, log),
        clock=clock,
        log=log,
    )


def _hooks(foundation: Foundation) -> Hooks:
    """Those of the plug-ins; the redactor is the last that sees a result, whatever they put into it."""
    hooks = foundation.plugin.hooks
    return replace(hooks, finalize=(*hooks.finalize, RedactResults(foundation.redactor)))


def _guards(foundation: Foundation) -> Guards:
    """Those of the plug-ins; the leak guard is the last that sees a stream, whatever they put into it."""
    guards = foundation.plugin.guards
    return replace(guards, streams=(*guards.streams, StreamPost(guard=LeakGuard(foundation.redactor))))


def _books(database: Database, clock: Clock) -> CommandBooks:
    return CommandBooks(
        inbox=Inbox(database, clock),
        turns=Turns(database, clock),
        conversations=Conversations(database),
        grants=Grants(database, clock),
        pairings=Pairings(database, clock),
        usage=UsageLog(database),
        audit=Audit(database, clock),
    )


def _notice(delivery: Delivery) -> Callable[[Place, str, str], Awaitable[object]]:
    async def notice(place: Place, text: str, reply_to: str) -> object:
        return await delivery.notice(place, text, reply_to=reply_to)

    return notice


def _wards(
    foundation: Foundation,
    books: CommandBooks,
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
                name: admission_of(settings, name, each.kind.name, local) for name, each in foundation.channels.items()
            },
            pairings=books.pairings,
            inbox=books.inbox,
            conversations=books.conversations,
            stop=stop,
        ),
        doorbell=Doorbell(rules, bells),
        emergency=EmergencyStop(access=access, conversations=books.conversations, delivery=delivery, log=log),
    )


def _bare(foundation: Foundation) -> dict[str, Channel]:
    return {name: each.channel for name, each in foundation.channels.items()}


def _attachment_limits(foundation: Foundation) -> dict[str, int]:
    tables = foundation.config.settings.channels
    return {name: getattr(table, "max_attachment", 0) for name, table in tables.items()}


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
    )


def _desk_wires(
    foundation: Foundation,
    books: CommandBooks,
    delivery: Delivery,
    tools: Mapping[str, Tool],
    wake: Callable[[ConversationId], None],
) -> DeskWires:
    def draw(approval: Approval) -> ApprovalPrompt:
        return approval_prompt(approval, foundation.redactor, foundation.clock.now(), foundation.own_secrets)

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
        notice_once=delivery.notice_once,
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
    desk: ApprovalDesk,
    rules: OperatorRules,
    door: Door,
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
        return turn.origin is not TurnOrigin.USER or await door.welcome(turn.asker, turn.place.channel)

    async def queued_behind(turn: Turn) -> None:
        await delivery.notice_once(turn.place, WAITS, turn.conversation, turn.id)

    return DispatcherWires(
        turns=turns,
        kit=kits.kit,
        supersedes=supersedes,
        welcome=welcome,
        channels={name: timedelta(seconds=settings.agent_for(name).debounce) for name in foundation.channels},
        view=delivery.view,
        approvals_changed=desk.look,
        queued_behind=queued_behind,
        cost=cost,
        clock=foundation.clock,
        log=foundation.log,
    )
