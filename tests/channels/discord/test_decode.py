"""Events of Discord in the common form: a table of payloads as the gateway writes them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.discord.content import Me
from channels.discord.decode import decode_edit, decode_interaction, decode_message
from zerobot.core.envelope import Button, ButtonPress, InboundEnvelope, Quote
from zerobot.core.ids import ApprovalId
from zerobot.core.places import Identity, Place

ME = Me("42", "zero", frozenset({"555"}), frozenset({"help", "status"}))
ANN = {"id": "1001", "username": "ann", "global_name": "Ann", "discriminator": "0"}
ZERO = {"id": "42", "username": "zero", "bot": True, "global_name": None}
GUILD: dict[str, Any] = {"guild_id": "9", "member": {"nick": "Annie", "roles": []}}
TEAM = Place("discord", "77")


def message(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {
        "id": "5",
        "type": 0,
        "channel_id": "77",
        "author": ANN,
        "content": text,
        "timestamp": "2026-01-02T03:04:05.678000+00:00",
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        **more,
    }


def read(text: str = "hello", place: Place = TEAM, **more: Any) -> InboundEnvelope:
    envelope = decode_message(message(text, **more), ME, place)
    assert envelope is not None
    return envelope


def test_a_message() -> None:
    """Who, where, what, when."""
    envelope = read(**GUILD)
    assert (envelope.event_id, envelope.message_id, envelope.text) == ("5", "5", "hello")
    assert envelope.sender == Identity("discord", "1001")
    assert envelope.sender_name == "Annie"
    assert envelope.sender_handles == ("@ann",)
    assert not envelope.addressed
    assert envelope.sent_at == datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


def test_a_direct_message_is_always_for_the_bot() -> None:
    """It is named by its person."""
    envelope = read(place=Place("discord", "@1001"))
    assert (envelope.direct, envelope.addressed) == (True, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<@42> hello", "hello"),
        ("<@!42>, hello", "hello"),
        ("hello <@42>", "hello"),
        ("so <@42> what now", "so what now"),
        ("<@&555> hello", "hello"),
        ("one\n<@42> two", "one\ntwo"),
        ("<@42>", "<@42>"),
        ("<@42> ask <@1001>", "ask @Ann"),
        ("look <:heron:123> <a:run:4>", "look :heron: :run:"),
        ("<#77> and <@999> and <t:1:R>", "<#77> and <@999> and <t:1:R>"),
    ],
)
def test_what_only_says_whom_it_is_for_is_left_out(text: str, words: str) -> None:
    """Names stand for ids, as far as Discord says them."""
    assert read(text, mentions=[ANN]).text == words


@pytest.mark.parametrize(
    ("more", "addressed"),
    [
        ({}, False),
        ({"content": "<@42> x"}, True),
        ({"content": "<@&555> x"}, True),
        ({"content": "<@&556> x"}, False),
        ({"mentions": [ZERO]}, True),
        ({"type": 19, "referenced_message": message("hi", author=ZERO)}, True),
        ({"type": 19, "referenced_message": message("hi")}, False),
        ({"type": 19, "referenced_message": None}, False),
        ({"content": "/status"}, True),
        ({"content": "/usr/bin is full"}, False),
        ({"content": "@everyone", "mention_everyone": True}, False),
    ],
)
def test_when_the_bot_is_spoken_to(more: dict[str, Any], addressed: bool) -> None:  # noqa: FBT001 -- a row of the table
    """By its name, its role, in answer to it, by a command; everybody is not the bot."""
    envelope = decode_message(message(**{"text": "x", **more}) | more, ME, TEAM)
    assert envelope is not None
    assert envelope.addressed == addressed


@pytest.mark.parametrize(
    "more",
    [
        {"author": ZERO},
        {"author": {**ANN, "bot": True}},
        {"author": {**ANN, "system": True}},
        {"webhook_id": "3"},
        {"type": 7},
        {"type": 6},
        {"content": ""},
    ],
)
def test_what_no_person_says(more: dict[str, Any]) -> None:
    """Bots, webhooks, notices, and nothing at all."""
    assert decode_message(message() | more, ME, TEAM) is None


@pytest.mark.parametrize(
    ("text", "more", "addressed"),
    [
        ("<@42> hello", {}, True),
        ("<@&555> hello", {"mention_roles": ["555"]}, True),
        ("hello", {"mentions": [ZERO], "type": 19, "referenced_message": message("hi", author=ZERO)}, False),
        ("hello", {}, False),
    ],
)
def test_what_another_bot_says_where_bots_are_heard(text: str, more: dict[str, Any], *, addressed: bool) -> None:
    """It has to name us in its words: bots answer, and answers ping, without anybody meaning it."""
    said = message(text, author={"id": "7", "username": "robot", "bot": True}, **more)
    envelope = decode_message(said, replace(ME, hears_bots=True), TEAM)
    assert envelope is not None
    assert (envelope.from_bot, envelope.addressed) == (True, addressed)


@pytest.mark.parametrize("more", [{"author": ZERO}, {"webhook_id": "3"}, {"type": 7}])
def test_what_is_never_heard(more: dict[str, Any]) -> None:
    """The bot itself, and what comes by an address that anybody may have."""
    robot = message("<@42> hi", author={"id": "7", "username": "robot", "bot": True})
    assert decode_message(robot | more, replace(ME, hears_bots=True), TEAM) is None


def test_a_quote_is_the_message_that_is_answered() -> None:
    """With its author and its files; not too much of it."""
    answered = message("Draft <@42>", author=ZERO, attachments=[attachment("a.pdf", "application/pdf")])
    assert read(type=19, referenced_message=answered).quote == Quote(author="zero", text="Draft <@42>\n[file: a.pdf]")
    long = read(type=19, referenced_message=message("x" * 4000)).quote
    assert long is not None
    assert len(long.text) < 1600


def attachment(name: str, mime: str | None) -> dict[str, Any]:
    return {"id": "1", "filename": name, "size": 5, "url": f"https://cdn.test/{name}", "content_type": mime}


def test_files_keep_their_order_and_say_their_kind() -> None:
    """What the sender's side says of them, and where they are."""
    files = [attachment("a.png", "image/png"), attachment("b.ogg", "audio/ogg; codecs=opus"), attachment("c", None)]
    found = read("", attachments=files).attachments
    assert [(each.kind, each.name, each.mime, each.size) for each in found] == [
        ("image", "a.png", "image/png", 5),
        ("audio", "b.ogg", "audio/ogg", 5),
        ("file", "c", "application/octet-stream", 5),
    ]
    assert found[0].ref == "https://cdn.test/a.png"


