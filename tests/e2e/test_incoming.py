"""Messages on their way in: once each, over restarts and faults, from whom and where it counts."""

import asyncio
import sqlite3

import pytest

from tests.e2e.stage import FullDisk, Stage
from tests.platforms.model_images import PNG, REJECTIONS, TOO_LARGE, picture
from tests.platforms.model_script import Refuses, holds, says


async def test_an_update_is_handled_once_over_any_number_of_restarts(stage: Stage) -> None:
    """B017: the position is durable, and a command cannot replay."""
    async with stage.daemon():
        stage.uma.says("/status")
        await stage.uma.chat.reply("idle")
    for _ in range(2):
        async with stage.daemon() as daemon:
            # The first poll after a start has come back when the next one is asked for.
            await stage.telegram.wait_for(lambda: stage.telegram.of("getUpdates")[-1].outcome == "open")
            assert daemon.named("envelope.accepted") == []
    assert len(stage.uma.chat.replies) == 1


async def test_messages_that_cannot_be_stored_are_taken_again_and_answered_once(stage: Stage) -> None:
    """B018, B195: on a full disk nothing is confirmed to the platform; when there is room again, all is answered."""
    stage.expected_errors = {"telegram.not_stored", "storage.failed", "storage.alarm"}
    stage.model.always(says("Answer."))
    async with stage.daemon() as daemon:
        with FullDisk(daemon):
            for number in range(3):
                stage.uma.says(f"question {number}")
            await daemon.until("telegram.not_stored")
            assert len(stage.telegram.unconfirmed) == 3
        await daemon.until("turn.finished", count=3)
    async with stage.daemon():
        await stage.telegram.wait_for(lambda: stage.telegram.of("getUpdates")[-1].outcome == "open")
    assert len(stage.model.requests) == 3
    assert stage.uma.chat.texts == ["Answer."] * 3


async def test_a_stop_right_after_an_update_neither_loses_nor_repeats_it(stage: Stage) -> None:
    """B034: what was taken in before the stop is answered, once, by this run or the next."""
    stage.model.always(says("Answer."))
    async with stage.daemon():
        stage.uma.says("question")
    async with stage.daemon():
        await stage.uma.chat.reply("Answer.")
    assert len(stage.model.requests) == 1
    assert stage.uma.chat.texts == ["Answer."]
    assert stage.telegram.unconfirmed == []


async def test_ids_of_the_list_may_be_numbers_or_texts(stage: Stage) -> None:
    """B030, B150: one person is one person, however the id is written in the configuration."""
    stage.configure("channels.telegram", allowed_users=[2001])
    stage.model.always(says("Answer."))
    async with stage.daemon() as daemon:
        await stage.says(stage.uma, "hi")
        stage.vic.says("hi")
        refused = await daemon.until("envelope.refused")
    assert stage.uma.chat.texts == ["Answer."]
    assert refused["reason"] in {"pairing", "not_allowed"}


async def test_a_name_in_the_list_stays_with_the_one_who_had_it_first(stage: Stage) -> None:
    """B030: whoever takes a name later is not let in by it."""
    stage.configure("channels.telegram", allowed_users=["@uma"], pairing=False)
    stage.model.always(says("Answer."))
    async with stage.daemon() as daemon:
        await stage.says(stage.uma, "hi")
        thief = stage.telegram.user("6666", username="uma")
        thief.says("hi")
        refused = await daemon.until("envelope.refused")
    assert refused["reason"] == "not_allowed"
    assert refused["sender"] == "telegram:6666"
    assert thief.chat.replies == []


async def test_a_bare_name_in_the_list_is_no_id(stage: Stage) -> None:
    """B030: a name without @ is refused at the start, or lets nobody in."""
    stage.configure("channels.telegram", allowed_users=["uma"], pairing=False)
    async with stage.daemon() as daemon:
        stage.uma.says("hi")
        await daemon.until("envelope.refused")
    assert stage.model.requests == []


async def test_in_a_group_only_what_is_meant_for_the_bot_is_answered(stage: Stage) -> None:
    """Mentions, replies to the bot and commands count; talk among people does not, and starts nothing."""
    group = stage.telegram.group("Team")
    stage.model.always(says("Answer."))
    async with stage.daemon() as daemon:
        stage.uma.says("lunch?", chat=group)
        refused = await daemon.until("envelope.refused")
        stage.uma.says("@zero_bot hi", chat=group)
        first = await group.reply("Answer.")
        stage.vic.says("and me?", chat=group, reply_to=first)
        await daemon.until("delivery.sent", count=2)
        stage.uma.says("/status@other_bot", chat=group)
        stage.uma.says("/whoami@zero_bot", chat=group)
        await group.reply("telegram:2001")
    assert refused["reason"] == "not_addressed"
    assert len(stage.model.requests) == 2
    assert "lunch" not in str(stage.model.last_request.messages)
    assert "@zero_bot" not in str(stage.model.requests[0].messages)


