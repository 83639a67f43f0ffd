"""The table of a Telegram bot."""

from pydantic import Field

from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.settings import Secret, Size, WebAddress


class TelegramSettings(ChannelSettings):
    """A table `[channels.NAME]` of kind `telegram`."""

    bot_token: Secret = Field(description="The bot's token, from @BotFather.")
    api_base: WebAddress = Field(
        default="https://api.telegram.org", description="The Bot API server; another one if you run your own."
    )
    # 20 MB is what the public Bot API server lets bots download: https://core.telegram.org/bots/api#getfile
    max_attachment: Size = Field(
        default=20_000_000, description="The largest attachment that is fetched; 0: none; absent: 20MB."
    )
