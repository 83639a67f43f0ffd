"""Discord's double refuses what the real one refuses; seen through plain HTTP and a plain websocket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.platforms.discord_server import DiscordServer


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server


class Api:
    """Makes calls and returns (status, the body)."""

    def __init__(self, server: DiscordServer, http: aiohttp.ClientSession) -> None:
        self._base = server.api_base
        self._http = http
        self.headers = {"Authorization": f"Bot {server.token}", "User-Agent": "DiscordBot (https://a.test, 1)"}

    async def __call__(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        async with self._http.request(method, self._base + path, json=value, headers=self.headers) as answer:
            return answer.status, await answer.json() if answer.content_type == "application/json" else None


@pytest.fixture
async def api(server: DiscordServer) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession() as http:
        yield Api(server, http)


def button(custom_id: str, **more: Any) -> dict[str, Any]:
    return {"type": 2, "style": 1, "label": "x", "custom_id": custom_id, **more}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"content": ""}, 50006),
        ({"content": " \n "}, 50006),
        ({"content": "a" * 2001}, 50035),
        ({"content": "a", "nonce": "x" * 26}, 50035),
        ({"content": "a", "flags": 64}, 50035),
        ({"content": "a", "colour": "red"}, 50035),
        ({"content": "a", "message_reference": {"message_id": "5"}}, 50035),
        ({"content": "a", "components": [{"type": 1, "components": []}]}, 50035),
        ({"content": "a", "components": [{"type": 1, "components": [button("a"), button("a")]}]}, 50035),
        ({"content": "a", "components": [{"type": 1, "components": [button("a" * 101)]}]}, 50035),
    ],
)
async def test_a_message_is_refused(server: DiscordServer, api: Api, message: dict[str, Any], code: int) -> None:
    """With Discord's code."""
    channel = server.channel()
    status, body = await api("POST", f"/channels/{channel.id}/messages", message)
    assert (status, body["code"]) == (400, code)
    assert channel.replies == []


async def test_who_is_not_let_in(server: DiscordServer, api: Api) -> None:
    """A wrong token; a client that does not say what it is; what does not exist."""
    api.headers["Authorization"] = "Bot wrong"
    assert (await api("GET", "/users/@me"))[0] == 401
    api.headers["User-Agent"] = "curl"
    assert (await api("GET", "/users/@me"))[0] == 403
    api.headers |= {"Authorization": f"Bot {server.token}", "User-Agent": "DiscordBot (x)"}
    assert (await api("GET", "/nothing"))[0] == 404
    assert (await api("GET", "/channels/5/messages"))[1]["code"] == 10003


async def test_a_nonce_counts_once(server: DiscordServer, api: Api) -> None:
    """The repeat gets the first one's message, whatever it says."""
    channel = server.channel()
    path = f"/channels/{channel.id}/messages"
    _, first = await api("POST", path, {"content": "one", "nonce": "n", "enforce_nonce": True})
    _, second = await api("POST", path, {"content": "two", "nonce": "n", "enforce_nonce": True})
    assert (first["id"], second["content"]) == (second["id"], "one")
    assert channel.texts == ["one"]


async def test_without_a_word_about_mentions_everybody_named_is_notified(server: DiscordServer, api: Api) -> None:
    """A test that forgets them sees it."""
    channel = server.channel()
    text = "<@5> <@&6> @everyone \\<@7>"
    await api("POST", f"/channels/{channel.id}/messages", {"content": text})
    await api("POST", f"/channels/{channel.id}/messages", {"content": text, "allowed_mentions": {"parse": []}})
    assert [message.pings for message in channel.replies] == [["5", "6", "everyone"], []]


async def test_one_message_too_many(server: DiscordServer, api: Api) -> None:
    """The headers say what is left; then there is 429, and who calls inside of it is on record."""
    channel = server.channel()
    path = f"/channels/{channel.id}/messages"
    for number in range(5):
        assert (await api("POST", path, {"content": f"{number}"}))[0] == 200
    status, body = await api("POST", path, {"content": "6"})
    assert status == 429
    assert 0 < body["retry_after"] <= 5
    assert not body["global"]
    assert server.violations == []
    await api("POST", path, {"content": "7"})
    assert len(server.violations) == 1
    assert len(channel.replies) == 5


async def test_somebody_elses_message_cannot_be_changed(server: DiscordServer, api: Api) -> None:
    """Nor one that is gone."""
    ann = server.user("1001")
    message = ann.says("hi")
    path = f"/channels/{ann.chat.id}/messages/{message.id}"
    assert (await api("PATCH", path, {"content": "x"}))[1]["code"] == 50005
    assert (await api("PATCH", path + "1", {"content": "x"}))[1]["code"] == 10008


async def test_an_interaction_is_answered_once(server: DiscordServer, api: Api) -> None:
    """A second first answer is refused, and so is one without any first."""
    channel, ann = server.channel(), server.user("1001")
    asked = server.interactions.begin(ann, channel, 3, {"custom_id": "a"})
    answer = {"type": 4, "data": {"content": "hi", "flags": 64}}
    path = f"/webhooks/{server.application}/{asked.token}/messages/@original"
    assert (await api("PATCH", path, {"content": "x"}))[1]["code"] == 10015
    assert (await api("POST", f"/interactions/{asked.id}/{asked.token}/callback", answer))[0] == 204
    assert (await api("POST", f"/interactions/{asked.id}/{asked.token}/callback", answer))[1]["code"] == 40060
    assert (await api("PATCH", path, {"content": "x"}))[0] == 200
    assert (asked.text, asked.is_private, channel.replies) == ("x", True, [])


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"op": 2, "d": {"token": "wrong", "intents": 512}}, 4004),
        ({"op": 2, "d": {"token": "", "intents": 0}}, 4013),
        ({"op": 99}, 4001),
    ],
)
async def test_the_gateway_closes_what_is_wrong(server: DiscordServer, frame: dict[str, Any], code: int) -> None:
    """With Discord's code."""
    if frame.get("d", {}).get("token") == "":
        frame["d"]["token"] = server.token
    async with aiohttp.ClientSession() as http, http.ws_connect(server.gateway_url) as socket:
        hello = await socket.receive_json()
        assert hello["op"] == 10
        await socket.send_json(frame)
        await socket.receive()
        assert socket.close_code == code


async def test_the_gateway_tells_what_was_asked_for(server: DiscordServer) -> None:
    """Intents decide which events come, and whether they say what was written."""
    ann, team = server.user("1001"), server.channel()
    async with aiohttp.ClientSession() as http, http.ws_connect(server.gateway_url) as socket:
        await socket.receive_json()
        await socket.send_json({"op": 2, "d": {"token": server.token, "intents": 1 << 9}})
        assert (await socket.receive_json())["t"] == "READY"
        ann.says("direct")
        ann.says("talk", chat=team)
        ann.says("@zero hello", chat=team)
        talk, hello = await socket.receive_json(), await socket.receive_json()
    assert talk["d"]["content"] == ""
    assert hello["d"]["content"].endswith("hello")
    assert (talk["s"], hello["s"]) == (2, 3)
