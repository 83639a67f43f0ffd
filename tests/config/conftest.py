"""Kinds that need no platform, and a way to load a text."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from channels.console.settings import ConsoleSettings
from channels.discord.settings import DiscordSettings
from channels.email.settings import EmailSettings
from channels.slack.settings import SlackSettings
from channels.telegram.settings import TelegramSettings
from zerobot.config.kinds import Kinds
from zerobot.config.loader import LoadedConfig, load_config
from zerobot.core.channel import Capabilities, Channel, ChannelKind, ChannelServices, Finding, Pace, Question
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.errors import ConfigError
from zerobot.core.model import ModelProvider
from zerobot.core.provider_kind import ProviderKind, ProviderServices, ProviderSettings

Load = Callable[..., LoadedConfig]
Faults = Callable[..., list[str]]


def _no_channel(_settings: BaseModel, _services: ChannelServices) -> Channel:
    raise NotImplementedError


async def _no_check(_settings: BaseModel, _services: ChannelServices) -> AsyncIterator[Finding]:
    return
    yield


def _no_provider(_name: str, _settings: ProviderSettings, _services: ProviderServices) -> ModelProvider:
    raise NotImplementedError


def channel_kind(
    name: str,
    settings: type[ChannelSettings],
    *,
    library: str = "",
    extra: str = "",
    ask: tuple[Question, ...] = (),
    addresses: bool = False,
) -> ChannelKind:
    """A kind that has settings and opens nothing."""
    return ChannelKind(
        name=name,
        title=name,
        settings=settings,
        capabilities=Capabilities(edits=True, buttons=True, addresses=addresses),
        pace=Pace(draft_interval=1, chat_calls=(1, 1), bot_calls=(1, 1)),
        library=library,
        extra=extra,
        questions=ask,
        open=_no_channel,
        check=_no_check,
    )


def provider_kind(name: str, *, needs_key: bool) -> ProviderKind:
    """A kind of provider that opens nothing."""
    return ProviderKind(
        name=name, default_base_url="", needs_key=needs_key, key_help="from its console", open=_no_provider
    )


@pytest.fixture
def kinds() -> Kinds:
    """Five kinds of channels that work, one that lacks its library, one that is broken, and three of providers."""
    token = Question(key="bot_token", prompt="Token", secret=True, help="from @BotFather")

    def broken() -> ChannelKind:
        raise ImportError("no module named half")

    return Kinds(
        channels={
            "telegram": lambda: channel_kind("telegram", TelegramSettings, ask=(token,)),
            "discord": lambda: channel_kind("discord", DiscordSettings),
            "slack": lambda: channel_kind("slack", SlackSettings),
            "console": lambda: channel_kind("console", ConsoleSettings),
            "email": lambda: channel_kind("email", EmailSettings, addresses=True),
            "remote": lambda: channel_kind("remote", ConsoleSettings, library="not_installed_library", extra="remote"),
            "broken": broken,
        },
        providers={
            "demo": lambda: provider_kind("demo", needs_key=False),
            "anthropic": lambda: provider_kind("anthropic", needs_key=True),
            "openai": lambda: provider_kind("openai", needs_key=True),
        },
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Where the configuration of a test is."""
    return tmp_path / "zerobot.toml"


@pytest.fixture
def load(config: Path, kinds: Kinds) -> Load:
    """Write a text, private to its owner, and load it with nothing but the given variables in the environment."""

    def load_text(text: str, **environ: str) -> LoadedConfig:
        config.write_text(text, encoding="utf-8")
        config.chmod(0o600)
        return load_config(config, environ, kinds)

    return load_text


@pytest.fixture
def faults(config: Path, load: Load) -> Faults:
    """The faults of a text, with `FILE` for the file's path."""

    def faults_of(text: str, **environ: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(text, **environ)
        return [line.replace(str(config), "FILE") for line in caught.value.faults]

    return faults_of
