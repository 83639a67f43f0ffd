"""Texts that must not notify, link or load anything, by each call that carries one: what Telegram gets and shows."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.channels.security_cases import by_each_way, cases, prompt_about
from tests.platforms.telegram_house import TelegramHouse, telegram_house
from tests.platforms.telegram_world import Message
from zerobot.core.channel import OutboundFile, OutboundMessage
from zerobot.core.places import Place

CASES = cases("mentions", "telegram")
CHAT = "1001"
ANNS = Place("telegram", CHAT)
LINKED = ("https://", "http://", "mailto:")


async def _send(house: TelegramHouse, text: str, _: Path) -> None:
    await house.send(CHAT, text)


async def _plain(house: TelegramHouse, text: str, _: Path) -> None:
    body = house.channel.plain(house.channel.render(text)[0])
    await house.channel.send(OutboundMessage(place=ANNS, body=body, key="k1"))


async def _edit(house: TelegramHouse, text: str, _: Path) -> None:
    sent = await house.send(CHAT, "a draft")
    await house.channel.edit(sent, house.channel.render(text)[0])


async def _file_caption(house: TelegramHouse, text: str, folder: Path) -> None:
    path = folder / "out.txt"
    path.write_bytes(b"data")
    await house.send(CHAT, text, file=OutboundFile(path=str(path), name="out.txt"))


async def _approval_prompt(house: TelegramHouse, text: str, _: Path) -> None:
    await house.channel.ask(ANNS, prompt_about(text), "p1")


async def _settled_prompt(house: TelegramHouse, text: str, _: Path) -> None:
    sent = await house.channel.ask(ANNS, prompt_about("x"), "p1")
    await house.channel.settle(sent, prompt_about(text, is_open=False))


WAYS: dict[str, Callable[[TelegramHouse, str, Path], Awaitable[None]]] = {
    "send": _send,
    "plain": _plain,
    "edit": _edit,
    "file_caption": _file_caption,
    "approval_prompt": _approval_prompt,
    "settled_prompt": _settled_prompt,
}
VERBATIM = {"approval_prompt", "settled_prompt"}
"""An operator sees what runs letter for letter, addresses too; there they are text."""


def _check(message: Message, expect: dict[str, Any], *, verbatim: bool) -> None:
    for entity in message.entities:
        assert entity["type"] not in expect.get("entities_exclude", ())
        assert "url" not in entity or str(entity["url"]).startswith(LINKED)
    for part in expect.get("text_excludes", ()):
        assert verbatim or part not in message.text
    assert message.preview_off or message.file is not None, "a caption has no preview of links"


def test_each_call_of_a_case_has_its_way() -> None:
    """No case is left out."""
    assert {case["call"] for case in CASES} <= WAYS.keys()


@by_each_way(CASES, WAYS)
async def test_a_text_notifies_links_and_loads_nothing(case: dict[str, Any], way: str, tmp_path: Path) -> None:
    """Whatever call a case is about, its text is as harmless by all others; and people can read it.

    A user name in plain text notifies that person in a group; it cannot be switched off, and it is left as it is.
    """
    async with telegram_house() as house:
        ann = house.server.user(CHAT, name="Ann", username="ann")
        await WAYS[way](house, case["text"], tmp_path)
        (message,) = ann.chat.replies
        sent = json.dumps([call.params for call in house.server.calls])
    _check(message, case["expect"], verbatim=way in VERBATIM)
    assert "parse_mode" not in sent
    for part in case.get("readable", ()):
        assert part in message.text
