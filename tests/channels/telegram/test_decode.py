"""Updates as Telegram records them, and what they are in the common form."""

from __future__ import annotations

from typing import Any

import pytest
from telegram import Update

from channels._text.measure import utf16_len
from channels.telegram.content import QUOTE_CHARACTERS, Me
from channels.telegram.decode import Decoded, Moved, Press, decode
from zerobot.core.envelope import Button, EnvelopeEdit, InboundEnvelope, Quote
from zerobot.core.places import Identity, Place

ME = Me(4242, "zero_bot", frozenset({"help", "stop"}))
ANN = {"id": 1001, "is_bot": False, "first_name": "Ann", "last_name": "Bee", "username": "ann"}
BEN = {"id": 7123456789, "is_bot": False, "first_name": "Ben"}
ZERO = {"id": 4242, "is_bot": True, "first_name": "Zero", "username": "zero_bot"}
DIRECT = {"id": 1001, "type": "private", "first_name": "Ann"}
GROUP = {"id": -100123, "type": "supergroup", "title": "Team"}


def message(**fields: Any) -> dict[str, Any]:
    """A message of Ann's in her direct chat, unless the fields say otherwise."""
    return {"message_id": 7, "date": 1760000000, "from": ANN, "chat": DIRECT, **fields}


def read(kind: str = "message", **fields: Any) -> Decoded | None:
    value = fields if kind == "callback_query" else message(**fields)
    update = Update.de_json({"update_id": 1, kind: value}, None)
    return decode(update, ME, "telegram")


def envelope(**fields: Any) -> InboundEnvelope:
    decoded = read(**fields)
    assert isinstance(decoded, InboundEnvelope)
    return decoded


