"""The whole configuration as models; a channel's own keys are the model of its kind."""

from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, SecretStr, SerializeAsAny, Strict
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from zerobot.config.later import DEFAULT_AGENT
from zerobot.core.access import Autonomy
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.places import Identity
from zerobot.core.settings import (
    AbsolutePath,
    Duration,
    FilePath,
    FromFile,
    Paths,
    Secret,
    Section,
    Text,
    Texts,
    WebAddress,
)