def test_what_is_neither_text_nor_file_has_a_line() -> None:
    """Stickers, polls, and what is forwarded, with its files."""
    poll = {"question": {"text": "Lunch\n?"}, "answers": [{"poll_media": {"text": "yes"}}, {"poll_media": {}}]}
    forwarded = {"message": {"content": "old words", "attachments": [attachment("a.png", "image/png")]}}
    envelope = read("", sticker_items=[{"name": "wave"}], poll=poll, message_snapshots=[forwarded])
    assert envelope.text == "[Forwarded]\nold words\n[Sticker: wave]\n[Poll: Lunch ? (yes; )]"
    assert [each.name for each in envelope.attachments] == ["a.png"]


def test_names_that_are_not_unique_are_no_handles() -> None:
    """An account of the old kind shares its name with others."""
    assert read(author={**ANN, "discriminator": "1234"}).sender_handles == ()


def test_an_edit_names_its_message() -> None:
    """Without a text it is none: Discord has added a preview."""
    edit = decode_edit(message("<@42> again", **GUILD), ME, "discord")
    assert edit is not None
    assert (edit.place, edit.message_id, edit.text) == (TEAM, "5", "again")
    assert decode_edit({"id": "5", "channel_id": "77", "embeds": []}, ME, "discord") is None
    assert decode_edit(message(author=ZERO), ME, "discord") is None


def interaction(kind: int, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "8", "token": "t", "type": kind, "channel_id": "77", "data": data, **more}


def test_a_press_and_a_form() -> None:
    """What they say is in their ids; the reason in a row of the form, or under a label."""
    asked = decode_interaction(
        interaction(3, {"custom_id": "a:XYZ"}, guild_id="9", member={"user": ANN}, message={"id": "6"}), "discord"
    )
    assert asked is not None
    assert asked.what == ButtonPress(
        channel="discord",
        presser=Identity("discord", "1001"),
        approval=ApprovalId("XYZ"),
        button=Button.APPROVE,
        presser_name="Ann",
        place=TEAM,
        message_id="6",
    )
    rows = (
        {"type": 1, "components": [{"type": 4, "custom_id": "reason", "value": " no "}]},
        {"type": 18, "component": {"type": 4, "custom_id": "reason", "value": " no "}},
    )
    for row in rows:
        form = decode_interaction(interaction(5, {"custom_id": "r:XYZ", "components": [row]}, user=ANN), "discord")
        assert form is not None
        assert isinstance(form.what, ButtonPress)
        assert (form.what.reason, form.what.button, form.wants_form) == ("no", Button.DENY, False)
        assert form.what.place == Place("discord", "@1001")


@pytest.mark.parametrize("kind", [1, 4, 9])
def test_interactions_that_are_offered_nowhere(kind: int) -> None:
    """Pings, completions, whatever comes."""
    assert decode_interaction(interaction(kind, {}, user=ANN), "discord") is None
    assert decode_interaction(interaction(3, {"custom_id": "a:1"}, user=ZERO), "discord") is None


@given(st.text(max_size=60))
def test_any_text_is_decoded(text: str) -> None:
    """There is none that trips it."""
    envelope = decode_message(message(f"<@42> {text}"), ME, TEAM)
    assert envelope is not None
    assert envelope.text
