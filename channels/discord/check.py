"""What `zerobot doctor` asks Discord: whether the token works, what the bot may read, and where it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlencode

from discord.http import Route

from channels.discord.rest import LinkError, Payload, Rest, RestError, quiet_loggers
from channels.discord.settings import DiscordSettings
from zerobot.core.channel import ChannelServices, Finding

# https://discord.com/developers/docs/topics/permissions: view channels, send messages, attach files, read the history,
# send messages in threads.
PERMISSIONS = 1 << 10 | 1 << 11 | 1 << 15 | 1 << 16 | 1 << 38
# https://discord.com/developers/docs/resources/application#application-object-application-flags
_MESSAGE_CONTENT = 1 << 18 | 1 << 19
_PORTAL = "https://discord.com/developers/applications"


def invite_url(application: str) -> str:
    """Where an administrator lets the bot into a server, with what it needs there and no more."""
    words = {"client_id": application, "scope": "bot applications.commands", "permissions": PERMISSIONS}
    return f"https://discord.com/oauth2/authorize?{urlencode(words)}"


async def check_channel(settings: DiscordSettings, services: ChannelServices) -> AsyncIterator[Finding]:
    """Ask who the bot is, what it may read, and in which servers it is; a line each."""
    quiet_loggers()
    rest = Rest(str(settings.api_base), settings.bot_token.get_secret_value())
    try:
        async for finding in _findings(rest, settings, services.name):
            yield finding
    finally:
        await rest.close()


async def _findings(rest: Rest, settings: DiscordSettings, name: str) -> AsyncIterator[Finding]:
    try:
        me: Payload = await rest.request(Route("GET", "/users/@me"))
        application: Payload = await rest.application_info()
        guilds: list[Payload] = await rest.request(Route("GET", "/users/@me/guilds"))
    except RestError as error:
        if error.status == 401:
            advice = f"put the token of the application's Bot page into [channels.{name}] bot_token"
            yield Finding("fail", name, "Discord refuses the bot's token", advice)
        else:
            yield Finding("fail", name, f"Discord refuses to say who the bot is: {error}", "try again later")
        return
    except LinkError as error:
        yield Finding(
            "fail",
            name,
            f"{settings.api_base} does not answer ({error})",
            "check the network, and api_base if you set it",
        )
        return
    ident = str(application["id"])
    yield Finding("ok", name, f"the token is {me.get('username')}'s, id {me['id']}")
    yield _intent(application, name)
    yield _servers(guilds, settings, name, invite_url(ident))
    if application.get("interactions_endpoint_url"):
        advice = f"remove the interactions endpoint URL on {_PORTAL}"
        yield Finding("fail", name, "buttons and slash commands go to a web server instead of the bot", advice)


def _intent(application: Payload, name: str) -> Finding:
    if int(application.get("flags", 0)) & _MESSAGE_CONTENT:
        return Finding("ok", name, "it may read messages")
    advice = f"switch on MESSAGE CONTENT INTENT on the Bot page of the application, {_PORTAL}"
    return Finding("fail", name, "it may not read messages, so Discord will not let it connect", advice)


def _servers(guilds: list[Payload], settings: DiscordSettings, name: str, invite: str) -> Finding:
    missing = sorted(set(settings.allowed_guilds) - {str(guild["id"]) for guild in guilds})
    if missing:
        return Finding("warn", name, f"it is not in the server {', '.join(missing)}", f"let it in: {invite}")
    if not guilds:
        return Finding("warn", name, "it is in no server: nobody can find it", f"let it in: {invite}")
    return Finding("ok", name, f"it is in {len(guilds)} servers; into another one it is let by {invite}")
