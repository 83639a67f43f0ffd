"""The plug-ins that the owner has written tables for: opened, and put together into one."""

from collections.abc import Iterable, Sequence
from itertools import chain

from zerobot.config.loader import LoadedConfig
from zerobot.core.clock import Clock
from zerobot.core.errors import ConfigError
from zerobot.core.guards import Guards, Ruling
from zerobot.core.hooks import Hooks
from zerobot.core.log import BoundLog, EventLog
from zerobot.core.plugin import Plugin, PluginServices
from zerobot.core.tools import Tool
from zerobot.daemon.http import HttpClients
from zerobot.delivery.fence import fenced


def open_plugins(config: LoadedConfig, http: HttpClients, clock: Clock, log: EventLog) -> Plugin:
    """Open the plug-ins, in the order of their tables.

    Returns:
        One that is all of them.

    Raises:
        ConfigError: One does not open: the daemon does not run without what its owner relies on.
    """
    opened: dict[str, Plugin] = {}
    for name, table in config.settings.plugins.items():
        if not table.enabled:
            continue
        services = PluginServices(name=name, http=http.guarded, clock=clock, log=BoundLog(log, plugin=name))
        try:
            opened[name] = config.kinds.plugins[table.kind or name]().open(table, services)
        except Exception as error:
            # Somebody else's code may raise anything; what it says is for the owner.
            raise ConfigError([f"plugins.{name}: does not open: {error}"]) from error

    async def close() -> None:
        for name, plugin in opened.items():
            with fenced(log, "plugin.close_failed", "warning", plugin=name):
                await plugin.close()

    plugins = list(opened.values())
    return Plugin(
        tools=tuple(chain.from_iterable(plugin.tools for plugin in plugins)),
        hooks=_hooks([plugin.hooks for plugin in plugins]),
        guards=_guards([plugin.guards for plugin in plugins]),
        close=close,
    )


def tools_by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """All tools by their names, in the order of these, so that requests to a model stay the same from turn to turn.

    Raises:
        ConfigError: Two have the same name: which of them an operator approves must never be a question.
    """
    named: dict[str, Tool] = {}
    for tool in sorted(tools, key=lambda tool: tool.name):
        if tool.name in named:
            raise ConfigError([f"plugins: there are two tools called {tool.name!r}; leave one of the plug-ins out"])
        named[tool.name] = tool
    return named


def _hooks(each: Sequence[Hooks]) -> Hooks:
    return Hooks(
        prepare=tuple(chain.from_iterable(hooks.prepare for hooks in each)),
        authorize=tuple(chain.from_iterable(hooks.authorize for hooks in each)),
        finalize=tuple(chain.from_iterable(hooks.finalize for hooks in each)),
        before_step=tuple(chain.from_iterable(hooks.before_step for hooks in each)),
        after_step=tuple(chain.from_iterable(hooks.after_step for hooks in each)),
        continue_after_stop=tuple(chain.from_iterable(hooks.continue_after_stop for hooks in each)),
    )


def _guards(each: Sequence[Guards]) -> Guards:
    def on_ruling(ruling: Ruling) -> None:
        for guards in each:
            guards.on_ruling(ruling)

    return Guards(
        input=tuple(chain.from_iterable(guards.input for guards in each)),
        output=tuple(chain.from_iterable(guards.output for guards in each)),
        streams=tuple(chain.from_iterable(guards.streams for guards in each)),
        required=frozenset(chain.from_iterable(guards.required for guards in each)),
        on_ruling=on_ruling,
    )
