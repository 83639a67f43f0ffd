"""Gives each turn its kit: that of the agent who answers on its channel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zerobot.config.loader import LoadedConfig
from zerobot.config.schema import AgentSettings
from zerobot.core.clock import Clock
from zerobot.core.hooks import Hooks
from zerobot.core.log import EventLog
from zerobot.core.tools import Tool
from zerobot.daemon.models import Models
from zerobot.daemon.prompts import system_prompt
from zerobot.store.summaries import Summaries
from zerobot.store.turn_rows import Turn
from zerobot.store.turns import Turns
from zerobot.tools.registry import selected
from zerobot.turn.kit import AccessState, CostOf, FetchFile, Operators, StrayTasks, TurnKit, TurnLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class KitParts:
    """What all kits share."""

    turns: Turns
    summaries: Summaries
    models: Models
    tools: Sequence[Tool]
    """All that there are; an agent has some of them."""
    access: AccessState
    operators: Operators
    fetch: FetchFile
    receipt_key: bytes
    hooks: Hooks
    strays: StrayTasks
    cost: CostOf
    clock: Clock
    log: EventLog


@dataclass(frozen=True, slots=True)
class _Agent:
    """What is the same in every turn of an agent, made once."""

    settings: AgentSettings
    system: str
    tools: Mapping[str, Tool]
    limits: TurnLimits


class KitMaker:
    """Makes kits.

    Args:
        config: Says which agent answers where.
        parts: What all kits share.
    """

    def __init__(self, config: LoadedConfig, parts: KitParts) -> None:
        self._config = config
        self._parts = parts
        self._agents: dict[str, _Agent] = {}

    def kit(self, turn: Turn) -> TurnKit:
        """The kit for a turn."""
        agent = self._agent(turn.place.channel)
        parts = self._parts
        return TurnKit(
            turns=parts.turns,
            summaries=parts.summaries,
            route=parts.models.route(agent.settings, turn.model),
            system=agent.system,
            tools=agent.tools,
            access=parts.access,
            operators=parts.operators,
            fetch=parts.fetch,
            receipt_key=parts.receipt_key,
            clock=parts.clock,
            log=parts.log,
            limits=agent.limits,
            hooks=parts.hooks,
            strays=parts.strays,
            cost=parts.cost,
        )

    def _agent(self, channel: str) -> _Agent:
        if channel not in self._agents:
            settings = self._config.settings.agent_for(channel)
            self._agents[channel] = _Agent(
                settings=settings,
                system=system_prompt(settings),
                tools={tool.name: tool for tool in selected(self._parts.tools, settings.tools)},
                limits=TurnLimits(
                    max_steps=settings.max_steps,
                    timeout=settings.turn_timeout,
                    history_messages=settings.history_messages,
                ),
            )
        return self._agents[channel]
