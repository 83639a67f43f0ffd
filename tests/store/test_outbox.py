"""Every way of a reply and its parts, and what a restart finds of them."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.store.rows import NOW, PLACE, a_conversation, a_turn
from zerobot.core.channel import MessageBody
from zerobot.core.ids import ConversationId, ReplyId, TurnId
from zerobot.store.database import Database, open_database
from zerobot.store.outbox import Outbox, PartState, Reply, ReplyPart, ReplyState, queue_notice, queue_turn_reply
from zerobot.testing.clock import ManualClock

TURN = TurnId("t1")


def body(text: str) -> MessageBody:
    return MessageBody(text, {"marks": [{"offset": 0, "length": 1}]})


def shown(reply: Reply) -> list[tuple[str | None, str, str]]:
    return [(part.body.text if part.body else None, part.state.value, part.platform_id) for part in reply.parts]


@pytest.fixture
async def conversation(database: Database) -> ConversationId:
    return await a_conversation(database)


@pytest.fixture
def outbox(database: Database, clock: ManualClock) -> Outbox:
    return Outbox(database, clock)


@pytest.fixture
async def draft(outbox: Outbox, conversation: ConversationId) -> ReplyId:
    reply = await outbox.open_draft(TURN, conversation, PLACE, "m1", body("Hel"))
    assert reply is not None
    return reply


async def queue(database: Database, conversation: ConversationId, text: str = "Hello.") -> ReplyId:
    return await database.write(lambda db: queue_turn_reply(db, TURN, conversation, PLACE, "m1", text, NOW))


async def test_a_draft_is_on_record_before_it_is_sent(
    outbox: Outbox, draft: ReplyId, conversation: ConversationId
) -> None:
    """Opening a draft stores the reply as open and its first part as sending."""
    assert await outbox.get(draft) == Reply(
        id=draft,
        turn=TURN,
        conversation=conversation,
        place=PLACE,
        reply_to="m1",
        state=ReplyState.OPEN,
        text="",
        parts=(ReplyPart(position=0, body=body("Hel"), state=PartState.SENDING),),
        created_at=NOW,
    )


async def test_the_final_text_goes_into_the_open_reply(
    outbox: Outbox, database: Database, draft: ReplyId, conversation: ConversationId
) -> None:
    """A turn with a draft has one reply; its draft is finished, nothing is sent beside it."""
    await outbox.part_sent(draft, 0, "p0")
    assert await queue(database, conversation) == draft
    reply = await outbox.plan(draft, [body("Hello."), body("More.")])
    assert reply.state is ReplyState.QUEUED
    assert reply.text == "Hello."
    assert shown(reply) == [("Hello.", "queued", "p0"), ("More.", "queued", "")]


async def test_without_a_draft_the_reply_is_new(
    outbox: Outbox, database: Database, conversation: ConversationId
) -> None:
    """A turn that showed nothing gets its reply when it is queued."""
    reply = await queue(database, conversation)
    assert [each.id for each in await outbox.unfinished()] == [reply]
    assert shown(await outbox.get(reply)) == []


async def test_a_turn_can_settle_a_part_and_open_another_reply(
    outbox: Outbox, database: Database, draft: ReplyId, conversation: ConversationId
) -> None:
    """After a pause has settled the first text, the turn's next draft is a reply of its own."""
    await queue(database, conversation, "Before the pause.")
    second = await outbox.open_draft(TURN, conversation, PLACE, "m1", body("Af"))
    assert second != draft
    assert [reply.id for reply in await outbox.of_turn(TURN)] == [draft, second]
    found = await outbox.open_of_turn(TURN)
    assert found is not None
    assert found.id == second


async def test_a_plan_keeps_what_shows_its_text_already(outbox: Outbox, draft: ReplyId) -> None:
    """A part whose draft is the final text needs no edit; the same plan again changes nothing."""
    await outbox.part_sent(draft, 0, "p0")
    first = await outbox.plan(draft, [body("Hel"), body("two")])
    assert shown(first) == [("Hel", "sent", "p0"), ("two", "queued", "")]
    assert await outbox.plan(draft, [body("Hel"), body("two")]) == first


