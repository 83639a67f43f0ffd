"""Texts that must not notify or load anything, by each call that carries one: what Slack gets and what people read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from tests.channels.security_cases import by_each_way, cases, prompt_about
from tests.platforms.slack_house import SlackHouse, slack_house
from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.channel import OutboundFile, OutboundMessage
from zerobot.core.places import Place

CASES = cases("mentions", "slack")
CHAT = "U1001"
ANNS = Place("slack", CHAT)
# Everything else in a `rich_text` block is read as a mark: people, groups, channels, dates, emoji.
HARMLESS = {"rich_text_section", "rich_text_preformatted", "rich_text_quote", "text", "link"}


def _read(house: SlackHouse) -> str:
    """What Ann reads last."""
    return house.server.people[CHAT].chat.messages[-1].text


async def _send(house: SlackHouse, text: str, _: Path) -> str:
    await house.send(CHAT, text)
    return _read(house)


async def _plain(house: SlackHouse, text: str, _: Path) -> str:
    body = house.channel.plain(house.channel.render(text)[0])
    await house.channel.send(OutboundMessage(place=ANNS, body=body, key="k1"))
    return _read(house)


async def _update(house: SlackHouse, text: str, _: Path) -> str:
    sent = await house.send(CHAT, "a draft")
    await house.channel.edit(sent, house.channel.render(text)[0])
    return _read(house)


async def _stream(house: SlackHouse, text: str, _: Path) -> str:
    ann = house.server.people[CHAT]
    root = house.server.new_message(ann.chat, ann.id, "a question")
    (body,) = house.channel.render(text)
    place = Place("slack", CHAT, root.ts)
    sent = await house.channel.send(OutboundMessage(place=place, body=body, key="k1", reply_to=root.ts, growing=True))
    while not await house.channel.grow(sent, body):
        pass
    await house.channel.edit(sent, body)
    return _read(house)


async def _file_words(house: SlackHouse, text: str, folder: Path) -> str:
    path = folder / "out.txt"
    path.write_bytes(b"data")
    await house.send(CHAT, text, file=OutboundFile(path=str(path), name="out.txt"))
    return _read(house)


async def _approval_prompt(house: SlackHouse, text: str, _: Path) -> str:
    await house.channel.ask(ANNS, prompt_about(text), "p1")
    return _read(house)


async def _settled_prompt(house: SlackHouse, text: str, _: Path) -> str:
    sent = await house.channel.ask(ANNS, prompt_about("x"), "p1")
    await house.channel.settle(sent, prompt_about(text, is_open=False))
    return _read(house)


async def _command_answer(house: SlackHouse, text: str, _: Path) -> str:
    async with house.running() as intake:
        asked = house.server.people[CHAT].commands("status")
        await intake.until(lambda: intake.accepted)
        await house.send(CHAT, text, reply_to=intake.accepted[0].message_id)
        return (await asked.answered()).text


async def _press_answer(house: SlackHouse, text: str, _: Path) -> str:
    await house.channel.ask(ANNS, prompt_about("x"), "p1")
    ann = house.server.people[CHAT]
    assert ann.chat.prompt is not None
    house.intake.reply = PressReply(PressOutcome.APPROVED, text)
    async with house.running():
        return (await ann.presses(ann.chat.prompt, "Approve").answered()).text


async def _form_answer(house: SlackHouse, text: str, _: Path) -> str:
    await house.channel.ask(ANNS, prompt_about("x"), "p1")
    ann = house.server.people[CHAT]
    assert ann.chat.prompt is not None
    house.intake.reply = PressReply(PressOutcome.DENIED, text)
    async with house.running():
        form = await ann.presses(ann.chat.prompt, "Deny with reason").answered()
        return (await ann.fills_in(form, "because").answered()).text


WAYS: dict[str, Callable[[SlackHouse, str, Path], Awaitable[str]]] = {
    "send": _send,
    "plain": _plain,
    "update": _update,
    "stream": _stream,
    "file_words": _file_words,
    "approval_prompt": _approval_prompt,
    "settled_prompt": _settled_prompt,
    "command_answer": _command_answer,
    "press_answer": _press_answer,
    "form_answer": _form_answer,
}


def _elements(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All that the `rich_text` blocks of a call are made of."""
    todo = [each for block in blocks if block["type"] != "actions" for each in block["elements"]]
    while todo:
        element = todo.pop()
        yield element
        todo += element.get("elements", ())


def _check_call(name: str, params: dict[str, Any], expect: dict[str, Any]) -> None:
    marked = str(params.get("text") or "") + str(params.get("markdown_text") or "")
    for part in expect.get("text_excludes", ()):
        assert part not in marked
    for element in _elements(params.get("blocks") or []):
        assert element["type"] in HARMLESS
    assert not params.get("link_names")
    if name in {"chat.postMessage", "chat.update"}:
        assert params["parse"] == "none"
    if name == "chat.postMessage":
        assert (params["unfurl_links"], params["unfurl_media"]) == (False, False)


def test_each_call_of_a_case_has_its_way() -> None:
    """No case is left out."""
    assert {case["call"] for case in CASES} <= WAYS.keys()


@by_each_way(CASES, WAYS)
async def test_a_text_notifies_and_loads_nothing(case: dict[str, Any], way: str, tmp_path: Path) -> None:
    """Whatever call a case is about, its text is as harmless by all others; and people can read it."""
    async with slack_house() as house:
        ann = house.server.user(CHAT, name="Ann")
        seen = await WAYS[way](house, case["text"], tmp_path)
        calls, responses = list(house.server.calls), list(house.server.presses.responded)
        pings = [ping for message in ann.chat.messages for ping in message.pings]
    for call in calls:
        _check_call(call.name, call.params, case["expect"])
    for response in responses:
        _check_call("response_url", response, case["expect"])
    texts = [str(each.get("text", "")) for each in [*(call.params for call in calls), *responses]]
    if way not in {"file_words", "stream"}:
        for part in case["expect"].get("text_contains", ()):
            assert any(part in text for text in texts)
    assert pings == []
    for part in case.get("readable", ()):
        assert part in seen
