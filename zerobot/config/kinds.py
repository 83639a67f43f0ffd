"""The kinds of channels, providers and plug-ins that are installed: entry points, loaded when they are named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec

from zerobot.core.channel import ChannelKind
from zerobot.core.plugin import PluginKind
from zerobot.core.provider_kind import ProviderKind

CHANNEL_GROUP = "zerobot.channels"
PROVIDER_GROUP = "zerobot.providers"
PLUGIN_GROUP = "zerobot.plugins"


@dataclass(frozen=True, slots=True)
class Kinds:
    """What can stand behind a `kind`: a name and the function that loads it."""

    channels: Mapping[str, Callable[[], ChannelKind]] = field(default_factory=dict)
    providers: Mapping[str, Callable[[], ProviderKind]] = field(default_factory=dict)
    plugins: Mapping[str, Callable[[], PluginKind]] = field(default_factory=dict)


def installed_kinds() -> Kinds:
    """The kinds of all installed packages; nothing of them is imported yet."""
    return Kinds(
        channels={entry.name: entry.load for entry in entry_points(group=CHANNEL_GROUP)},
        providers={entry.name: entry.load for entry in entry_points(group=PROVIDER_GROUP)},
        plugins={entry.name: entry.load for entry in entry_points(group=PLUGIN_GROUP)},
    )


def library_advice(kind: ChannelKind) -> str:
    """How to install what a kind needs; empty when it is there."""
    if not kind.library or find_spec(kind.library) is not None:
        return ""
    package = f"zerobot[{kind.extra}]" if kind.extra else kind.library
    return f"the library {kind.library} is not installed; run: pip install '{package}'"
