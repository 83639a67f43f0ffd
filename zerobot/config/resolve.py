"""Which kinds the tables of a document name, and what these kinds want of them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel

from zerobot.config.faults import Fault
from zerobot.config.keys import KeyPath
from zerobot.config.kinds import CHANNEL_GROUP, PLUGIN_GROUP, PROVIDER_GROUP, Kinds, library_advice
from zerobot.config.schema import DEMO
from zerobot.config.tables import FILE, GROUPS, Tables
from zerobot.core.channel import ChannelKind

_Kind = TypeVar("_Kind")
_TABLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")


@dataclass(slots=True)
class Resolution:
    """What is known of a document once its kinds are."""

    by_kind: dict[KeyPath, type[BaseModel]] = field(default_factory=dict)
    """The model of each channel and plug-in whose kind is there."""
    sources: dict[KeyPath, str] = field(default_factory=dict)
    """Where one gets what a key needs."""
    lacking: list[KeyPath] = field(default_factory=list)
    """Keys that a kind needs and nobody wrote."""
    faults: list[Fault] = field(default_factory=list)

    @property
    def tables(self) -> Tables:
        """The models of the document."""
        return Tables(self.by_kind)


def resolve_kinds(tree: dict[str, object], kinds: Kinds) -> Resolution:
    """Find the kind of each channel, provider and plug-in; fill in those that are left to the table's name.

    The provider `demo` is there without a table.
    """
    found = Resolution()
    for name, table in named_tables(tree, "channels").items():
        path: KeyPath = ("channels", name)
        kind = _resolve(found, path, table, kinds.channels, CHANNEL_GROUP)
        if kind is not None:
            _use_channel(found, path, table, kind)
    for name, table in named_tables(tree, "plugins").items():
        path = ("plugins", name)
        plugin = _resolve(found, path, table, kinds.plugins, PLUGIN_GROUP)
        if plugin is not None:
            _use_model(found, path, plugin.name, plugin.settings)
    for name, table in named_tables(tree, "providers").items():
        path = ("providers", name)
        provider = _resolve(found, path, table, kinds.providers, PROVIDER_GROUP)
        if provider is None:
            continue
        found.sources[*path, "api_key"] = provider.key_help
        # Another server than the vendor's may well want no key.
        if provider.needs_key and not ({"api_key", "api_key" + FILE, "base_url"} & table.keys()):
            found.lacking.append((*path, "api_key"))
    # Last: it needs nothing, so its kind is not even loaded.
    if DEMO in kinds.providers:
        providers = tree.setdefault("providers", {})
        if isinstance(providers, dict):
            providers.setdefault(DEMO, {"kind": DEMO})
    return found


def named_tables(tree: Mapping[str, object], group: str) -> dict[str, dict[str, object]]:
    """The tables `[GROUP.NAME]` of a document, without what is there but no table."""
    tables = tree.get(group)
    return (
        {name: table for name, table in tables.items() if isinstance(table, dict)} if isinstance(tables, dict) else {}
    )


def is_off(tree: Mapping[str, object], path: KeyPath) -> bool:
    """Whether a path is in a channel or plug-in that is switched off: then it may lack what it needs."""
    if len(path) < 2 or path[0] not in GROUPS:
        return False
    return named_tables(tree, str(path[0])).get(str(path[1]), {}).get("enabled") is False


def _resolve(
    found: Resolution, path: KeyPath, table: dict[str, object], known: Mapping[str, Callable[[], _Kind]], group: str
) -> _Kind | None:
    name = str(path[-1])
    if not _TABLE_NAME.fullmatch(name):
        found.faults.append(Fault(path, "is no name for a table; allowed: up to 63 of A-Z a-z 0-9 _ -"))
        return None
    absent = "kind" not in table
    kind = table.setdefault("kind", name)
    if not isinstance(kind, str) or kind not in known:
        problem = f'is missing, and "{name}" is no kind' if absent else f'there is no kind "{kind}"'
        allowed = f"allowed: {', '.join(sorted(known)) or 'none'} (a package adds one by an entry point in {group})"
        found.faults.append(Fault((*path, "kind"), f"{problem}; {allowed}"))
        return None
    try:
        return known[kind]()
    except (ImportError, AttributeError) as error:
        found.faults.append(Fault((*path, "kind"), f'kind "{kind}" is installed but broken: {error}'))
        return None


def _use_channel(found: Resolution, path: KeyPath, table: Mapping[str, object], kind: ChannelKind) -> None:
    if not _use_model(found, path, kind.name, kind.settings):
        return
    for question in kind.questions:
        found.sources[*path, question.key] = question.help
    advice = library_advice(kind)
    if advice and table.get("enabled") is not False:
        found.faults.append(Fault(path, advice))


def _use_model(found: Resolution, path: KeyPath, kind: str, model: type[BaseModel]) -> bool:
    base = GROUPS[str(path[0])]
    if not issubclass(model, base):
        text = f'kind "{kind}" is installed but broken: its settings are no {base.__name__}'
        found.faults.append(Fault((*path, "kind"), text))
        return False
    found.by_kind[path] = model
    return True
