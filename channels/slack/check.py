"""What `zerobot doctor` asks Slack: whether both tokens work, and which rights the app lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator

from channels.slack.adapter import make_web
from channels.slack.faults import BAD_TOKEN
from channels.slack.settings import SlackSettings
from channels.slack.socket import refused_app_token, refused_bot_token
from channels.slack.web import LinkError, Web, WebError
from zerobot.core.channel import ChannelServices, Finding
from zerobot.core.errors import ChannelFaultError

SCOPES = frozenset(
    {"app_mentions:read", "channels:history", "chat:write", "commands", "files:read", "files:write", "groups:history",
     "im:history", "im:write", "mpim:history", "users:read"}
)  # fmt: skip
"""What the bot's token needs: https://docs.slack.dev/reference/scopes."""


async def check_channel(settings: SlackSettings, services: ChannelServices) -> AsyncIterator[Finding]:
    """Ask who the bot is, what it may do, and for a socket; a line each."""
    web = make_web(settings)
    try:
        async for finding in _findings(web, settings, services.name):
            yield finding
    finally:
        await web.close()


async def _findings(web: Web, settings: SlackSettings, name: str) -> AsyncIterator[Finding]:
    try:
        me, scopes = await web.identify()
    except WebError as error:
        if error.code in BAD_TOKEN:
            yield _fault(name, refused_bot_token(name))
        else:
            yield Finding("fail", name, f"Slack refuses to say who the bot is: {error}", "try again later")
        return
    except LinkError as error:
        advice = "check the network, and api_base if you set it"
        yield Finding("fail", name, f"{settings.api_base} does not answer ({error})", advice)
        return
    yield Finding("ok", name, f"the bot's token is {me.get('user')}'s, in the workspace {me.get('team')}")
    missing = sorted(SCOPES - scopes)
    if missing:
        yield Finding(
            "fail",
            name,
            f"the bot's token lacks scopes: {', '.join(missing)}",
            "add them on the app's page OAuth & Permissions (deploy/slack-manifest.yaml has them all) and install the "
            "app anew",
        )
    else:
        yield Finding("ok", name, "it has the scopes that it needs")
    try:
        await web.open_socket()
    except WebError:
        yield _fault(name, refused_app_token(name))
    except LinkError as error:
        yield Finding("fail", name, f"no socket is opened ({error})", "check the network")
    else:
        yield Finding("ok", name, "the app's token opens sockets")


def _fault(name: str, fault: ChannelFaultError) -> Finding:
    return Finding("fail", name, str(fault), fault.advice)
