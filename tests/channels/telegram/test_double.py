"""The Bot API's double refuses what the real one refuses; seen through plain HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.platforms.telegram_faults import Limits
from tests.platforms.telegram_server import TelegramServer

CHAT = "1001"


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.user(CHAT)
        yield server


class Api:
    """Calls methods and returns (status, description or result)."""

    def __init__(self, server: TelegramServer, http: httpx.AsyncClient) -> None:
        self.base = f"{server.api_base}/bot{server.token}"
        self.http = http

    async def __call__(self, method: str, **params: Any) -> tuple[int, Any]:
        plain = {key: value if isinstance(value, str) else json.dumps(value) for key, value in params.items()}
        answer = (await self.http.post(f"{self.base}/{method}", data=plain)).json()
        return answer.get("error_code", 200), answer.get("description", answer.get("result"))


@pytest.fixture
async def api(server: TelegramServer) -> AsyncIterator[Api]:
    async with httpx.AsyncClient() as http:
        yield Api(server, http)


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"text": ""}, "message text is empty"),
        ({"text": " \n "}, "message text is empty"),
        ({"text": "a" * 4097}, "message is too long"),
        ({"text": "🧪" * 2049}, "message is too long"),
        ({"text": "abc", "entities": [entity("bold", 1, 3)]}, "after the end"),
        ({"text": "abc", "entities": [entity("bold", -1, 1)]}, "wrong offset"),
        ({"text": "🧪b", "entities": [entity("bold", 1, 1)]}, "inside of a symbol"),
        ({"text": "abc", "entities": [entity("shiny", 0, 1)]}, "unsupported entity type"),
        ({"text": "abc", "entities": [entity("text_link", 0, 1)]}, "no url"),
        ({"text": "abc", "entities": [entity("pre", 0, 3), entity("bold", 0, 1)]}, "can't be nested"),
        ({"text": "abc", "entities": [entity("bold", 0, 2), entity("italic", 1, 2)]}, "overlap"),
        ({"text": "<x>a</x>", "parse_mode": "HTML"}, "Unsupported start tag"),
        ({"text": "<b>a", "parse_mode": "HTML"}, "Can't find end tag"),
        ({"text": "a</b>", "parse_mode": "HTML"}, "Unmatched end tag"),
        ({"text": "a < b", "parse_mode": "HTML"}, "can't parse entities"),
        ({"text": "a", "chat_id": "77"}, "chat not found"),
        ({"text": "a", "message_thread_id": 5}, "message thread not found"),
        ({"text": "a", "reply_parameters": {"message_id": 77}}, "message to be replied not found"),
        (
            {"text": "a", "reply_markup": {"inline_keyboard": [[{"text": "x", "callback_data": "я" * 33}]]}},
            "BUTTON_DATA",
        ),
        ({"text": "a", "reply_markup": {"inline_keyboard": [[{"text": "x", "callback_data": ""}]]}}, "BUTTON_DATA"),
    ],
)
async def test_a_message_that_is_refused(api: Api, params: dict[str, Any], words: str) -> None:
    """Status 400 and Telegram's words, and nothing is sent."""
    status, description = await api("sendMessage", **{"chat_id": CHAT, **params})
    assert status == 400
    assert words in description


async def test_a_text_is_kept_as_telegram_keeps_it(server: TelegramServer, api: Api) -> None:
    """Blanks at the ends go and entities move along; markup is read; of 120 entities 100 stay."""
    await api("sendMessage", chat_id=CHAT, text="  ab \n", entities=[entity("bold", 2, 2)])
    await api("sendMessage", chat_id=CHAT, text="<b>a &lt; <i>b</i></b>", parse_mode="HTML")
    await api("sendMessage", chat_id=CHAT, text="a" * 4096, entities=[entity("bold", n * 2, 1) for n in range(120)])
    first, second, third = server.chats[CHAT].replies
    assert (first.text, first.entities) == ("ab", [entity("bold", 0, 2)])
    assert second.text == "a < b"
    assert {one["type"] for one in second.entities} == {"bold", "italic"}
    assert len(third.entities) == 100


