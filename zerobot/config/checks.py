"""What only the whole configuration shows: names that lead nowhere, rules that contradict each other."""

from collections.abc import Collection, Iterator, Mapping

from pydantic import BaseModel, SecretStr

from zerobot.config.faults import Fault
from zerobot.config.keys import KeyPath, dotted
from zerobot.config.resolve import named_tables
from zerobot.config.schema import DEFAULT_AGENT, DEMO, AgentSettings, Settings
from zerobot.core.places import Identity

TERMINAL = "console"
"""The kind of channel that is there without a table."""
NO_OPERATORS = "operators.users: is empty: tools that need an approval will be refused"
SHORT_SECRET = 8
"""Characters below which a secret cannot be found and hidden in logs without hiding much else."""


def cross_faults(settings: Settings, tree: Mapping[str, object]) -> Iterator[Fault]:
    """Find names that lead nowhere.

    Args:
        settings: What of the document is valid by itself.
        tree: The whole document: a name leads somewhere even if what is there has a fault of its own.
    """
    yield from _models(settings, _names(tree, "providers"))
    yield from _known_models(_names(tree, "models"), _names(tree, "providers"))
    agents = _names(tree, "agents")
    if DEFAULT_AGENT in agents:
        yield Fault(("agents", DEFAULT_AGENT), "is the name of [agent] itself; put its keys there")
    for name, channel in settings.channels.items():
        if channel.agent != DEFAULT_AGENT and channel.agent not in agents:
            allowed = ", ".join([DEFAULT_AGENT, *sorted(agents)])
            yield Fault(("channels", name, "agent"), f'there is no agent "{channel.agent}"; allowed: {allowed}')


def _names(tree: Mapping[str, object], group: str) -> set[str]:
    tables = tree.get(group)
    return {str(name) for name in tables} if isinstance(tables, dict) else set()


def _models(settings: Settings, providers: set[str]) -> Iterator[Fault]:
    if providers - {DEMO} and "model" not in settings.agent.model_fields_set:
        example = f"{min(providers - {DEMO})}/MODEL"
        yield Fault(("agent", "model"), f'is missing; write PROVIDER/MODEL, for example model = "{example}"')
    agents: list[tuple[KeyPath, AgentSettings]] = [(("agent",), settings.agent)]
    agents += [(("agents", name), table) for name, table in settings.agents.items()]
    for path, agent in agents:
        references: list[tuple[KeyPath, str]] = []
        if path == ("agent",) or "model" in agent.model_fields_set:
            references.append(((*path, "model"), agent.model))
        references += [((*path, "fallback_models", index), model) for index, model in enumerate(agent.fallback_models)]
        for place, reference in references:
            provider = reference.partition("/")[0]
            if provider not in providers:
                allowed = ", ".join(f"{name}/MODEL" for name in sorted(providers))
                yield Fault(place, f"there is no table [providers.{provider}]; allowed: {allowed}")


def _known_models(models: set[str], providers: set[str]) -> Iterator[Fault]:
    """Tables that no model would be looked up in."""
    for name in sorted(models):
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            yield Fault(("models", name), 'is no model; write [models."PROVIDER/MODEL"], with the quotes')
        elif provider not in providers:
            allowed = ", ".join(f"{known}/MODEL" for known in sorted(providers))
            yield Fault(("models", name), f"there is no table [providers.{provider}]; allowed: {allowed}")


def warnings(settings: Settings, tree: Mapping[str, object], kinds: Collection[str]) -> Iterator[str]:
    """Find what can be meant but rarely is.

    Args:
        settings: What of the document is valid.
        tree: The whole document: a channel with a fault of its own is meant to be there.
        kinds: The kinds of channels that are installed.
    """
    yield from _contradictions(settings)
    enabled = [channel for channel in settings.channels.values() if channel.enabled]
    if enabled and not settings.operators.users:
        yield NO_OPERATORS
    faulty = {name: table for name, table in named_tables(tree, "channels").items() if name not in settings.channels}
    used = {channel.kind for channel in enabled} | {table.get("kind") for table in faulty.values()}
    for name, channel in settings.channels.items():
        operated = any(user.startswith(f"{channel.kind}:") for user in settings.operators.users)
        if channel.enabled and not (channel.allowed_users or channel.pairing or operated):
            yield f"channels.{name}: nobody can talk to the bot: allowed_users is empty and pairing is false"
    for user in settings.operators.users:
        platform = Identity.parse(user).platform
        if platform not in kinds:
            yield f"operators.users: {user}: no such kind of channel; known: {', '.join(sorted(kinds))}"
        elif platform not in used and platform != TERMINAL:
            yield f'operators.users: no channel of kind "{platform}" is enabled, so {user} cannot be asked'
    for path, secret in secrets(settings):
        if len(secret) < SHORT_SECRET:
            yield f"{dotted(path)}: is shorter than {SHORT_SECRET} characters: is it whole?"


def _contradictions(settings: Settings) -> Iterator[str]:
    security = settings.security
    for tool in security.auto_approve:
        for stronger in ("denied_tools", "always_ask"):
            if tool in getattr(security, stronger):
                yield f'security.auto_approve: "{tool}" is in {stronger} too, which counts'
    for allowed in security.allowed_paths:
        for forbidden in security.forbidden_paths:
            if allowed.is_relative_to(forbidden):
                yield f'security.allowed_paths: "{allowed}" is inside the forbidden "{forbidden}", which counts'


def secrets(settings: Settings) -> list[tuple[KeyPath, str]]:
    """Every secret of the configuration with its path, in clear."""
    return list(_secrets((), settings))


def _secrets(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, SecretStr):
        yield path, value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets((*path, name), getattr(value, name))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _secrets((*path, name), inner)