async def test_a_plan_keeps_an_unclear_part_unclear(outbox: Outbox, draft: ReplyId) -> None:
    """A first message that may have arrived stays `sending`, with the text that it should have."""
    assert shown(await outbox.plan(draft, [body("Hello.")])) == [("Hello.", "sending", "")]


async def test_an_unclear_edit_is_repeated(outbox: Outbox, draft: ReplyId) -> None:
    """With a platform id an edit can be done again, so a part found `sending` is queued."""
    await outbox.part_sent(draft, 0, "p0")
    await outbox.begin_part(draft, 0, body("Hello"))
    assert shown(await outbox.get(draft)) == [("Hello", "sending", "p0")]
    assert shown(await outbox.plan(draft, [body("Hello")])) == [("Hello", "queued", "p0")]


async def test_messages_too_many_are_deleted(outbox: Outbox, draft: ReplyId) -> None:
    """What a draft showed beyond the final text is queued to be deleted; what never arrived is forgotten."""
    await outbox.part_sent(draft, 0, "p0")
    await outbox.begin_part(draft, 1, body("two"))
    await outbox.begin_part(draft, 2, body("three"))
    await outbox.part_sent(draft, 2, "p2")
    planned = await outbox.plan(draft, [body("Hel")])
    assert shown(planned) == [("Hel", "sent", "p0"), (None, "queued", "p2")]
    await outbox.begin_part(draft, 2, None)
    await outbox.part_sent(draft, 2, "p2")
    assert shown(await outbox.plan(draft, [body("Hel")])) == [("Hel", "sent", "p0"), (None, "sent", "p2")]


async def test_a_released_part_is_queued_again(outbox: Outbox, draft: ReplyId) -> None:
    """What the platform surely did not take is to be sent; what it took stays sent."""
    await outbox.release_part(draft, 0)
    assert shown(await outbox.get(draft)) == [("Hel", "queued", "")]
    await outbox.part_sent(draft, 0, "p0")
    await outbox.release_part(draft, 0)
    assert shown(await outbox.get(draft)) == [("Hel", "sent", "p0")]


async def test_a_message_that_is_gone_is_sent_anew(outbox: Outbox, draft: ReplyId) -> None:
    """Somebody deleted the draft: its id is forgotten, the part is queued."""
    await outbox.part_sent(draft, 0, "p0")
    await outbox.part_gone(draft, 0)
    assert shown(await outbox.get(draft)) == [("Hel", "queued", "")]


async def test_an_unclear_part_is_repeated_once(outbox: Outbox, draft: ReplyId) -> None:
    """The first question whether it may be repeated gets a yes, every later one a no, also after a restart."""
    assert await outbox.mark_repeated(draft, 0)
    assert (await outbox.get(draft)).parts[0].repeated
    assert not await outbox.mark_repeated(draft, 0)
    assert (await outbox.plan(draft, [body("Hello.")])).parts[0].repeated


async def test_what_was_sent_is_never_repeated(outbox: Outbox, draft: ReplyId) -> None:
    """A part with a platform id is edited, so it has no repeat."""
    await outbox.part_sent(draft, 0, "p0")
    assert not await outbox.mark_repeated(draft, 0)
    await outbox.begin_part(draft, 0, body("Hello"))
    assert not await outbox.mark_repeated(draft, 0)


async def test_a_failed_part_keeps_the_reason_and_the_reply_goes_on(outbox: Outbox, draft: ReplyId) -> None:
    """One refused message does not take the others with it; the same plan doesn't try it again."""
    await outbox.part_failed(draft, 0, "too long")
    reply = await outbox.plan(draft, [body("Hel"), body("two")])
    assert reply.error == "too long"
    assert shown(reply) == [("Hel", "failed", ""), ("two", "queued", "")]
    assert shown(await outbox.plan(draft, [body("He"), body("two")])) == [("He", "queued", ""), ("two", "queued", "")]


async def test_finished_replies_are_not_worked_on_again(
    outbox: Outbox, database: Database, conversation: ConversationId
) -> None:
    """Done and failed are ends; neither changes into the other."""
    done = await queue(database, conversation)
    await outbox.finish(done)
    await outbox.fail(done, "late")
    failed = await outbox.notice(PLACE, "By the way")
    await outbox.plan(failed, [body("By the way")])
    await outbox.fail(failed, "blocked")
    await outbox.finish(failed)
    assert await outbox.unfinished() == []
    assert [(await outbox.get(each)).state for each in (done, failed)] == [ReplyState.DONE, ReplyState.FAILED]
    assert (await outbox.get(failed)).error == "blocked"
    assert shown(await outbox.get(failed)) == [("By the way", "failed", "")]


