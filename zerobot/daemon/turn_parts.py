"""What turns work with, whichever agent answers: tools, memory, models, money, and the kit that is made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from zerobot.core.guards import Guards, StreamPost
from zerobot.core.hooks import Hooks
from zerobot.core.provider_kind import ProviderServices
from zerobot.core.tools import Tool
from zerobot.daemon.attachments import AttachmentFetcher, PictureReader
from zerobot.daemon.budget import BudgetPurse, reservations_of
from zerobot.daemon.costs import Costs
from zerobot.daemon.desk import ApprovalDesk
from zerobot.daemon.foundation import Foundation
from zerobot.daemon.memory_parts import MemoryParts, memory_parts
from zerobot.daemon.models import Models
from zerobot.daemon.plugins import tools_by_name
from zerobot.daemon.result_files import ResultFiles
from zerobot.daemon.result_redaction import RedactResults
from zerobot.security.leaks import LeakGuard
from zerobot.security.paths import GuardedFiles
from zerobot.security.web import WebReader
from zerobot.store.reservations import Reservations
from zerobot.store.summaries import Summaries
from zerobot.store.turns import Turns
from zerobot.store.usage import UsageLog
from zerobot.tools.fetch_url import fetch_tool
from zerobot.tools.registry import builtin_tools
from zerobot.tools.shell import ShellSettings
from zerobot.turn.kit import NO_ROUTE, AccessState, TurnKit, TurnLimits
from zerobot.turn.purse import UNLIMITED


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParts:
    """What the parts of the daemon share with the turns."""

    files: GuardedFiles
    tools: Mapping[str, Tool]
    """All that there are; an agent has some of them."""
    memory: MemoryParts
    models: Models
    costs: Costs
    reservations: Reservations | None
    """None, as is the purse: no spending limit is set."""
    purse: BudgetPurse | None


def turn_parts(foundation: Foundation, usage: UsageLog) -> TurnParts:
    """Wire them.

    Args:
        foundation: What they stand on.
        usage: What model calls took.
    """
    config, database, clock, log = foundation.config, foundation.database, foundation.clock, foundation.log
    files = GuardedFiles(foundation.bounds)
    memory = memory_parts(config, database, clock, log)
    costs = Costs(config, usage)
    reservations = reservations_of(costs, database, clock)
    return TurnParts(
        files=files,
        tools=_tools(foundation, files, memory),
        memory=memory,
        models=_models(foundation, costs, files),
        costs=costs,
        reservations=reservations,
        purse=BudgetPurse(reservations, costs.catalogue.price_of, clock, log) if reservations else None,
    )


def shared_kit(
    foundation: Foundation, parts: TurnParts, turns: Turns, access: AccessState, desk: ApprovalDesk
) -> TurnKit:
    """What the kits of all turns have in common; route, prompt, tools and limits are those of no agent yet."""
    clock, log = foundation.clock, foundation.log
    return TurnKit(
        turns=turns,
        summaries=Summaries(foundation.database, clock),
        route=NO_ROUTE,
        system="",
        tools=parts.tools,
        limits=TurnLimits(),
        access=access,
        operators=desk,
        waiting_words=desk.waiting_words,
        fetch=AttachmentFetcher(foundation.bare_channels, parts.files, _attachment_limits(foundation), log),
        receipt_key=foundation.state.receipt_key(),
        hooks=_hooks(foundation),
        guards=_guards(foundation),
        show_receipts=foundation.config.settings.security.show_receipts,
        save_result=ResultFiles(parts.files, log),
        recall=parts.memory.recall,
        cost=parts.costs.of_turn,
        purse=parts.purse or UNLIMITED,
        clock=clock,
        log=log,
    )


def _tools(foundation: Foundation, files: GuardedFiles, memory: MemoryParts) -> Mapping[str, Tool]:
    builtin = builtin_tools(files, ShellSettings(box=foundation.box), foundation.clock)
    fetch = fetch_tool(WebReader(), foundation.own_secrets)
    return tools_by_name([*builtin, fetch, *memory.tools, *foundation.plugin.tools])


def _models(foundation: Foundation, costs: Costs, files: GuardedFiles) -> Models:
    services = ProviderServices(http=foundation.http.guarded, clock=foundation.clock, log=foundation.log)
    pictures = PictureReader(files, foundation.log)
    return Models(foundation.config, services, lambda: costs.catalogue, pictures)


def _hooks(foundation: Foundation) -> Hooks:
    """Those of the plug-ins; the redactor is the last that sees a result, whatever they put into it."""
    hooks = foundation.plugin.hooks
    return replace(hooks, finalize=(*hooks.finalize, RedactResults(foundation.redactor)))


def _guards(foundation: Foundation) -> Guards:
    """Those of the plug-ins; the leak guard is the last that sees a stream, whatever they put into it."""
    guards = foundation.plugin.guards
    return replace(guards, streams=(*guards.streams, StreamPost(guard=LeakGuard(foundation.redactor))))


def _attachment_limits(foundation: Foundation) -> dict[str, int]:
    tables = foundation.config.settings.channels
    return {name: getattr(table, "max_attachment", 0) for name, table in tables.items()}