def entity(text: str, token: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": utf16_len(text[: text.index(token)]), "length": utf16_len(token), **more}


def in_group(text: str, token: str = "", kind: str = "mention", **more: Any) -> InboundEnvelope:
    entities = [entity(text, token, kind, **more)] if token else []
    return envelope(chat=GROUP, text=text, entities=entities)


def test_a_direct_message() -> None:
    """Identity is the number, the name is for reading, the place is the chat, and a direct chat is always addressed."""
    found = envelope(text="hi")
    assert found.sender == Identity("telegram", "1001")
    assert found.place == Place("telegram", "1001")
    assert (found.text, found.message_id, found.event_id) == ("hi", "7", "1001:7")
    assert (found.sender_name, found.sender_handles) == ("Ann Bee", ("@ann",))
    assert found.direct
    assert found.addressed
    assert found.sent_at is not None
    assert found.sent_at.isoformat() == "2025-10-09T08:53:20+00:00"


def test_large_ids_and_people_without_a_name_of_their_own() -> None:
    """Ids are larger than 32 bits, and who has no user name has no handle."""
    found = envelope(**{"from": BEN}, text="hi")
    assert str(found.sender) == "telegram:7123456789"
    assert found.sender_handles == ()


@pytest.mark.parametrize(
    ("fields"),
    [
        {"from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}, "sender_chat": GROUP, "chat": GROUP},
        {
            "from": {"id": 136817688, "is_bot": True, "first_name": "Channel"},
            "sender_chat": {"id": -100999, "type": "channel", "title": "x"},
        },
        {"from": {"id": 777000, "is_bot": False, "first_name": "Telegram"}, "chat": GROUP},
        {"from": {"id": 1001, "is_bot": True, "first_name": "x"}},
        {"from": ZERO},
        {"sender_chat": GROUP, "chat": GROUP},
    ],
    ids=["anonymous admin", "as a channel", "forwarded by Telegram", "a bot", "ourselves", "as a group"],
)
def test_who_cannot_be_told_is_nobody(fields: dict[str, Any]) -> None:
    """Whoever speaks in the name of a chat, and every bot, starts nothing, and no edit or press of theirs counts."""
    assert read(text="hi", **fields) is None
    assert read("edited_message", text="hi", **fields) is None


@pytest.mark.parametrize("kind", ["channel_post", "edited_channel_post"])
def test_posts_of_a_channel_are_nothing(kind: str) -> None:
    """A post has no sender at all."""
    post = {"message_id": 1, "date": 1, "chat": {"id": -100999, "type": "channel", "title": "x"}, "text": "hi"}
    assert decode(Update.de_json({"update_id": 1, kind: post}, None), ME, "telegram") is None


def test_service_messages_say_nothing() -> None:
    """A join is no message to anybody."""
    assert read(chat=GROUP, new_chat_members=[BEN]) is None


@pytest.mark.parametrize(
    ("text", "token", "left"),
    [
        ("@zero_bot what time is it", "@zero_bot", "what time is it"),
        ("@Zero_Bot, hello", "@Zero_Bot", "hello"),
        ("hey @zero_bot what time is it", "@zero_bot", "hey what time is it"),
        ("hey @zero_bot, and you?", "@zero_bot", "hey, and you?"),
        ("what time is it @zero_bot", "@zero_bot", "what time is it"),
        ("🧪🧪 @zero_bot 🧪 go", "@zero_bot", "🧪🧪 🧪 go"),
        ("one\n@zero_bot two", "@zero_bot", "one\ntwo"),
        ("@zero_bot", "@zero_bot", "@zero_bot"),
    ],
)
def test_a_mention_addresses_the_bot_and_is_left_out(text: str, token: str, left: str) -> None:
    """What says only whom it is for goes, counted in UTF-16 units; a mention alone stays, so that something is said."""
    found = in_group(text, token)
    assert (found.addressed, found.text) == (True, left)


def test_a_mention_without_a_user_name() -> None:
    """A mention by id counts by the id."""
    assert in_group("Zero: hi", "Zero", "text_mention", user=ZERO).addressed
    assert not in_group("Ben: hi", "Ben", "text_mention", user=BEN).addressed


def test_a_caption_is_searched_like_a_text() -> None:
    """Media need their mention in the caption."""
    caption = "@zero_bot what is this"
    photo = [{"file_id": "f", "file_unique_id": "u", "width": 9, "height": 9}]
    found = envelope(
        chat=GROUP, photo=photo, caption=caption, caption_entities=[entity(caption, "@zero_bot", "mention")]
    )
    assert (found.addressed, found.text) == (True, "what is this")


def test_others_in_a_group_are_not_addressed() -> None:
    """Plain talk, somebody else's name and a name that is no mention do not address the bot."""
    assert not in_group("hello all").addressed
    assert not in_group("@zero_bot2 hi", "@zero_bot2").addressed
    assert not in_group("see `@zero_bot`", "`@zero_bot`", "code").addressed


@pytest.mark.parametrize(
    ("text", "token", "left"),
    [
        ("/stop@zero_bot now", "/stop@zero_bot", "/stop now"),
        ("/other@ZERO_BOT", "/other@ZERO_BOT", "/other"),
        ("/stop", "/stop", "/stop"),
    ],
)
def test_a_command_for_the_bot(text: str, token: str, left: str) -> None:
    """A command that names the bot is its, and so is one of its own that names nobody."""
    found = in_group(text, token, "bot_command")
    assert (found.addressed, found.text) == (True, left)


def test_a_command_for_another_bot() -> None:
    """A command that names another bot is not said to us; one that we don't have addresses nobody."""
    assert (
        read(chat=GROUP, text="/stop@other_bot", entities=[entity("/stop@other_bot", "/stop@other_bot", "bot_command")])
        is None
    )
    assert not in_group("/dance", "/dance", "bot_command").addressed


def test_a_reply_to_the_bot_addresses_it_and_quotes() -> None:
    """Answering the bot addresses it; what is answered comes along with its author."""
    found = envelope(chat=GROUP, text="why?", reply_to_message=message(**{"from": ZERO}, chat=GROUP, text="Because."))
    assert found.addressed
    assert found.quote == Quote(author="Zero", text="Because.")


def test_a_reply_to_somebody_else() -> None:
    """Answering another person addresses nobody, and makes nobody of the one who answers."""
    found = envelope(
        **{"from": BEN}, chat=GROUP, text="why?", reply_to_message=message(chat=GROUP, caption="see", document=DOCUMENT)
    )
    assert not found.addressed
    assert str(found.sender) == "telegram:7123456789"
    assert found.quote == Quote(author="Ann Bee", text="see\n[file: ../../x.pdf]")


def test_a_picked_quote_and_a_long_one() -> None:
    """The part that the sender picked is the quote; a whole message is cut."""
    answered = message(text="a" * 4000)
    assert envelope(text="?", reply_to_message=answered, quote={"text": "aa", "position": 3}).quote == Quote(
        author="Ann Bee", text="aa"
    )
    whole = envelope(text="?", reply_to_message=answered).quote
    assert whole is not None
    assert len(whole.text) == QUOTE_CHARACTERS + 2


def test_only_a_topic_is_a_thread() -> None:
    """A plain reply in a group carries a thread id too; only in a forum does it name a topic."""
    topic = envelope(chat=GROUP, text="hi", message_thread_id=11, is_topic_message=True)
    assert topic.place == Place("telegram", "-100123", "11")
    assert envelope(chat=GROUP, text="hi", message_thread_id=11).place == Place("telegram", "-100123")


def test_each_message_in_a_topic_formally_answers_its_beginning() -> None:
    """The message that opened a topic is no quote, even if the bot opened it."""
    opening = message(**{"from": ZERO}, chat=GROUP, forum_topic_created={"name": "x", "icon_color": 1})
    found = envelope(chat=GROUP, text="hi", message_thread_id=11, is_topic_message=True, reply_to_message=opening)
    assert not found.addressed
    assert found.quote is None


DOCUMENT = {
    "file_id": "D",
    "file_unique_id": "u",
    "file_name": "../../x.pdf",
    "mime_type": "application/pdf",
    "file_size": 60_000_000,
}
BASE = {"file_unique_id": "u", "file_size": 5}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"document": DOCUMENT}, ("file", "../../x.pdf", "application/pdf", 60_000_000, "D")),
        ({"document": {**BASE, "file_id": "P", "mime_type": "image/png"}}, ("image", "document", "image/png", 5, "P")),
        (
            {
                "photo": [
                    {**BASE, "file_id": "large", "width": 1280, "height": 853, "file_size": 99},
                    {**BASE, "file_id": "small", "width": 90, "height": 60},
                ]
            },
            ("image", "photo.jpg", "image/jpeg", 99, "large"),
        ),
        ({"voice": {**BASE, "file_id": "V", "duration": 1}}, ("audio", "voice.ogg", "audio/ogg", 5, "V")),
        (
            {"audio": {**BASE, "file_id": "A", "duration": 1, "file_name": "s.m4a", "mime_type": "audio/mp4"}},
            ("audio", "s.m4a", "audio/mp4", 5, "A"),
        ),
        (
            {"video": {**BASE, "file_id": "M", "duration": 1, "width": 1, "height": 1}},
            ("video", "video.mp4", "video/mp4", 5, "M"),
        ),
        (
            {"video_note": {**BASE, "file_id": "N", "duration": 1, "length": 1}},
            ("video", "video-note.mp4", "video/mp4", 5, "N"),
        ),
        (
            {
                "animation": {**BASE, "file_id": "G", "duration": 1, "width": 1, "height": 1},
                "document": {**BASE, "file_id": "G"},
            },
            ("video", "animation.mp4", "video/mp4", 5, "G"),
        ),
    ],
    ids=["document", "picture as document", "photo", "voice", "audio", "video", "video note", "animation"],
)
def test_files(fields: dict[str, Any], expected: tuple[object, ...]) -> None:
    """Each file is one attachment with what Telegram says about it; the name stays data, as it came."""
    (found,) = envelope(**fields).attachments
    assert (found.kind, found.name, found.mime, found.size, found.ref) == expected


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "[Location: 52.500000, 13.400000]"),
        (
            {
                "venue": {"location": {"latitude": 1, "longitude": 2}, "title": "Bar\nX", "address": "1 St"},
                "location": {"latitude": 1, "longitude": 2},
            },
            "[Place: Bar X, 1 St (1.000000, 2.000000)]",
        ),
        ({"contact": {"first_name": "Cy", "phone_number": "+1"}}, "[Contact: Cy, +1]"),
        (
            {
                "sticker": {
                    **BASE,
                    "file_id": "s",
                    "type": "regular",
                    "width": 1,
                    "height": 1,
                    "is_animated": False,
                    "is_video": False,
                    "emoji": "😀",
                }
            },
            "[Sticker: 😀]",
        ),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[Dice: 🎲 4]"),
        (
            {
                "poll": {
                    "id": "1",
                    "question": "Tea?",
                    "options": [
                        {"text": "yes", "voter_count": 0, "persistent_id": "1"},
                        {"text": "no", "voter_count": 0, "persistent_id": "2"},
                    ],
                    "total_voter_count": 0,
                    "is_closed": False,
                    "is_anonymous": True,
                    "type": "regular",
                    "allows_multiple_answers": False,
                    "allows_revoting": False,
                    "members_only": False,
                }
            },
            "[Poll: Tea? (yes; no)]",
        ),
        (
            {"text": "/approve X", "forward_origin": {"type": "user", "date": 1, "sender_user": BEN}},
            "[Forwarded from Ben]\n/approve X",
        ),
        (
            {"text": "x", "forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "C\nD"}},
            "[Forwarded from C D]\nx",
        ),
        (
            {
                "text": "x",
                "forward_origin": {
                    "type": "channel",
                    "date": 1,
                    "message_id": 1,
                    "chat": {"id": -1, "type": "channel", "title": "News"},
                },
            },
            "[Forwarded from News]\nx",
        ),
    ],
    ids=["location", "venue", "contact", "sticker", "dice", "poll", "forward", "hidden forward", "channel forward"],
)
def test_what_is_neither_text_nor_file_is_a_line(fields: dict[str, Any], text: str) -> None:
    """The model reads a line about it; a forward is labelled, so that it is no command of its sender's."""
    assert envelope(**fields).text == text