async def test_without_require_mention_all_of_a_group_is_answered(stage: Stage) -> None:
    """The rule of a channel can be turned off."""
    stage.configure("channels.telegram", require_mention=False)
    group = stage.telegram.group("Team")
    stage.model.always(says("Answer."))
    async with stage.daemon():
        assert (await stage.says(stage.uma, "lunch?", chat=group)).text == "Answer."


async def test_people_of_a_group_share_a_conversation_and_are_told_apart(stage: Stage) -> None:
    """B164: in a shared history each message names its speaker; a direct chat is another conversation."""
    group = stage.telegram.group("Team")
    stage.model.always(says("Noted."))
    async with stage.daemon():
        await stage.says(stage.uma, "@zero_bot my word is heron", chat=group)
        await stage.says(stage.vic, "@zero_bot mine is otter", chat=group)
        shared = str(stage.model.last_request.messages)
        await stage.says(stage.uma, "what do you know?")
        alone = str(stage.model.last_request.messages)
    assert "Uma" in shared
    assert "Vic" in shared
    assert "heron" in shared
    assert "heron" not in alone
    assert "otter" not in alone


async def test_what_a_message_answers_reaches_the_model_also_from_the_queue(stage: Stage) -> None:
    """B154: the quoted text and its author are there, though the message had to wait."""
    stage.model.answers(says("Draft A"), says("Draft B"), holds(says("Busy."), after=0), says("Sent."))
    async with stage.daemon() as daemon:
        first = await stage.says(stage.uma, "one")
        await stage.says(stage.uma, "two")
        stage.uma.says("three")
        await stage.model.until_holding()
        stage.uma.says("send this one", reply_to=first)
        await daemon.until("envelope.accepted", count=4)
        stage.model.release()
        await daemon.until("turn.finished", count=4)
    newest = stage.model.last_request.newest_text
    assert "Draft A" in newest
    assert "Zero" in newest
    assert "Draft B" not in newest


async def test_an_edit_changes_what_still_waits_and_nothing_that_was_answered(stage: Stage) -> None:
    """A waiting message is answered as it was corrected; an answered one stays as it was."""
    stage.model.answers(holds(says("One."), after=0), says("Two."))
    async with stage.daemon() as daemon:
        asked = stage.uma.says("first")
        await stage.model.until_holding()
        waiting = stage.uma.says("secnod")
        await daemon.until("envelope.accepted", count=2)
        stage.uma.edits(waiting, "second")
        stage.uma.edits(asked, "zeroth")
        await daemon.until("envelope.edited", count=2)
        stage.model.release()
        await daemon.until("delivery.sent", count=2)
    assert stage.model.last_request.newest_text == "second"
    assert "zeroth" not in str(stage.model.last_request.messages)
    assert stage.uma.chat.texts == ["One.", "Two."]


async def test_an_album_is_one_turn_with_all_its_pictures(stage: Stage) -> None:
    """Several photos sent as one message are answered once."""
    stage.model.answers(says("Two birds."))
    async with stage.daemon() as daemon:
        stage.uma.sends_album([("a.jpg", b"first picture"), ("b.jpg", b"second picture")], caption="which birds?")
        await daemon.until("delivery.sent")
    stored = sorted(path.read_bytes() for path in stage.workspace.rglob("*.jpg"))
    assert stored == [b"first picture", b"second picture"]
    assert "which birds?" in stage.model.last_request.newest_text
    assert len(stage.model.requests) == 1


async def test_a_model_that_sees_is_shown_the_photos(stage: Stage) -> None:
    """Each of an album in order, and still after a restart; a file that a tool has changed is not passed off as one."""
    stage.configure('models."main/m-1"', vision=True)
    cat, dog = picture(1), picture(2)
    stage.model.always(says("Nice."))
    async with stage.daemon() as daemon:
        stage.uma.sends_album([("a.png", cat), ("b.png", dog)], caption="who is it?")
        await daemon.until("delivery.sent")
        assert stage.model.last_request.pictures == [cat, dog]
    next(path for path in stage.workspace.rglob("*") if path.is_file() and path.read_bytes() == cat).write_bytes(PNG)
    async with stage.daemon():
        await stage.says(stage.uma, "and now?")
    assert stage.model.last_request.pictures == [dog]
    assert stage.model.last_request.newest_text.endswith("and now?")


async def test_a_model_that_is_not_known_to_see_reads_about_photos(stage: Stage) -> None:
    """Nobody is sent what he would refuse, or make up."""
    stage.model.answers(says("I cannot see it."))
    async with stage.daemon() as daemon:
        stage.uma.sends_file("a.png", PNG, kind="photo", caption="who is it?")
        await daemon.until("delivery.sent")
    assert stage.model.last_request.pictures == []
    assert f"image/png, {len(PNG)} bytes, saved as attachments/" in stage.model.last_request.newest_text


