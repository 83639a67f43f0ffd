"""What comes in: events, their acknowledgement, and what was missed."""

from __future__ import annotations

import pytest

from channels.slack.decode import identity
from tests.platforms.slack_house import SlackHouse
from tests.platforms.slack_server import Person
from tests.platforms.slack_world import Channel
from zerobot.core.envelope import Quote
from zerobot.core.places import ConversationKey, Place


async def test_an_event_is_acknowledged_only_when_it_is_stored(house: SlackHouse, ann: Person) -> None:
    """What cannot be stored is not acknowledged, and tried again until it is."""
    house.server.sockets.ack_seconds = 60.0
    async with house.running() as intake:
        intake.hold()
        ann.says("hello")
        await house.server.wait_for(lambda: house.server.sockets.sent)
        (sent,) = house.server.sockets.sent
        assert not sent.acknowledged
        intake.fail(times=2)
        intake.release()
        await house.server.wait_for(lambda: sent.acknowledged)
    assert intake.texts == ["hello"]
    assert house.log.names.count("slack.not_stored") == 2


async def test_what_was_not_acknowledged_in_time_comes_again_and_is_known(house: SlackHouse, ann: Person) -> None:
    """Slack repeats an event under another envelope; it is the same message."""
    house.server.sockets.ack_seconds = 0.05
    async with house.running() as intake:
        intake.hold()
        ann.says("hello")
        await house.server.wait_for(lambda: len(house.server.sockets.sent) >= 2)
        intake.release()
        await intake.until(lambda: intake.duplicates)
    assert intake.texts == ["hello"]


async def test_a_repeat_that_was_never_seen_is_handled(house: SlackHouse, ann: Person) -> None:
    """Only the second try reaches us: it counts."""
    async with house.running() as intake:
        message = ann.says("hello", tell="")
        event = message.as_json() | {"type": "message", "channel": ann.chat.id, "channel_type": "im"}
        sent = house.server.sockets.emit("events_api", {"team_id": house.server.team, "event": event})
        sent.tries = 2
        await intake.until(lambda: intake.accepted)
    assert intake.texts == ["hello"]


@pytest.mark.parametrize("order", ["message app_mention", "app_mention message"])
async def test_a_mention_is_one_message(house: SlackHouse, ann: Person, team: Channel, order: str) -> None:
    """Slack tells of it twice, in any order; whichever comes first is all that is needed."""
    async with house.running() as intake:
        ann.says("@zero hello", chat=team, tell=order)
        await intake.until(lambda: intake.duplicates)
    (envelope,) = intake.accepted
    assert (envelope.text, envelope.addressed) == ("hello", True)


