"""What `zerobot doctor` asks Telegram: whether the token works, and what would keep messages from us."""

from __future__ import annotations

from collections.abc import AsyncIterator

from telegram import Bot
from telegram.error import InvalidToken, TelegramError

from channels.telegram.adapter import make_bot
from channels.telegram.settings import TelegramSettings
from zerobot.core.channel import ChannelServices, Finding


async def check_channel(settings: TelegramSettings, services: ChannelServices) -> AsyncIterator[Finding]:
    """Ask who the bot is, whether a webhook takes its updates, and what it sees of groups; a line each."""
    bot, polling, calls = make_bot(settings)
    try:
        async for finding in _findings(bot, settings, services.name):
            yield finding
    finally:
        await polling.shutdown()
        await calls.shutdown()


async def _findings(bot: Bot, settings: TelegramSettings, name: str) -> AsyncIterator[Finding]:
    try:
        me = await bot.get_me()
        webhook = await bot.get_webhook_info()
    except InvalidToken:
        advice = f"put the token that @BotFather gave you into [channels.{name}] bot_token"
        yield Finding("fail", name, "Telegram refuses the bot's token", advice)
        return
    except TelegramError as error:
        reason = type(error.__cause__ or error).__name__
        yield Finding(
            "fail",
            name,
            f"{settings.api_base} does not answer ({reason})",
            "check the network, and api_base if you set it",
        )
        return
    yield Finding("ok", name, f"the token is @{me.username}'s, id {me.id}")
    if webhook.url:
        yield Finding(
            "warn", name, "another program has set a webhook for this bot", "the daemon removes it at its start"
        )
    else:
        yield Finding("ok", name, "no webhook is set, so that updates come to whoever polls")
    if me.can_read_all_group_messages or settings.require_mention:
        yield Finding("ok", name, "it sees in groups what it needs")
    else:
        yield Finding(
            "warn",
            name,
            "privacy mode hides what in groups is not said to the bot, but require_mention is false",
            "send @BotFather /setprivacy and choose Disable, then add the bot to the group anew",
        )