def test_an_album_is_known_by_its_id() -> None:
    """The parts of an album share an id, so that they can become one turn."""
    assert envelope(document=DOCUMENT, media_group_id="99").album == "99"
    assert envelope(document=DOCUMENT).album == ""


def test_an_edit() -> None:
    """An edit names the message and has its new text, read by the same rules."""
    assert read("edited_message", text="hi again", edit_date=1760000001) == EnvelopeEdit(
        place=Place("telegram", "1001"), sender=Identity("telegram", "1001"), message_id="7", text="hi again"
    )


def test_a_press() -> None:
    """A press names who pressed, where, on which message, and which approval."""
    pressed = read(
        "callback_query", id="q", chat_instance="x", data="a:xyz", message=message(chat=GROUP), **{"from": BEN}
    )
    assert isinstance(pressed, Press)
    assert pressed.query == "q"
    assert (pressed.press.approval, pressed.press.button) == ("xyz", Button.APPROVE)
    assert str(pressed.press.presser) == "telegram:7123456789"
    assert pressed.press.place == Place("telegram", "-100123")
    assert pressed.press.message_id == str(message(chat=GROUP)["message_id"])


def test_a_press_on_a_message_that_is_no_longer_there() -> None:
    """Telegram gives only the chat of an old message; the press counts nevertheless."""
    gone = {"message_id": 5, "chat": GROUP, "date": 0}
    pressed = read("callback_query", id="q", chat_instance="x", data="d:xyz", message=gone, **{"from": BEN})
    assert isinstance(pressed, Press)
    assert (pressed.press.place, pressed.press.message_id) == (Place("telegram", "-100123"), "5")


def test_a_bots_press_is_nothing() -> None:
    """Bots decide nothing."""
    assert read("callback_query", id="q", chat_instance="x", data="a:xyz", message=message(), **{"from": ZERO}) is None


def test_a_group_that_moves_tells_it_twice() -> None:
    """Whichever of the two groups tells of the move, it is the same move."""
    old = {"id": -55, "type": "group", "title": "Team"}
    move = Moved(Place("telegram", "-55"), "-100123")
    assert read(chat=old, migrate_to_chat_id=-100123) == move
    assert read(chat=GROUP, migrate_from_chat_id=-55) == move
