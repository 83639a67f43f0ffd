"""The table of a Slack app."""

from pydantic import Field

from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.settings import Secret, Size, Users, WebAddress


class SlackSettings(ChannelSettings):
    """A table `[channels.NAME]` of kind `slack`."""

    bot_token: Secret = Field(description="The bot's token, xoxb-..., from the app's page OAuth & Permissions.")
    app_token: Secret = Field(
        description="The app's token for Socket Mode, xapp-..., with the scope connections:write, from the app's page "
        "Basic Information."
    )
    api_base: WebAddress = Field(
        default="https://slack.com/api/", description="The Web API; the socket is the one that it names."
    )
    allowed_channels: Users = Field(
        default=(),
        description="Ids of the channels in which the bot listens, threads in them included; empty or absent: all "
        "that it is in. Direct messages always come through.",
    )
    # Slack takes files of 1 GB; this is what a model can do something with.
    max_attachment: Size = Field(
        default=20_000_000, description="The largest attachment that is fetched; 0: none; absent: 20MB."
    )