async def test_an_open_reply_with_nothing_shown_is_dropped(outbox: Outbox, draft: ReplyId) -> None:
    """Nothing is left of it to deliver once its only part never arrived."""
    await outbox.plan(draft, [])
    assert await outbox.drop_open(TURN) is None
    assert await outbox.unfinished() == []


async def test_a_dropped_draft_is_taken_back(outbox: Outbox, draft: ReplyId) -> None:
    """What a draft showed of a reply that will not come is queued to be deleted."""
    await outbox.part_sent(draft, 0, "p0")
    assert await outbox.drop_open(TURN) == draft
    reply = await outbox.get(draft)
    assert (reply.state, reply.text) == (ReplyState.QUEUED, "")
    assert shown(await outbox.plan(draft, [])) == [(None, "queued", "p0")]


async def test_unfinished_replies_come_oldest_first(
    outbox: Outbox, database: Database, draft: ReplyId, conversation: ConversationId
) -> None:
    """Notices and replies keep the order in which they were made."""
    notice = await database.write(lambda db: queue_notice(db, PLACE, "note", NOW, conversation=conversation, turn=TURN))
    later = await outbox.notice(PLACE, "later", reply_to="m7")
    assert [reply.id for reply in await outbox.unfinished()] == [draft, notice, later]


async def test_a_restart_finds_each_part_as_it_was(path: Path, clock: ManualClock) -> None:
    """After a crash the store says which parts are sent, unclear and still to send."""
    async with open_database(path) as database:
        outbox = Outbox(database, clock)
        draft = await outbox.open_draft(TURN, await a_conversation(database), PLACE, "m1", body("one"))
        assert draft is not None
        await outbox.part_sent(draft, 0, "p0")
        await outbox.plan(draft, [body("one"), body("two"), body("three")])
        await outbox.begin_part(draft, 1, body("two"))
    async with open_database(path) as database:
        (reply,) = await Outbox(database, clock).unfinished()
    assert shown(reply) == [("one", "sent", "p0"), ("two", "sending", ""), ("three", "queued", "")]
    assert [part.unclear for part in reply.parts] == [False, True, False]
    assert reply.parts[1].body == body("two")


async def test_a_notice_about_a_turn_is_queued_once(
    outbox: Outbox, database: Database, conversation: ConversationId
) -> None:
    """What was said since the turn began is not said again; another text is another notice."""
    first = await a_turn(database, "t1")
    assert await outbox.notice_once(PLACE, "Wait.", conversation, first) is not None
    assert await outbox.notice_once(PLACE, "Wait.", conversation, first) is None
    assert await outbox.notice_once(PLACE, "Wait longer.", conversation, first) is not None
    assert [reply.text for reply in await outbox.unfinished()] == ["Wait.", "Wait longer."]


async def test_half_a_character_can_be_stored(outbox: Outbox) -> None:
    """A lone surrogate from some model's JSON neither fails nor spoils its row."""
    reply = await outbox.notice(PLACE, "a\ud83d\ude00b\ud83dc")
    assert (await outbox.get(reply)).text == "a\U0001f600b\ufffdc"
    planned = await outbox.plan(reply, [body("x\ud83d")])
    assert planned.parts[0].body == body("x\ud83d")


async def test_a_reply_that_is_not_there_is_an_error(outbox: Outbox) -> None:
    """Asking for an unknown id is told apart from an empty reply."""
    with pytest.raises(LookupError):
        await outbox.get(ReplyId(77))


async def test_settled_replies_are_forgotten_in_the_end(outbox: Outbox, draft: ReplyId, clock: ManualClock) -> None:
    """What was delivered long ago goes, with its parts; what still has to go out stays however old it is."""
    await outbox.finish(draft)
    waiting = await outbox.notice(PLACE, "still to be said")
    clock.jump(3600)
    assert await outbox.forget_old(clock.now() - timedelta(hours=2)) == 0
    assert await outbox.forget_old(clock.now()) == 1
    assert [reply.id for reply in await outbox.unfinished()] == [waiting]