@pytest.mark.parametrize("refusal", [REJECTIONS["openai"][0], TOO_LARGE["openai"][0]], ids=["rejected", "too large"])
async def test_a_photo_that_the_provider_does_not_take_costs_no_answer(stage: Stage, refusal: Refuses) -> None:
    """The request is sent again without it, and the model knows."""
    stage.configure('models."main/m-1"', vision=True)
    stage.model.answers(refusal, says("I could not see it."))
    async with stage.daemon() as daemon:
        stage.uma.sends_file("a.png", PNG, kind="photo", caption="who is it?")
        await daemon.until("delivery.sent")
    assert [request.pictures for request in stage.model.requests] == [[PNG], []]
    assert "so you do not see it" in stage.model.last_request.newest_text
    assert stage.uma.chat.texts == ["I could not see it."]


async def test_files_come_into_the_workspace_under_safe_names(stage: Stage) -> None:
    """S5: a name from outside never leads out of its folder; the model is told where each file is."""
    stage.model.always(says("Read."))
    async with stage.daemon() as daemon:
        stage.uma.sends_file("../../evil.sh", b"doc", caption="read it")
        stage.vic.sends_file("a voice", b"ogg", kind="voice", mime="audio/ogg")
        await daemon.until("delivery.sent", count=2)
    stored = [path for path in stage.workspace.rglob("*") if path.is_file()]
    assert sorted(path.read_bytes() for path in stored) == [b"doc", b"ogg"]
    assert not list(stage.folder.rglob("evil.sh")) or all(
        stage.workspace in p.parents for p in stage.folder.rglob("*evil*")
    )
    told = " ".join(request.newest_text for request in stage.model.requests)
    for path in stored:
        assert str(path.relative_to(stage.workspace)) in told
    assert str(stage.folder) not in told


async def test_a_file_that_is_too_big_is_told_and_holds_nothing_up(stage: Stage) -> None:
    """B025: the caption is answered, the model learns of name and size, later messages work."""
    stage.model.always(says("I cannot see it."))
    async with stage.daemon():
        stage.uma.sends_file("film.mkv", b"x", caption="what is this?", size=60_000_000)
        await stage.uma.chat.reply("I cannot see it.")
        told = stage.model.last_request.newest_text
        stage.telegram.fail_next("getFile", 400, "Bad Request: file is too big")
        stage.vic.sends_file("other.bin", b"y", caption="and this?")
        await stage.vic.chat.reply("I cannot see it.")
        assert "other.bin" in stage.model.last_request.newest_text
        await stage.says(stage.uma, "hello")
    assert "what is this?" in told
    assert "film.mkv" in told
    assert "60000000" in told


async def test_a_full_queue_says_so_and_keeps_what_it_has(stage: Stage) -> None:
    """A83: one message too many is refused visibly; those that wait are answered in order."""
    # Seen to fail with: a refusal that nobody hears of (A83).
    stage.configure("channels.telegram", drafts="off")
    group = stage.telegram.group("Team")
    stage.model.answers(holds(says("0"), after=0))
    stage.model.always(says("next"))
    async with stage.daemon() as daemon:
        stage.uma.says("@zero_bot 0", chat=group)
        await stage.model.until_holding()
        for number in range(1, 18):
            (stage.uma if number % 2 else stage.vic).says(f"@zero_bot {number}", chat=group)
        refused = await daemon.until("envelope.refused")
        assert refused["reason"] == "full"
        await group.reply("waiting already")
        stage.model.release()
        # The notice stands before the answers, and the rest of them is delivered at the pace of the platform.
        await daemon.until("turn.finished", count=17)
        await daemon.kill()
    asked = [request.newest_text.rpartition(" ")[2] for request in stage.model.requests]
    assert asked == [str(number) for number in range(17)]


@pytest.mark.parametrize("text", ["hello", "/status"])
async def test_what_a_stranger_writes_starts_nothing(stage: Stage, text: str) -> None:
    """Neither a message nor a command of somebody unknown reaches the model or is carried out."""
    stage.configure("channels.telegram", pairing=False)
    async with stage.daemon() as daemon:
        stage.xen.says(text)
        refused = await daemon.until("envelope.refused")
    assert refused["reason"] == "not_allowed"
    assert stage.xen.chat.replies == []
    rows = await asyncio.to_thread(_rows, stage)
    assert rows == 0


def _rows(stage: Stage) -> int:
    with sqlite3.connect(next((stage.folder / "state").glob("*.db"))) as db:
        return int(db.execute("SELECT count(*) FROM inbox").fetchone()[0])
