"""Which channel serves terminals, and under which name."""

from zerobot.config.loader import LoadedConfig
from zerobot.core.channel import ChannelKind
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.errors import ConfigError

TERMINAL = "console"
"""The kind of channel that serves terminals, and the name of its table unless the settings have one of that kind."""


def terminal_kind(config: LoadedConfig) -> tuple[str, ChannelKind, ChannelSettings]:
    """The channel's name, its kind and its settings.

    Raises:
        ConfigError: No such kind is installed.
    """
    load = config.kinds.channels.get(TERMINAL)
    if load is None:
        raise ConfigError([f"the kind of channel {TERMINAL} is not installed; install zerobot again"])
    kind = load()
    for name, table in config.settings.channels.items():
        if (table.kind or name) == TERMINAL and table.enabled:
            return name, kind, table
    settings = kind.settings()
    assert isinstance(settings, ChannelSettings), "every channel's settings are some"
    return TERMINAL, kind, settings


def terminal_channel(config: LoadedConfig) -> dict[str, tuple[ChannelKind, ChannelSettings]]:
    """What a daemon opens beside the configured channels, so that terminals can attach to it."""
    name, kind, settings = terminal_kind(config)
    return {} if name in config.settings.channels else {name: (kind, settings)}