async def test_older_messages_that_come_late_are_kept(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Order is no reason to drop anything: threads arrive late after a reconnect."""
    async with house.running() as intake:
        late = ann.says("@zero first", chat=team, tell="")
        ann.says("@zero second", chat=team, tell="message")
        await intake.until(lambda: intake.accepted)
        house.server.tell("message", late)
        await intake.until(lambda: len(intake.accepted) == 2)
    assert intake.texts == ["second", "first"]


async def test_conversations_are_threads_and_direct_chats(house: SlackHouse, ann: Person, team: Channel) -> None:
    """A post in a channel opens a thread; a direct chat is one conversation, its threads have their own."""
    async with house.running() as intake:
        post = ann.says("@zero post", chat=team, tell="message")
        ann.says("answer", chat=team, reply_to=post)
        direct = ann.says("direct")
        ann.says("in its thread", reply_to=direct)
        await intake.until(lambda: len(intake.accepted) == 4)
    assert [each.conversation for each in intake.accepted] == [
        ConversationKey(Place("slack", team.id, post.ts)),
        ConversationKey(Place("slack", team.id, post.ts)),
        ConversationKey(Place("slack", "U1001")),
        ConversationKey(Place("slack", "U1001", direct.ts)),
    ]
    assert [each.direct for each in intake.accepted] == [False, False, True, True]


async def test_a_thread_that_began_with_words_to_the_bot_is_meant_for_it(
    house: SlackHouse, ann: Person, team: Channel
) -> None:
    """All of it, also after a restart; in the thread of others only what mentions the bot."""
    async with house.running() as intake:
        own = ann.says("@zero hello", chat=team, tell="message")
        others = ann.says("lunch?", chat=team)
        ann.says("@zero what do you think?", chat=team, reply_to=others, tell="message")
        await intake.until(lambda: len(intake.accepted) == 3)
    again = SlackHouse(house.server, state=house.state)
    async with again.running() as intake:
        ann.says("and this?", chat=team, reply_to=own)
        ann.says("pizza", chat=team, reply_to=others)
        await intake.until(lambda: "pizza" in intake.texts)
    addressed = {each.text: each.addressed for each in (*house.intake.accepted, *again.intake.accepted)}
    assert addressed == {
        "hello": True,
        "lunch?": False,
        "what do you think?": True,
        "and this?": True,
        "pizza": False,
    }
    await again.close()


async def test_who_is_called_into_a_thread_is_told_what_it_is_about(
    house: SlackHouse, ann: Person, team: Channel
) -> None:
    """By its first message; when that cannot be had, without."""
    house.server.user("U2002", name="Vic").says("lunch at <@U1001>'s?", chat=team, tell="")
    root = team.messages[0]
    async with house.running() as intake:
        ann.says("@zero what do you think?", chat=team, reply_to=root, tell="message")
        await intake.until(lambda: intake.accepted)
        house.server.fail_next("conversations.replies", "ratelimited", retry_after=1)
        ann.says("@zero and now?", chat=team, reply_to=root, tell="message")
        await intake.until(lambda: len(intake.accepted) == 2)
    assert [each.quote for each in intake.accepted] == [Quote(author="Vic", text="lunch at @Ann's?"), None]


async def test_names_stand_in_place_of_ids(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Of the sender and of whom he names; each is asked for once; signs are what was typed."""
    house.server.user("U2002", name="Vic")
    async with house.running() as intake:
        ann.says("@zero ask <@U2002> & me: 1 < 2", chat=team, tell="message")
        ann.says("again", chat=team)
        await intake.until(lambda: len(intake.accepted) == 2)
    envelope = intake.accepted[0]
    assert (envelope.text, envelope.sender_name) == ("ask @Vic & me: 1 < 2", "Ann")
    assert envelope.sender == identity("U1001", house.server.team)
    assert len(house.server.of("users.info")) == 2


async def test_no_message_waits_long_for_a_name(house: SlackHouse, ann: Person) -> None:
    """Without its sender's name it is taken too."""
    hold = house.server.hold_next("users.info")
    async with house.running() as intake:
        ann.says("hello")
        await intake.until(lambda: intake.accepted)
        hold.release()
    assert intake.accepted[0].sender_name == ""


async def test_a_crowd_s_names_are_asked_for_within_the_rate(house: SlackHouse) -> None:
    """Each message of many new people is taken; no look-up is refused, and who is left out keeps the id for now."""
    # Seen to fail with: names asked for without a budget of their own.
    crowd = [house.server.user(f"U5{number:03}", name=f"P{number}") for number in range(120)]
    async with house.running() as intake:
        for person in crowd:
            person.says("hello")
        await intake.until(lambda: len(intake.accepted) == len(crowd))
    assert {call.outcome for call in house.server.of("users.info")} == {"ok"}
    named = [each for each in intake.accepted if each.sender_name]
    assert 50 <= len(named) < len(crowd)


async def test_somebody_of_another_workspace_is_not_somebody_of_ours(house: SlackHouse, team: Channel) -> None:
    """Ids hold within a workspace."""
    guest = house.server.user("U1001", name="Guest", team="T9OTHER")
    async with house.running() as intake:
        guest.says("@zero hello", chat=team, tell="message")
        await intake.until(lambda: intake.accepted)
    assert str(intake.accepted[0].sender) == "slack:T9OTHER/U1001"


async def test_bots_and_notices_are_let_be(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Nothing that no person wrote gets in: other bots, joins, Slack's own notices, and what we said."""
    async with house.running() as intake:
        for extra in (
            {"bot_id": "B9", "user": "U9BOT"},
            {"subtype": "bot_message", "bot_id": "B9"},
            {"subtype": "channel_join"},
            {"user": "USLACKBOT"},
        ):
            message = ann.says("@zero hi", chat=team, tell="")
            message.extra |= extra
            house.server.tell("message", message)
        await house.send("U1001", "our own")
        ann.says("the last one")
        await intake.until(lambda: "the last one" in intake.texts)
    assert intake.texts == ["the last one"]


async def test_files_and_broadcasts_are_messages(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Slack marks them by a subtype, as it does notices."""
    async with house.running() as intake:
        root = ann.says("@zero look", chat=team, files=[("a.txt", b"text")], tell="message")
        shout = ann.says("to all", chat=team, reply_to=root, tell="")
        shout.extra["subtype"] = "thread_broadcast"
        house.server.tell("message", shout)
        await intake.until(lambda: len(intake.accepted) == 2)
    assert [each.name for each in intake.accepted[0].attachments] == ["a.txt"]
    assert intake.texts == ["look", "to all"]


async def test_edits_and_deletions(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Of people; a preview that Slack adds is no edit, our own drafts are none either."""
    async with house.running() as intake:
        message = ann.says("secnod", chat=team)
        ann.edits(message, "second")
        await intake.until(lambda: intake.edits)
        house.server.tell_changed(message, message.as_json())
        sent = await house.send("U1001", "draft")
        await house.channel.edit(sent, house.channel.render("more")[0])
        ann.deletes(message)
        await intake.until(lambda: len(intake.edits) == 2)
    changed, deleted = intake.edits
    assert (changed.place.chat, changed.message_id, changed.text) == (team.id, message.ts, "second")
    assert (deleted.message_id, deleted.text) == (message.ts, None)
    assert changed.sender == deleted.sender == identity("U1001", house.server.team)


async def test_only_listed_channels_are_listened_to(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Direct messages come through nevertheless."""
    other = house.server.channel("other")
    listed = SlackHouse(house.server, allowed_channels=[team.id])
    async with listed.running() as intake:
        ann.says("@zero here", chat=other)
        ann.says("@zero there", chat=team, tell="message")
        ann.says("direct")
        await intake.until(lambda: len(intake.accepted) == 2)
    assert intake.texts == ["there", "direct"]
    await listed.close()


async def test_an_event_that_cannot_be_read_stops_nothing(house: SlackHouse, ann: Person) -> None:
    """It is acknowledged, or Slack would send it for ever; the next one is taken."""
    async with house.running() as intake:
        sent = house.server.sockets.emit(
            "events_api", {"event": {"type": "message", "channel": "C1", "user": "U1", "text": "hi", "ts": "x"}}
        )
        ann.says("hello")
        await intake.until(lambda: intake.accepted)
        assert sent.acknowledged
    assert "slack.undecodable" in house.log.names


async def test_what_was_missed_is_taken_over_once(house: SlackHouse, ann: Person, team: Channel) -> None:
    """In chats and in threads, also in one that was opened meanwhile; by their histories, in order."""
    async with house.running() as intake:
        post = ann.says("@zero hello", chat=team, tell="message")
        ann.says("hi")
        await intake.until(lambda: len(intake.accepted) == 2)
    ann.says("one")
    ann.says("two", chat=team, reply_to=post)
    opened = ann.says("@zero three", chat=team)
    ann.says("four", chat=team, reply_to=opened)
    ann.says("five")
    again = SlackHouse(house.server, state=house.state)
    async with again.running() as intake:
        await intake.until(lambda: len(intake.accepted) >= 5)
    assert sorted(intake.texts) == ["five", "four", "one", "three", "two"]
    assert [text for text in intake.texts if text in {"one", "five"}] == ["one", "five"]
    third = SlackHouse(house.server, state=house.state)
    async with third.running() as intake:
        ann.says("six")
        await intake.until(lambda: intake.accepted)
    assert intake.texts == ["six"]
    await again.close()
    await third.close()


async def test_histories_that_are_refused_keep_nobody_waiting(house: SlackHouse, ann: Person) -> None:
    """A limit of a minute is waited for; another refusal is noted; what comes live is taken in any case."""
    async with house.running() as intake:
        ann.says("hi")
        await intake.until(lambda: intake.accepted)
    house.server.fail_next("conversations.history", "missing_scope")
    again = SlackHouse(house.server, state=house.state)
    async with again.running() as intake:
        ann.says("live")
        await intake.until(lambda: intake.accepted)
    assert "slack.catchup_failed" in again.log.names
    await again.close()


async def test_events_are_handed_over_in_their_order(house: SlackHouse, ann: Person) -> None:
    """However fast they come, and whosever they are."""
    vic = house.server.user("U2002", name="Vic")
    async with house.running() as intake:
        for number in range(20):
            (ann if number % 2 else vic).says(str(number))
        await intake.until(lambda: len(intake.accepted) == 20)
    assert intake.texts == [str(number) for number in range(20)]
