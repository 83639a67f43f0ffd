"""Who may touch what: the table by origin, and who reads along."""

import pytest

from tests.memory.people import AGENT, ANN, ANNS_CHAT, BOB, BOBS_CHAT, GROUP, People
from zerobot.core.envelope import TurnOrigin
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.memory import MemoryOwner, MemorySource, TurnScope
from zerobot.memory.policy import ORIGIN_RULES, injected_owners, own_owners, recalled_owners, source_in

HERE = ConversationId(7)
CHAT = MemoryOwner.conversation(HERE)
PERSON = MemoryOwner.person(ANN)


def scope(origin: TurnOrigin, *, private: bool = True, outside_content: bool = False) -> TurnScope:
    return TurnScope(
        turn=TurnId("t1"),
        origin=origin,
        asker=ANN,
        conversation=HERE,
        agent="default",
        private=private,
        outside_content=outside_content,
    )


def test_every_origin_has_its_rule() -> None:
    """A new origin does not pass by being forgotten."""
    assert set(ORIGIN_RULES) == set(TurnOrigin)


@pytest.mark.parametrize(
    ("origin", "injected", "recalled", "changed"),
    [
        (TurnOrigin.USER, (PERSON, CHAT, AGENT), (PERSON, CHAT, AGENT), (PERSON, CHAT)),
        (TurnOrigin.SCHEDULE, (PERSON, AGENT), (PERSON, CHAT, AGENT), (PERSON, CHAT)),
        (TurnOrigin.DAEMON, (PERSON, AGENT), (PERSON, CHAT, AGENT), (PERSON, CHAT)),
        (TurnOrigin.NESTED, (), (), ()),
    ],
)
def test_the_origin_decides(
    origin: TurnOrigin,
    injected: tuple[MemoryOwner, ...],
    recalled: tuple[MemoryOwner, ...],
    changed: tuple[MemoryOwner, ...],
) -> None:
    """Users get all, timed prompts nothing of the conversation by itself, nested turns nothing at all."""
    turn = scope(origin)
    assert injected_owners(turn) == injected
    assert recalled_owners(turn) == recalled
    assert own_owners(turn) == changed


@pytest.mark.parametrize("origin", TurnOrigin)
def test_a_schedule_may_do_without(origin: TurnOrigin) -> None:
    """With `uses_memory` off nothing is injected, whatever the origin."""
    assert injected_owners(scope(origin), uses_memory=False) == ()


@pytest.mark.parametrize("origin", TurnOrigin)
def test_a_group_never_sees_what_is_a_persons_own(origin: TurnOrigin) -> None:
    """Where others read along, a person's own entries are neither shown nor written."""
    group = scope(origin, private=False)
    assert PERSON not in {*injected_owners(group), *recalled_owners(group), *own_owners(group)}


@pytest.mark.parametrize("origin", TurnOrigin)
def test_no_turn_writes_for_all(origin: TurnOrigin) -> None:
    """What everybody may read is changed by operators, outside of turns."""
    assert AGENT not in own_owners(scope(origin))


@pytest.mark.parametrize(
    ("origin", "outside", "source"),
    [
        (TurnOrigin.USER, False, MemorySource.SAID),
        (TurnOrigin.USER, True, MemorySource.CONTENT),
        (TurnOrigin.SCHEDULE, False, MemorySource.SCHEDULE),
        (TurnOrigin.SCHEDULE, True, MemorySource.SCHEDULE),
        (TurnOrigin.DAEMON, False, MemorySource.SCHEDULE),
        (TurnOrigin.NESTED, False, None),
    ],
)
def test_an_entry_says_where_it_comes_from(
    origin: TurnOrigin,
    outside: bool,  # noqa: FBT001
    source: MemorySource | None,
) -> None:
    """What was remembered after reading somebody else's text is marked so."""
    assert source_in(scope(origin, outside_content=outside)) is source


async def test_a_direct_chat_is_private_and_a_group_is_not(people: People) -> None:
    """As the channel said when the conversation began."""
    assert (await people.scope(ANN, ANNS_CHAT)).private
    assert not (await people.scope(ANN, GROUP)).private


async def test_a_schedule_into_somebody_elses_chat_is_not_private(people: People) -> None:
    """What Ann has for herself is not delivered to Bob, though his chat is a direct one."""
    await people.turn(BOB, BOBS_CHAT)
    assert not (await people.scope(ANN, BOBS_CHAT, origin=TurnOrigin.SCHEDULE)).private
    assert (await people.scope(BOB, BOBS_CHAT, origin=TurnOrigin.SCHEDULE)).private


async def test_a_direct_chat_that_two_people_use_is_not_private(people: People) -> None:
    """A shared terminal or mailbox: what one has for themselves is not shown where the other reads too."""
    await people.turn(BOB, ANNS_CHAT)
    for origin in (TurnOrigin.USER, TurnOrigin.SCHEDULE):
        assert not (await people.scope(ANN, ANNS_CHAT, origin=origin)).private


async def test_a_schedule_into_a_chat_where_nobody_has_spoken_is_not_private(people: People) -> None:
    """Whose chat it is cannot be known there."""
    assert not (await people.scope(ANN, BOBS_CHAT, origin=TurnOrigin.SCHEDULE)).private


async def test_a_scope_tells_what_the_turn_is(people: People) -> None:
    """Asker, conversation, agent and what was read; an unknown turn has none."""
    turn = await people.turn(ANN, ANNS_CHAT, outside_content=True)
    assert await people.scope_of(turn) == TurnScope(
        turn=turn,
        origin=TurnOrigin.USER,
        asker=ANN,
        conversation=await people.conversation(ANNS_CHAT),
        agent="default",
        private=True,
        outside_content=True,
    )
    assert await people.scope_of(TurnId("none")) is None


@pytest.mark.parametrize("text", ["person:pigeon:1001", "conversation:7", "agent:default", "person:pigeon:a:b/c d"])
def test_an_owner_is_written_and_read(text: str) -> None:
    """Each kind has one form."""
    assert str(MemoryOwner.parse(text)) == text


@pytest.mark.parametrize("text", ["", "person:1001", "person:", "conversation:x", "agent:", "everybody", "chat:7"])
def test_what_is_no_owner_is_refused(text: str) -> None:
    """With a sentence that says what one writes."""
    with pytest.raises(ValueError, match="write"):
        MemoryOwner.parse(text)


def test_the_same_id_on_two_platforms_is_two_people() -> None:
    """A bare id is never an owner."""
    assert MemoryOwner.person(ANN) != MemoryOwner.person(type(ANN)("raven", ANN.id))
