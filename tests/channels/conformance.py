"""What every adapter does the same, tried on a town of its platform through the whole daemon.

A new adapter has it by one class and one fixture:

    class TestSemaphore(Conformance): ...      # or of its parts those that fit the platform

    @pytest.fixture
    async def town(tmp_path: Path) -> AsyncIterator[Town]: ...
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.channels.text.markdown_cases import complaints, load_cases
from tests.channels.town import Chat, Told, Town
from tests.platforms.model_script import holds, says
from zerobot.core.channel import (
    AnswersProbe,
    AsksApproval,
    EditsMessages,
    OutboundFile,
    OutboundMessage,
    SettlesUnclear,
    ShowsTyping,
)
from zerobot.core.places import Identity, Place

LONG = "\n\n".join(f"Paragraph {number}: " + "words and more words. " * 12 for number in range(30))


def assert_all_of_it_is_told(chat: Chat) -> None:
    """Nothing of the long text is lost, nothing is said twice, and the order holds."""
    told = " ".join(" ".join(chat.texts).split())
    places = [told.find(f"Paragraph {number}: ") for number in range(30)]
    assert places == sorted(places)
    assert -1 not in places
    assert told.count("Paragraph 7: ") == 1


class Conversing:
    """What every adapter does; the fixture `town` is the adapter's."""

    async def test_all_that_the_platform_can_do_is_tried(self, town: Town) -> None:
        """What a kind does not say of itself is not left out by accident: its suite has all that fits it."""
        assert isinstance(self, Drafting) == town.kind.capabilities.edits
        assert isinstance(self, Correcting) == town.corrects

    # -- messages in ---------------------------------------------------------------------------------------------------

    async def test_a_message_that_is_delivered_twice_is_answered_once(self, town: Town) -> None:
        """Also over a restart: the event's id is stored."""
        town.model.always(says("Answer."))
        async with town.daemon() as daemon:
            asked = town.uma.says("question")
            await town.uma.chat.reply("Answer.")
            town.tell_again(asked)
            await daemon.until("envelope.refused", where=lambda each: each["reason"] == "duplicate")
        async with town.daemon() as daemon:
            town.tell_again(asked)
            await daemon.until("envelope.refused", where=lambda each: each["reason"] == "duplicate")
        assert town.uma.chat.texts == ["Answer."]
        assert len(town.model.requests) == 1

    async def test_messages_are_answered_in_their_order(self, town: Town) -> None:
        """However fast they come, the first one is answered first."""
        town.model.answers(holds(says("one"), after=0), says("two"), says("three"))
        async with town.daemon() as daemon:
            for number in range(3):
                town.uma.says(f"question {number}")
            await town.model.until_holding()
            town.model.release()
            await daemon.until("delivery.sent", count=3)
        assert town.uma.chat.texts == ["one", "two", "three"]
        assert [request.newest_text[-1] for request in town.model.requests] == ["0", "1", "2"]

    async def test_in_a_group_only_what_is_meant_for_the_bot_is_answered(self, town: Town) -> None:
        """A mention and a reply to the bot are; talk among people is not; the mention is not a part of the words."""
        town.model.always(says("Answer."))
        async with town.daemon() as daemon:
            town.uma.says("lunch?", chat=town.team)
            refused = await daemon.until("envelope.refused")
            town.uma.says(town.to_bot("hi"), chat=town.team)
            first = await town.team.reply("Answer.")
            await daemon.until("delivery.sent")
            town.vic.says("and me?", chat=town.team, reply_to=first)
            await daemon.until("delivery.sent", count=2)
        assert refused["reason"] == "not_addressed"
        assert len(town.model.requests) == 2
        assert town.to_bot("").strip() not in str(town.model.requests[0].messages)

    async def test_a_stranger_starts_nothing(self, town: Town) -> None:
        """Neither by a message nor by a command of any kind."""
        town.configure(town.table, pairing=False)
        async with town.daemon() as daemon:
            town.xen.says("hello")
            town.xen.says(town.to_bot("hello"), chat=town.team)
            await daemon.until("envelope.refused", count=2)
            if town.native_commands:
                told = await town.commands(town.xen, "status", "", town.team)
                assert told.private
                assert "may not" in told.text
        assert {each["reason"] for each in daemon.named("envelope.refused")} == {"not_allowed"}
        assert town.xen.chat.replies == town.team.replies == []

    async def test_a_thread_is_a_conversation_of_its_own(self, town: Town) -> None:
        """It is answered where it was asked, and one thread knows nothing of another."""
        town.configure(town.table, require_mention=False)
        one, two = town.thread(), town.thread()
        town.model.always(says("Noted."))
        async with town.daemon() as daemon:
            town.says_in(town.uma, one, "the word is heron")
            await daemon.until("delivery.sent")
            town.says_in(town.uma, two, "what is the word?")
            await daemon.until("delivery.sent", count=2)
        assert town.texts_in(one) == town.texts_in(two) == ["Noted."]
        assert "heron" not in str(town.model.last_request.messages)

    async def test_what_was_said_while_it_was_away_is_answered_once(self, town: Town) -> None:
        """By the platform's own queue or by reading the history: in direct chats and in groups, in order."""
        town.model.answers(says("Hello."), says("Hello, team."))
        async with town.daemon() as daemon:
            town.uma.says("hi")
            await daemon.until("delivery.sent")
            town.uma.says(town.to_bot("hi"), chat=town.team)
            await daemon.until("delivery.sent", count=2)
            await daemon.kill()
        town.uma.says("one")
        town.uma.says("two")
        town.vic.says(town.to_bot("three"), chat=town.team)
        town.vic.says("not for you", chat=town.team)
        town.model.always(says("Here I am."))
        async with town.daemon() as daemon:
            await daemon.until("delivery.sent", count=3)
        assert town.uma.chat.texts == ["Hello.", "Here I am.", "Here I am."]
        assert town.team.texts == ["Hello, team.", "Here I am."]
        asked = [request.newest_text for request in town.model.requests[2:]]
        assert [text for text in asked if text in {"one", "two"}] == ["one", "two"]
        assert len(asked) == 3

    # -- messages out --------------------------------------------------------------------------------------------------

    async def test_an_answer_whose_sending_ended_unclear_is_there_once_or_marked(self, town: Town) -> None:
        """Where the platform can be asked it is not repeated; else it is repeated once, and says so."""
        town.configure(town.table, drafts="off")
        town.model.answers(says("Only once."))
        async with town.daemon() as daemon:
            town.break_next("send", town.uma.chat)
            town.uma.says("tell me")
            await daemon.until("delivery.sent")
        first, *more = town.uma.chat.texts
        assert first == "Only once."
        channel, _ = town.channel()
        if town.tells_of_unclear:
            assert isinstance(channel, SettlesUnclear)
            assert more == []
        else:
            (again,) = more
            assert again.endswith("Only once.")
            assert again != first
        await channel.close()

    async def test_a_long_answer_arrives_whole(self, town: Town) -> None:
        """In one message or in several, in order and without anything twice."""
        town.configure(town.table, drafts="off")
        town.model.answers(says(LONG))
        async with town.daemon() as daemon:
            town.uma.says("tell me all")
            await daemon.until("delivery.sent")
        assert (len(town.uma.chat.texts) > 1) == town.splits
        assert_all_of_it_is_told(town.uma.chat)

    async def test_nobody_is_notified_by_what_a_model_writes(self, town: Town) -> None:
        """Neither by a draft nor by the final text, nor by what a prompt shows."""
        shout = f"@everyone @here <!channel> <@{town.vic.id}> <@&555> tg://user?id=1 hello"
        town.model.answers(holds(says(shout), after=3))
        async with town.daemon() as daemon:
            town.uma.says(town.to_bot("shout"), chat=town.team)
            await town.model.until_holding()
            if town.kind.capabilities.edits:
                await town.team.wait_for(lambda chat: chat.replies)
            town.model.release()
            await daemon.until("delivery.sent")
            town.configure("operators", notify="here")
            prompt = await town.asks(town.olga, f"touch made # {shout}")
            town.model.answers(says("I leave it."))
            await town.told(town.olga.presses(prompt, "Deny"))
            await daemon.kill()
        assert "everyone" in town.team.texts[0]
        assert town.notified(town.team) == []

    async def test_files_come_in_and_go_out(self, town: Town, tmp_path: Path) -> None:
        """Under a safe name into the workspace; and out of it with their words, once."""
        town.model.answers(says("Read."))
        async with town.daemon() as daemon:
            town.sends_file(town.uma, "../../evil.sh", b"what it says", "read it")
            await daemon.until("delivery.sent")
        stored = [path for path in town.workspace.rglob("*") if path.is_file()]
        assert [path.read_bytes() for path in stored] == [b"what it says"]
        assert "read it" in town.model.last_request.newest_text
        assert str(stored[0].relative_to(town.workspace)) in town.model.last_request.newest_text
        out = tmp_path / "out.txt"
        out.write_bytes(b"from me")
        channel, _ = town.channel()
        place = Place(town.kind.name, town.place_of(town.uma.chat))
        (body,) = channel.render("Here it is.")
        file = OutboundFile(path=str(out), name="result.txt", mime="text/plain")
        await channel.send(OutboundMessage(place=place, body=body, key="k1", file=file))
        await channel.close()
        assert town.files_of(town.uma.chat) == [("result.txt", b"from me")]
        assert town.uma.chat.texts[-1] == "Here it is."

    # -- approvals and commands ----------------------------------------------------------------------------------------

    async def test_an_operators_press_decides_and_it_runs(self, town: Town) -> None:
        """The prompt shows what runs; afterwards it shows what was decided, by whom, and has no buttons."""
        async with town.daemon() as daemon:
            prompt = await town.asks(town.olga, "touch made")
            assert "touch made" in prompt.text
            assert {"Approve", "Always in this chat", "Deny"} <= set(prompt.buttons)
            town.model.answers(says("Done."))
            told = await town.told(town.olga.presses(prompt, "Approve"))
            await town.team.reply("Done.")
            await town.team.wait_for(lambda _: not prompt.buttons)
            await daemon.until("turn.finished")
        assert told == Told("Approved.", private=True)
        assert town.made()
        assert "Olga" in prompt.text

    async def test_who_is_no_operator_changes_nothing_and_is_told_so_alone(self, town: Town) -> None:
        """A stranger, and the one who asked."""
        town.configure("operators", notify="here")
        async with town.daemon() as daemon:
            prompt = await town.asks(town.uma)
            for person in (town.xen, town.uma):
                press = person.presses(prompt, "Approve")
                if person is town.uma or town.tells_strangers:
                    told = await town.told(press)
                    assert told.private
                    assert "operator" in told.text
                else:
                    await daemon.until("envelope.refused", where=lambda each: each["reason"] == "not_allowed")
                    assert town.xen.chat.replies == []
            assert daemon.named("approval.decided") == []
            assert prompt.buttons != []
            await daemon.kill()
        assert not town.made()

    async def test_a_second_press_is_told_what_happened(self, town: Town) -> None:
        """One decision counts; approve and deny after it change nothing."""
        async with town.daemon() as daemon:
            prompt = await town.asks(town.olga, "echo x >> made")
            presses = [town.olga.presses(prompt, "Approve"), town.olga.presses(prompt, "Deny")]
            town.model.answers(says("Done."))
            told = await asyncio.gather(*(town.told(press) for press in presses))
            await town.team.reply("Done.")
            assert len(daemon.named("approval.decided")) == 1
        assert told[0].text == "Approved."
        assert "Already decided" in told[1].text
        assert (town.workspace / "made").read_text() == "x\n"

    async def test_a_late_press_is_told_so(self, town: Town) -> None:
        """When its time is over the prompt says so, and its buttons are gone; an old client's press changes nothing."""
        town.configure(town.table, approval_timeout="1s")
        async with town.daemon():
            prompt = await town.asks(town.olga)
            press = town.press_of(town.olga, prompt, "Approve")
            town.model.answers(says("Nobody decided."))
            await town.team.reply("Nobody decided.")
            await town.team.wait_for(lambda _: not prompt.buttons)
            told = await town.told(press())
        assert "xpired" in told.text
        assert "xpired" in prompt.text
        assert not town.made()

    async def test_a_button_works_after_a_restart(self, town: Town) -> None:
        """What was asked before a crash is decided by the same message after it."""
        async with town.daemon() as daemon:
            prompt = await town.asks(town.olga)
            await daemon.kill()
        town.model.answers(says("Done."))
        async with town.daemon():
            told = await town.told(town.olga.presses(prompt, "Approve"))
            await town.team.reply("Done.")
            await town.team.wait_for(lambda _: not prompt.buttons)
        assert told.text == "Approved."
        assert town.made()

    async def test_a_request_that_is_too_long_comes_whole_in_a_file(self, town: Town) -> None:
        """Nobody approves a command whose end cannot be seen."""
        command = "echo " + "x" * 9000 + "; touch made"
        async with town.daemon() as daemon:
            prompt = await town.asks(town.olga, command)
            (document,) = town.documents(prompt)
            town.model.answers(says("All right."))
            await town.told(town.olga.presses(prompt, "Deny"))
            await town.team.reply("All right.")
            assert daemon.named("approval.decided")[0]["state"] == "denied"
        assert command in document
        assert not town.made()

    async def test_commands_are_carried_out_beside_the_queue(self, town: Town) -> None:
        """As texts everywhere, and by the platform's own commands where it has some: in the same conversation."""
        town.model.answers(holds(says("One."), after=0))
        async with town.daemon() as daemon:
            town.uma.says("first")
            await town.model.until_holding()
            town.uma.says("/status")
            await town.uma.chat.reply("I am working here")
            if town.native_commands:
                told = await town.commands(town.uma, "status", "", town.uma.chat)
                assert "I am working here" in told.text
                told = await town.commands(town.uma, "stop", "", town.uma.chat)
            else:
                town.uma.says("/stop")
                await town.uma.chat.reply("Stopping.")
            finished = await daemon.until("turn.finished")
        assert finished["outcome"] == "stopped"

    # -- what it says of itself ----------------------------------------------------------------------------------------

    async def test_the_record_of_capabilities_is_true(self, town: Town) -> None:
        """What the kind says that it can, the channel has; what it has, the kind says."""
        channel, _ = town.channel()
        able = town.kind.capabilities
        assert able.edits == isinstance(channel, EditsMessages)
        assert (able.typing_interval is not None) == isinstance(channel, ShowsTyping)
        assert isinstance(channel, SettlesUnclear | AnswersProbe)
        assert isinstance(channel, AsksApproval)
        assert isinstance(channel, SettlesUnclear) or not town.tells_of_unclear
        assert channel.direct_place(Identity.parse(town.operator)) is not None
        assert channel.direct_place(Identity("elsewhere", "77")) is None
        calls, seconds = town.kind.pace.chat_calls
        assert town.kind.pace.draft_interval >= seconds / calls
        await channel.close()

    async def test_every_markdown_case_reads_as_it_should(self, town: Town) -> None:
        """Inputs and properties are the same for all platforms; so are those of every beginning of a text."""
        channel, _ = town.channel()
        found = {}
        for case in load_cases():
            if not town.splits:
                case.want.pop("split", None)
            bodies = channel.render(case.source)
            assert town.splits or len(bodies) <= 1
            found[case.name] = [
                *complaints(case, [town.seen(body) for body in bodies]),
                *(rule for body in bodies for rule in town.broken_rules(body)),
                *(rule for body in bodies for rule in town.broken_rules(channel.plain(body))),
                *(rule for body in bodies for rule in town.broken_rules(channel.mark_repeat(body))),
            ]
        await channel.close()
        assert {name: bad for name, bad in found.items() if bad} == {}


