"""Texts that must not ping or load anything, by each call that carries one: what Discord gets and what people read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.channels.security_cases import by_each_way, cases, prompt_about
from tests.platforms.discord_house import DiscordHouse, discord_house
from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.channel import OutboundFile
from zerobot.core.places import Place

CASES = cases("mentions", "discord")
SUPPRESS_EMBEDS = 4
# https://discord.com/developers/docs/interactions/receiving-and-responding: an announced answer and a form say nothing.
WORDLESS = {5, 9}
WORDS = frozenset({"create_message", "edit_message", "callback", "original", "followup"})
CHAT = "@1001"


async def _send(house: DiscordHouse, text: str, _: Path) -> str:
    await house.send(CHAT, text)
    return house.server.people["1001"].chat.texts[-1]


async def _edit(house: DiscordHouse, text: str, _: Path) -> str:
    sent = await house.send(CHAT, "a draft")
    await house.channel.edit(sent, house.channel.render(text)[0])
    return house.server.people["1001"].chat.texts[-1]


async def _file_caption(house: DiscordHouse, text: str, folder: Path) -> str:
    path = folder / "out.txt"
    path.write_bytes(b"data")
    await house.send(CHAT, text, file=OutboundFile(path=str(path), name="out.txt"))
    return house.server.people["1001"].chat.texts[-1]


async def _approval_prompt(house: DiscordHouse, text: str, _: Path) -> str:
    await house.channel.ask(Place("discord", CHAT), prompt_about(text), "p1")
    return house.server.people["1001"].chat.texts[-1]


async def _settled_prompt(house: DiscordHouse, text: str, _: Path) -> str:
    sent = await house.channel.ask(Place("discord", CHAT), prompt_about("x"), "p1")
    await house.channel.settle(sent, prompt_about(text, is_open=False))
    return house.server.people["1001"].chat.texts[-1]


async def _followup(house: DiscordHouse, text: str, _: Path) -> str:
    ann = house.server.people["1001"]
    async with house.running() as intake:
        await house.server.wait_for(lambda: house.server.commands)
        asked = ann.commands("ask", "something")
        await intake.until(lambda: intake.accepted)
        await house.send(CHAT, text, reply_to=intake.accepted[0].message_id)
    return (await asked.answered()).text


async def _press_answer(house: DiscordHouse, text: str, _: Path, *, late: bool = False) -> str:
    ann = house.server.people["1001"]
    house.intake.reply = PressReply(PressOutcome.APPROVED, text)
    async with house.running() as intake:
        if late:
            intake.hold(presses=True)
        press = ann.sends_press(ann.says("a button"), "a:" + "A" * 22)
        await house.server.wait_for(lambda: press.answered_at)
        intake.release()
        return (await press.answered()).text


async def _late_press_answer(house: DiscordHouse, text: str, folder: Path) -> str:
    return await _press_answer(house, text, folder, late=True)


WAYS: dict[str, Callable[[DiscordHouse, str, Path], Awaitable[str]]] = {
    "send": _send,
    "edit": _edit,
    "file_caption": _file_caption,
    "approval_prompt": _approval_prompt,
    "settled_prompt": _settled_prompt,
    "followup": _followup,
    "press_answer": _press_answer,
    "late_press_answer": _late_press_answer,
}


def _payloads(house: DiscordHouse) -> list[dict[str, Any]]:
    """Of each call that carries words."""
    bodies = [call.params["body"] for call in house.server.of(*WORDS)]
    return [body.get("data", body) for body in bodies if body and body.get("type") not in WORDLESS]


def test_each_call_of_a_case_has_its_way() -> None:
    """No case is left out."""
    assert {case["call"] for case in CASES} <= WAYS.keys()


@by_each_way(CASES, WAYS)
async def test_a_text_pings_and_loads_nothing(case: dict[str, Any], way: str, tmp_path: Path) -> None:
    """Whatever call a case is about, its text is as harmless by all others; and people can read it."""
    async with discord_house() as house:
        house.server.user("1001", name="Ann", username="ann")
        seen = await WAYS[way](house, case["text"], tmp_path)
        payloads = _payloads(house)
        pings = [ping for chat in house.server.channels.values() for one in chat.messages for ping in one.pings]
    assert payloads
    for payload in payloads:
        allowed = payload["allowed_mentions"]["parse"]
        assert not set(allowed) & set(case["expect"].get("allowed_mentions_parse_excludes", ()))
        if case["expect"].get("embeds_suppressed"):
            assert payload["flags"] & SUPPRESS_EMBEDS
    assert pings == []
    for part in case.get("readable", ()):
        assert part in seen
