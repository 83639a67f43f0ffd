"""Access tokens: cached, refreshed once at a time, kept over restarts, and what is wrong told to the operator."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from aiohttp import web

from channels.email.imap.entry import open_mailbox
from channels.email.imap.errors import ImapLostError
from channels.email.oauth import EARLY_SECONDS, AccessTokens, TokenError, xoauth2
from channels.email.settings import EmailSettings, OAuth2Settings
from tests.channels.email.mailroom import LONG, endpoint
from tests.platforms.adapter_parts import HastyClock
from tests.platforms.imap_server import USER, ImapServer
from tests.platforms.signals import Hold
from tests.platforms.token_server import REFRESH_TOKEN, TokenServer
from zerobot.core.channel import ChannelServices
from zerobot.core.errors import ChannelFaultError
from zerobot.core.log import silent
from zerobot.testing.intake import MemoryState

Make = Callable[..., AccessTokens]


@pytest.fixture
async def server() -> AsyncIterator[TokenServer]:
    """A token endpoint."""
    async with TokenServer() as server:
        yield server


@pytest.fixture
def clock() -> HastyClock:
    """Moved by the test."""
    return HastyClock()


@pytest.fixture
async def make(server: TokenServer, clock: HastyClock) -> AsyncIterator[Make]:
    """Makes the tokens of a channel; what it keeps outlives it."""
    state = MemoryState()
    async with httpx.AsyncClient(trust_env=False) as http:

        def made(**settings: str) -> AccessTokens:
            services = ChannelServices(
                name="office",
                http=lambda: http,
                escape=str,
                safe_name=str,
                clock=clock,
                log=silent,
                commands=(),
                state=state,
            )
            return AccessTokens(table(server, **settings), services)

        yield made


def table(server: TokenServer, **settings: str) -> OAuth2Settings:
    """The table `oauth2`."""
    values = {"client_id": "app", "refresh_token": REFRESH_TOKEN, "token_url": server.url, **settings}
    return OAuth2Settings.model_validate(values)


async def test_a_token_is_used_until_shortly_before_its_end(server: TokenServer, make: Make, clock: HastyClock) -> None:
    """One refresh an hour, not one a login."""
    tokens = make(client_secret="app secret", scope="mail")
    assert [await tokens.token(), await tokens.token()] == ["access-1", "access-1"]
    clock.ahead += 3600 - EARLY_SECONDS - 60
    assert await tokens.token() == "access-1"
    clock.ahead += 60
    assert await tokens.token() == "access-2"
    assert server.forms == 2 * [
        {
            "grant_type": "refresh_token",
            "refresh_token": REFRESH_TOKEN,
            "client_id": "app",
            "client_secret": "app secret",
            "scope": "mail",
        }
    ]


@pytest.mark.parametrize("lasts", ["nonsense", None, -5, 0, "nan", "inf", 10**12])
async def test_a_time_without_sense_is_no_error(
    server: TokenServer, make: Make, clock: HastyClock, lasts: object
) -> None:
    """The token is good for now, and not for ever."""
    server.lasts, tokens = lasts, make()
    assert [await tokens.token(), await tokens.token()] == ["access-1", "access-1"]
    clock.ahead += 86_400
    assert await tokens.token() == "access-2"


async def test_many_who_want_one_make_one_refresh(server: TokenServer, make: Make) -> None:
    """Both servers may be logged in to at once."""
    server.hold = Hold()
    tokens = make()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(tokens.token()) for _ in range(5)]
        await server.hold.arrived.wait()
        server.hold.release()
    assert {task.result() for task in tasks} == {"access-1"}
    assert len(server.forms) == 1


async def test_a_rejected_token_is_not_given_again(make: Make) -> None:
    """Only that one: somebody else may have got a new one in between."""
    tokens = make()
    assert await tokens.token() == "access-1"
    tokens.reject("access-0")
    assert await tokens.token() == "access-1"
    tokens.reject("access-1")
    assert await tokens.token() == "access-2"


async def test_a_rotated_refresh_token_outlives_a_restart(server: TokenServer, make: Make) -> None:
    """The configured one is worth nothing after its first use."""
    server.rotates = True
    assert await make().token() == "access-1"
    assert await make().token() == "access-2"
    assert [form["refresh_token"] for form in server.forms] == [REFRESH_TOKEN, "refresh-1"]


async def test_a_new_token_in_the_configuration_wins(server: TokenServer, make: Make) -> None:
    """What was kept belonged to the old one, which has been revoked."""
    server.rotates = True
    await make().token()
    server.good = {"granted anew"}
    assert await make(refresh_token="granted anew").token() == "access-2"


@pytest.mark.parametrize(
    ("error", "key"),
    [("invalid_grant", "refresh_token"), ("invalid_client", "client_secret"), ("invalid_scope", "scope")],
)
async def test_what_no_try_mends_parks_the_channel(server: TokenServer, make: Make, error: str, key: str) -> None:
    """With the key that has to change, and no secret."""
    server.answer = web.json_response({"error": error, "error_description": REFRESH_TOKEN}, status=400)
    with pytest.raises(ChannelFaultError) as raised:
        await make().token()
    assert key in raised.value.advice
    assert "[channels.office.oauth2]" in raised.value.advice
    assert REFRESH_TOKEN not in f"{raised.value} {raised.value.advice}"


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(status=503, text="busy"),
        web.json_response({"error": "temporarily_unavailable"}, status=400),
        web.json_response([]),
        web.json_response({"access_token": "two\nlines"}),
        web.json_response({"access_token": ""}),
        web.json_response({"token_type": "Bearer"}),
        web.Response(text="[" * 100_000),
        web.Response(body=b"x" * 200_000),
        web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
    ],
    ids=range(9),
)
async def test_what_passes_is_tried_again(server: TokenServer, make: Make, answer: web.Response) -> None:
    """An answer that is none is no fault of the configuration."""
    server.answer = web.Response(status=answer.status, body=answer.body, headers=answer.headers)
    with pytest.raises(TokenError):
        await make().token()
    server.answer = None
    assert await make().token() == "access-1"


async def test_an_endpoint_that_is_not_there_is_tried_again(make: Make) -> None:
    """Nothing is said of what would have been sent."""
    with pytest.raises(TokenError) as raised:
        await make(token_url="http://127.0.0.1:1/token").token()
    assert REFRESH_TOKEN not in repr(raised.value)


async def test_no_token_is_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """At no level, by no library on the way."""
    caplog.set_level(logging.DEBUG)
    token = await make(client_secret="app-secret").token()
    assert token not in caplog.text
    assert REFRESH_TOKEN not in caplog.text
    assert "app-secret" not in caplog.text


async def test_a_token_that_a_server_refuses_is_replaced_once(server: TokenServer, make: Make) -> None:
    """It may have been revoked before its time; if the next one is refused too, somebody has to look."""
    tokens = make()
    async with ImapServer() as mail:
        mail.mechanisms, mail.tokens = ["XOAUTH2"], {"access-2"}
        settings = EmailSettings(
            address=USER,
            oauth2=table(server),
            imap_host="127.0.0.1",
            imap_port=mail.port,
            imap_security="none",
            smtp_host="127.0.0.1",
            verify_sender="off",
        )
        context = endpoint(mail).context
        imap = await open_mailbox(settings, "office", context, tokens, LONG)
        await imap.close()
        mail.tokens = set()
        with pytest.raises(ChannelFaultError):
            await open_mailbox(settings, "office", context, tokens, LONG)
        assert len(server.forms) == 3
        server.answer = web.Response(status=503)
        with pytest.raises(ImapLostError):
            await open_mailbox(settings, "office", context, tokens, LONG)
        assert mail.faults == []


def test_the_word_of_xoauth2_is_as_documented() -> None:
    """User and token, with control characters between them."""
    assert b64decode(xoauth2("bot@example.test", "ya29")) == b"user=bot@example.test\1auth=Bearer ya29\1\1"
