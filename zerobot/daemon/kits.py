"""Gives each turn its kit: that of the agent who answers on its channel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from zerobot.config.loader import LoadedConfig
from zerobot.config.schema import AgentSettings
from zerobot.core.tools import Tool
from zerobot.daemon.models import Models
from zerobot.daemon.system_prompt import system_prompt
from zerobot.store.turn_rows import Turn
from zerobot.tools.registry import selected
from zerobot.turn.kit import TurnKit, TurnLimits


@dataclass(frozen=True, slots=True)
class _Agent:
    """What is the same in every turn of an agent, made once."""

    settings: AgentSettings
    system: str
    tools: Mapping[str, Tool]
    limits: TurnLimits
    joins: timedelta | None


class KitMaker:
    """Makes kits.

    Args:
        config: Says which agent answers where.
        models: Opens the models.
        shared: What all kits have in common; its tools are all that there are, an agent has some of them.
        command_prefix: What our texts name commands by on a channel.
    """

    def __init__(
        self, config: LoadedConfig, models: Models, shared: TurnKit, command_prefix: Callable[[str], str]
    ) -> None:
        self._config = config
        self._models = models
        self._shared = shared
        self._command_prefix = command_prefix
        self._agents: dict[str, _Agent] = {}

    def kit(self, turn: Turn) -> TurnKit:
        """The kit for a turn."""
        return self.kit_at(turn.place.channel, turn.model)

    def kit_at(self, channel: str, model: str) -> TurnKit:
        """The kit for whatever is done on a channel; `model` is the conversation's own choice, empty: the agent's."""
        agent = self._agent(channel)
        route = self._models.route(agent.settings, model)
        return replace(
            self._shared,
            route=route,
            system=agent.system,
            tools=agent.tools,
            limits=agent.limits,
            joins=agent.joins,
            command_prefix=self._command_prefix(channel),
            window=self._models.window(route),
        )

    def _agent(self, channel: str) -> _Agent:
        if channel not in self._agents:
            settings = self._config.settings.agent_for(channel)
            self._agents[channel] = _Agent(
                settings=settings,
                system=system_prompt(settings),
                tools={tool.name: tool for tool in selected(self._shared.tools.values(), settings.tools)},
                limits=TurnLimits(
                    max_steps=settings.max_steps,
                    timeout=settings.turn_timeout,
                    history_messages=settings.history_messages,
                ),
                joins=timedelta(seconds=settings.debounce) if settings.on_message_during_turn == "steer" else None,
            )
        return self._agents[channel]
