"""What an owner should hear at the start: settings that contradict each other or do nothing."""

from collections.abc import Collection, Iterator, Sequence

from zerobot.config.loader import LoadedConfig
from zerobot.config.schema import AgentSettings, Settings
from zerobot.daemon.access_state import configured_bounds, configured_policy
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.costs import catalogue_of, limits_of
from zerobot.security.commands import read_command
from zerobot.security.paths import GuardedFiles
from zerobot.security.policy import AccessPolicy, policy_faults
from zerobot.security.redact import too_short
from zerobot.security.sandbox import SandboxKind, SandboxState
from zerobot.tools.fetch_url import NAME as FETCH_TOOL
from zerobot.tools.memory_tools import NAMES as MEMORY_TOOLS
from zerobot.tools.registry import builtin_tools, unused_patterns
from zerobot.tools.shell import ShellSettings


def start_warnings(config: LoadedConfig, policy: AccessPolicy, tools: Collection[str]) -> Iterator[str]:
    """Sentences about settings that are valid one by one but not together; the daemon starts all the same.

    Args:
        config: The settings.
        policy: What they mean for access.
        tools: The names of all tools; empty: not known, so that nothing is said of names.
    """
    settings = config.settings
    yield from policy_faults(policy, settings.security.allowed_commands)
    yield from _unread_commands(settings.security.allowed_commands)
    if tools:
        yield from _unused_names(config, tools)
    yield from _unpriced(config)
    if too_short(value for _, value in config.secrets):
        yield "a configured secret is so short that it cannot be recognised, and so not masked, in logs and results"


def foreseen(config: LoadedConfig) -> list[str]:
    """The same before a start, for `zerobot config check`."""
    bounds = configured_bounds(config)
    # Whether a sandbox works is found by starting one, which is the daemon's and doctor's business.
    hoped = SandboxKind.OFF if config.settings.security.sandbox == "off" else SandboxKind.BUBBLEWRAP
    policy = configured_policy(config, bounds, SandboxState(hoped))
    builtin = builtin_tools(GuardedFiles(policy.bounds), ShellSettings(), SystemClock())
    tools = [*(tool.name for tool in builtin), FETCH_TOOL]
    if config.settings.memory.enabled:
        tools += MEMORY_TOOLS
    # What plug-ins add is known only once they are open.
    more = any(table.enabled for table in config.settings.plugins.values())
    return list(start_warnings(config, policy, () if more else tools))


def _agents(settings: Settings) -> dict[str, AgentSettings]:
    return {"agent": settings.agent, **{f"agents.{name}": each for name, each in settings.agents.items()}}


def _unused_names(config: LoadedConfig, tools: Collection[str]) -> Iterator[str]:
    settings = config.settings
    for name, agent in _agents(settings).items():
        for pattern in unused_patterns(tools, agent.tools):
            yield f"{name}.tools: no tool is called {pattern!r}"
    for key in ("auto_approve", "always_ask", "denied_tools"):
        for pattern in unused_patterns(tools, getattr(settings.security, key)):
            yield f"security.{key}: no tool is called {pattern!r}"


def _unpriced(config: LoadedConfig) -> Iterator[str]:
    """Models that are not asked because nobody knows what they cost."""
    settings = config.settings
    if not limits_of(settings.budget):
        return
    catalogue = catalogue_of(config)
    for name, agent in _agents(settings).items():
        for key, models in (("model", (agent.model,)), ("fallback_models", agent.fallback_models)):
            for model in models:
                if key in agent.model_fields_set and catalogue.price_of(model) is None:
                    yield (
                        f"{name}.{key}: {model} is never asked: [budget] sets a limit and its price is not known; "
                        f'set input_price and output_price in [models."{model}"]'
                    )


def _unread_commands(lines: Sequence[str]) -> Iterator[str]:
    """Prefixes that no line can begin with: a rule compares the words of one plain command."""
    for line in lines:
        reading = read_command(line)
        if line.strip() and reading.segments != (tuple(line.split()),):
            why = reading.unproved or "it is more than the plain words of one command"
            yield f"security.allowed_commands: {line!r} matches nothing: {why}"