async def test_edits(server: TelegramServer, api: Api) -> None:
    """An edit without a keyboard removes it; one that changes nothing is refused, blanks at the ends aside."""
    keyboard = {"inline_keyboard": [[{"text": "x", "callback_data": "y"}]]}
    _, sent = await api("sendMessage", chat_id=CHAT, text="one", reply_markup=keyboard)
    ident = sent["message_id"]
    assert (await api("editMessageText", chat_id=CHAT, message_id=ident, text="two"))[0] == 200
    assert server.chats[CHAT].replies[0].keyboard == []
    for text, words in ((" two\n", "message is not modified"), ("a" * 4097, "MESSAGE_TOO_LONG"), ("", "text is empty")):
        status, description = await api("editMessageText", chat_id=CHAT, message_id=ident, text=text)
        assert status == 400
        assert words in description
    assert (await api("deleteMessage", chat_id=CHAT, message_id=ident))[0] == 200
    assert "not found" in (await api("editMessageText", chat_id=CHAT, message_id=ident, text="x"))[1]
    assert "not found" in (await api("deleteMessage", chat_id=CHAT, message_id=ident))[1]


async def test_tokens(server: TelegramServer, api: Api) -> None:
    """A wrong token is 401, what is no token is 404."""
    base = server.api_base
    assert (await api.http.get(f"{base}/bot4242:wrong/getMe")).status_code == 401
    assert (await api.http.get(f"{base}/botwrong/getMe")).status_code == 404
    assert (await api("getNothing"))[0] == 404


async def test_updates_stay_until_a_later_poll_confirms_them(server: TelegramServer, api: Api) -> None:
    """The offset of the next poll confirms; the same offset brings the same updates."""
    ann = server.user("1002")
    ann.says("one")
    ann.says("two")
    _, first = await api("getUpdates")
    assert [update["message"]["text"] for update in first] == ["one", "two"]
    _, again = await api("getUpdates", offset=first[1]["update_id"])
    assert [update["message"]["text"] for update in again] == ["two"]
    assert await api("getUpdates", offset=first[1]["update_id"] + 1) == (200, [])
    assert server.unconfirmed == []


async def test_the_older_of_two_pollers_is_sent_away(server: TelegramServer, api: Api) -> None:
    """The newer one gets what comes."""
    older = asyncio.create_task(api("getUpdates", timeout=20))
    await server.wait_for(lambda: len(server.of("getUpdates")) == 1)
    newer = asyncio.create_task(api("getUpdates", timeout=20))
    assert (await older)[0] == 409
    server.user("1002").says("hello")
    assert len((await newer)[1]) == 1


async def test_only_wanted_updates_are_kept(server: TelegramServer, api: Api) -> None:
    """What a poll did not ask for is not queued from then on."""
    await api("getUpdates", allowed_updates=["callback_query"])
    server.user("1002").says("hello")
    assert server.unconfirmed == []


async def test_a_press_is_answered_once(server: TelegramServer, api: Api) -> None:
    """A second answer, and one to a press that never was, are refused."""
    ann = server.user("1002")
    press = ann.sends_press(ann.says("x"), "data")
    assert (await api("answerCallbackQuery", callback_query_id=press.id, text="ok"))[0] == 200
    assert (await api("answerCallbackQuery", callback_query_id=press.id))[0] == 400
    assert (await api("answerCallbackQuery", callback_query_id="never"))[0] == 400
    assert press.text == "ok"


async def test_rates(server: TelegramServer, api: Api) -> None:
    """The second message of a second is limited, and a call inside of the window is a violation."""
    server.limit(Limits())
    assert (await api("sendMessage", chat_id=CHAT, text="a"))[0] == 200
    assert (await api("sendMessage", chat_id=CHAT, text="b"))[0] == 429
    assert server.violations == []
    assert (await api("sendChatAction", chat_id=CHAT, action="typing"))[0] == 429
    assert [call.method for call in server.violations] == ["sendChatAction"]


async def test_commands_have_a_form(server: TelegramServer, api: Api) -> None:
    """A name with a capital letter is refused."""
    assert (await api("setMyCommands", commands=[{"command": "Help", "description": "x"}]))[0] == 400
    assert (await api("setMyCommands", commands=[{"command": "help", "description": "x"}]))[0] == 200
    assert (await api("getMyCommands"))[1] == [{"command": "help", "description": "x"}]


async def test_chats_that_take_nothing(server: TelegramServer, api: Api) -> None:
    """Blocked, never started, and moved."""
    ann = server.user("1002")
    ann.blocks_the_bot()
    server.user("1003", started=False)
    group = server.group()
    new = server.migrates(group, ann)
    assert (await api("sendMessage", chat_id="1002", text="a"))[0] == 403
    assert (await api("sendMessage", chat_id="1003", text="a"))[0] == 403
    answer = await api.http.post(f"{api.base}/sendMessage", json={"chat_id": int(group.id), "text": "a"})
    assert answer.json()["parameters"] == {"migrate_to_chat_id": int(new.id)}
    ann.unblocks_the_bot()
    assert (await api("sendMessage", chat_id="1002", text="a"))[0] == 200
