"""What people read: long texts, code, markup, links."""

from tests.e2e.stage import Stage
from tests.platforms.model_script import says

UNITS = 4096
"""UTF-16 units of a Telegram message."""


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


async def test_angle_brackets_and_ampersands_arrive_as_they_are(stage: Stage) -> None:
    """B001: what looks like markup of the platform is text."""
    stage.model.answers(says('From: Ann Bee <ann@mail.test> & "Q1 < Q2"'))
    async with stage.daemon():
        reply = await stage.says(stage.uma, "quote it")
    assert reply.text == 'From: Ann Bee <ann@mail.test> & "Q1 < Q2"'


async def test_a_reply_that_is_refused_for_its_markup_is_sent_plain_and_once(stage: Stage) -> None:
    """B001: "can't parse entities" leads to one readable plain message, link targets kept."""
    stage.configure("channels.telegram", drafts="off")
    stage.model.answers(says("See **the** [manual](https://docs.test/a)."))
    stage.telegram.fail_next("sendMessage", 400, "Bad Request: can't parse entities: unsupported start tag")
    async with stage.daemon():
        reply = await stage.says(stage.uma, "where?")
    assert len(stage.uma.chat.replies) == 1
    assert "manual" in reply.text
    assert "https://docs.test/a" in reply.text
    assert "**" not in reply.text


async def test_a_long_answer_arrives_whole_in_ordered_parts(stage: Stage) -> None:
    """B003: nothing is lost around and above the platform's limit, and no part is above it."""
    words = " ".join(f"w{number}" for number in range(2000))
    texts = {length: words[: length - 1] + "x" for length in (4095, 4096, 4097, 9000)}
    people = [stage.telegram.user(str(3000 + length)) for length in texts]
    stage.configure("channels.telegram", allowed_users=["*"])
    for length, text in texts.items():
        stage.model.when(f"{length} of it", says(text, deltas=[text]))
    async with stage.daemon() as daemon:
        for person, length in zip(people, texts, strict=True):
            person.says(f"{length} of it")
        await daemon.until("delivery.sent", count=4)
    for person, text in zip(people, texts.values(), strict=True):
        assert " ".join(person.chat.texts) == text
        assert all(units(part) <= UNITS for part in person.chat.texts)


async def test_a_cut_never_goes_through_a_character(stage: Stage) -> None:
    """B004: characters of two UTF-16 units stay whole, and the cutting always goes forward."""
    first, second = "a" * 4095 + "🧪" * 2000, "🧪" * 3000
    stage.model.when("mixed", says(first, deltas=[first]))
    stage.model.when("only", says(second, deltas=[second]))
    async with stage.daemon() as daemon:
        stage.uma.says("mixed")
        stage.vic.says("only")
        await daemon.until("delivery.sent", count=2)
    assert "".join(stage.uma.chat.texts) == first
    assert "".join(stage.vic.chat.texts) == second
    assert all(units(part) <= UNITS for part in (*stage.uma.chat.texts, *stage.vic.chat.texts))


async def test_each_part_of_a_long_code_block_is_a_code_block_of_its_language(stage: Stage) -> None:
    """B005: a fence that is cut is closed and opened again, within the limit."""
    code = "\n".join(f"value_{number:03} = compute({number})" for number in range(300))
    stage.model.answers(says(f"```python\n{code}\n```"))
    async with stage.daemon():
        await stage.says(stage.uma, "show the code")
    parts = stage.uma.chat.replies
    assert len(parts) >= 2
    for part in parts:
        assert units(part.text) <= UNITS
        assert [(entity["type"], entity.get("language")) for entity in part.entities] == [("pre", "python")]
    assert "\n".join(part.text.strip("\n") for part in parts) == code


async def test_a_half_pair_from_a_client_is_answered_like_any_text(stage: Stage) -> None:
    """A lone half of a surrogate pair, which JSON can carry, must not make a conversation deaf."""
    stage.model.always(says("Fine."))
    async with stage.daemon():
        assert (await stage.says(stage.uma, "odd \ud83e text")).text == "Fine."
        assert (await stage.says(stage.uma, "and another")).text == "Fine."


async def test_links_and_images_are_never_loaded_by_themselves(stage: Stage) -> None:
    """B175: previews are off on every send and edit, and a Markdown image becomes no picture."""
    stage.model.answers(says("https://evil.test/?k=SECRET and ![x](https://evil.test/p.png?d=1)"))
    async with stage.daemon():
        reply = await stage.says(stage.uma, "go")
    calls = stage.telegram.of("sendMessage", "editMessageText")
    assert calls
    assert all("is_disabled" in str(call.params["link_preview_options"]) for call in calls)
    assert stage.telegram.of("sendPhoto", "sendDocument", "sendMediaGroup") == []
    assert reply.preview_off
