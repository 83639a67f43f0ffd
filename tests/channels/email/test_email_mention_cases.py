"""Texts that must not act on anything, by each call that carries one: what the server gets and what people read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.channels.email.test_render import Reader
from tests.channels.security_cases import by_each_way, cases, prompt_about
from tests.platforms.email_house import EmailHouse, email_house
from tests.platforms.smtp_checks import read
from zerobot.core.channel import OutboundFile
from zerobot.core.places import Identity, Place

CASES = cases("mentions", "email")
ANN = Place("email", "ann@example.com")


async def _send(house: EmailHouse, text: str, _: Path) -> None:
    await house.send(ANN, text)


async def _file_caption(house: EmailHouse, text: str, folder: Path) -> None:
    path = folder / "out.txt"
    path.write_bytes(b"data")
    await house.send(ANN, text, file=OutboundFile(path=str(path), name="out.txt"))


async def _approval_prompt(house: EmailHouse, text: str, _: Path) -> None:
    await house.channel.ask(ANN, prompt_about(text), "p1")


async def _settled_prompt(house: EmailHouse, text: str, _: Path) -> None:
    sent = await house.channel.ask(ANN, prompt_about("x"), "p1")
    house.smtp.notes.taken.clear()
    house.smtp.notes.commands.clear()
    await house.channel.settle(sent, prompt_about(text, is_open=False))


async def _in_reply_to(house: EmailHouse, text: str, _: Path) -> None:
    await house.send(ANN, text, reply_to=text)


WAYS: dict[str, Callable[[EmailHouse, str, Path], Awaitable[None]]] = {
    "send": _send,
    "file_caption": _file_caption,
    "approval_prompt": _approval_prompt,
    "settled_prompt": _settled_prompt,
    "in_reply_to": _in_reply_to,
}


def test_each_call_of_a_case_has_its_way() -> None:
    """No case is left out."""
    assert {case["call"] for case in CASES} <= WAYS.keys()


@by_each_way(CASES, WAYS)
async def test_a_text_adds_nothing_to_a_mail_but_words(case: dict[str, Any], way: str, tmp_path: Path) -> None:
    """No field, no recipient, no second mail, nothing that loads or runs; and people can read it."""
    async with email_house() as house:
        await WAYS[way](house, case["text"], tmp_path)
        (taken,) = house.smtp.notes.taken
        verbs = [verb for _, verb in house.smtp.notes.commands]
    mail = read(taken.raw)
    assert verbs.count("MAIL") == verbs.count("DATA") == case["expect"].get("smtp_commands", 1)
    assert taken.recipients == (ANN.chat,)
    for name in ("Bcc", *case["expect"].get("headers_exclude", ())):
        assert name not in mail
    html = mail.get_body(("html",))
    plain = mail.get_body(("plain",))
    assert html is not None
    assert plain is not None
    assert Reader(str(html.get_content())).bad == []
    for part in case["expect"].get("html_excludes", ()):
        assert part not in html.get_content()
    for part in case.get("readable", ()):
        assert part in plain.get_content()


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
async def test_a_subject_adds_nothing_to_the_answer_but_words(case: dict[str, Any]) -> None:
    """What somebody calls his mail stands in the subject of the answer, and nowhere else in its header."""
    async with email_house() as house:
        async with house.running() as intake:
            house.writes("hello", subject=" ".join(case["text"].split()))
            await intake.until(lambda: intake.accepted)
            mail = read(await house.answer())
        assert intake.accepted[0].sender == Identity("email", ANN.chat)
    assert "Bcc" not in mail
    assert mail["To"] == ANN.chat