class Drafting:
    """What an adapter does whose messages can be changed."""

    async def test_a_draft_grows_into_the_answer(self, town: Town) -> None:
        """The first words are seen while the model still speaks; in the end one message says all of it."""
        town.model.answers(holds(says("The first words, and then the rest of it."), after=3))
        async with town.daemon() as daemon:
            town.uma.says("tell me")
            await town.uma.chat.reply("The first words,")
            town.model.release()
            await daemon.until("delivery.sent")
        (message,) = town.uma.chat.replies
        assert message.text == "The first words, and then the rest of it."
        assert message.edits >= 1
        assert town.refused == 0

    async def test_drafts_in_many_chats_keep_to_the_rates(self, town: Town) -> None:
        """However many stream at once, no call is refused, and each answer arrives whole."""
        texts = {person: f"For {person.id}: " + "and so on, " * 60 for person in (town.uma, town.vic, town.olga)}
        for person, text in texts.items():
            town.model.when(f"I am {person.id}", holds(says(text.strip()), after=40))
        async with town.daemon() as daemon:
            for person in texts:
                person.says(f"I am {person.id}")
            for person, text in texts.items():
                await person.chat.reply(text[:12])
            for _ in texts:
                town.model.release()
            await daemon.until("delivery.sent", count=3)
        for person, text in texts.items():
            assert person.chat.texts == [text.strip()]
        assert town.refused == 0

    async def test_a_long_answer_rolls_over_into_further_messages(self, town: Town) -> None:
        """While it streams and in the end: nothing is lost, nothing is said twice, the order holds."""
        town.model.answers(holds(says(LONG), after=1400))
        async with town.daemon() as daemon:
            town.uma.says("tell me all")
            await town.uma.chat.wait_for(lambda chat: len(chat.replies) >= 2)
            town.model.release()
            await daemon.until("delivery.sent")
        assert_all_of_it_is_told(town.uma.chat)
        assert town.refused == 0

    async def test_the_final_text_arrives_after_a_limit(self, town: Town) -> None:
        """The pause that the platform asks for is kept, and then the answer stands there, once."""
        town.model.answers(holds(says("The first words, and the end."), after=3))
        async with town.daemon() as daemon:
            town.uma.says("tell me")
            await town.uma.chat.reply("The first words,")
            town.limit_next("edit", 2.0, town.uma.chat)
            town.model.release()
            await daemon.until("delivery.sent")
        assert town.uma.chat.texts == ["The first words, and the end."]
        assert town.refused == 0


class Correcting:
    """What an adapter does on whose platform people can change what they wrote."""

    async def test_a_waiting_message_is_answered_as_it_was_corrected(self, town: Town) -> None:
        """An edit of an answered one does nothing; a deletion takes a waiting one back."""
        town.model.answers(holds(says("One."), after=0), says("Two."))
        async with town.daemon() as daemon:
            asked = town.uma.says("first")
            await town.model.until_holding()
            waiting = town.uma.says("secnod")
            withdrawn = town.uma.says("never mind")
            await daemon.until("envelope.accepted", count=3)
            town.uma.edits(waiting, "second")
            town.uma.edits(asked, "zeroth")
            await daemon.until("envelope.edited", count=2)
            if town.deletes:
                town.uma.deletes(withdrawn)
                await daemon.until("envelope.edited", count=3)
            else:
                town.model.answers(says("Three."))
            town.model.release()
            await daemon.until("delivery.sent", count=2 if town.deletes else 3)
        asked_for = [request.newest_text for request in town.model.requests]
        assert asked_for[:2] == ["first", "second"]
        assert (asked_for[2:] == []) == town.deletes
        assert "zeroth" not in str(town.model.last_request.messages)


class Conformance(Conversing, Drafting, Correcting):
    """The whole suite."""
