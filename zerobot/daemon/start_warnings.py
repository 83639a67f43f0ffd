"""What an owner should hear at the start: settings that contradict each other or do nothing."""

from collections.abc import Iterator, Sequence

from zerobot.config.loader import LoadedConfig
from zerobot.core.tools import Tool
from zerobot.security.policy import AccessPolicy, policy_faults
from zerobot.security.redact import too_short
from zerobot.tools.registry import unused_patterns


def start_warnings(config: LoadedConfig, policy: AccessPolicy, tools: Sequence[Tool]) -> Iterator[str]:
    """Sentences about settings that are valid one by one but not together; the daemon starts all the same."""
    settings = config.settings
    yield from policy_faults(policy, settings.security.allowed_commands)
    for name, agent in {
        "agent": settings.agent,
        **{f"agents.{name}": each for name, each in settings.agents.items()},
    }.items():
        for pattern in unused_patterns(tools, agent.tools):
            yield f"{name}.tools: no tool is called {pattern!r}"
    for key in ("auto_approve", "always_ask", "denied_tools"):
        for pattern in unused_patterns(tools, getattr(settings.security, key)):
            yield f"security.{key}: no tool is called {pattern!r}"
    if too_short(value for _, value in config.secrets):
        yield "a configured secret is so short that it cannot be recognised, and so not masked, in logs and results"
