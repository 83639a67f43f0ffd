"""The table of a Discord bot."""

from typing import Literal, Self

from pydantic import Field, model_validator

from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.settings import Secret, Size, Users, WebAddress


class DiscordSettings(ChannelSettings):
    """A table `[channels.NAME]` of kind `discord`."""

    bot_token: Secret = Field(description="The bot's token, from the Bot page of discord.com/developers/applications.")
    api_base: WebAddress = Field(
        default="https://discord.com/api/v10", description="The API; the gateway is the one that it names."
    )
    allowed_guilds: Users = Field(
        default=(), description="Ids of the servers in which the bot listens; empty or absent: all that it is in."
    )
    allowed_channels: Users = Field(
        default=(),
        description="Ids of the channels in which the bot listens, threads and posts in them included; "
        "empty or absent: all. Direct messages always come through.",
    )
    answer_bots: bool = Field(
        default=False,
        description="Whether other bots are answered that may talk to it and mention it: five times in a row at most, "
        "then after an hour, or when a person has said something to it.",
    )
    command_scope: Literal["global", "guild", "off"] = Field(
        default="global",
        description="Where the slash commands are. global: everywhere; guild: in allowed_guilds; off: nowhere.",
    )
    # 25 MB is what one message held for years; larger ones are only from boosted servers.
    max_attachment: Size = Field(
        default=25_000_000, description="The largest attachment that is fetched; 0: none; absent: 25MB."
    )

    @model_validator(mode="after")
    def _a_scope_has_guilds(self) -> Self:
        if self.command_scope == "guild" and not self.allowed_guilds:
            raise ValueError('command_scope = "guild" needs allowed_guilds: they say in which servers')
        return self
