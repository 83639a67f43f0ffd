"""Where operators are asked, and when nobody can be."""

from datetime import timedelta

import pytest

from tests.daemon.office import (
    LOCAL,
    OLGA,
    OLGAS,
    OTTO,
    OTTOS,
    ROOM,
    USER,
    Office,
    Offices,
)
from zerobot.core.places import Identity, Place
from zerobot.daemon.desk import WAITING
from zerobot.daemon.routing import CLI, OperatorRules, direct_places
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.line import OpenChannel
from zerobot.testing.channel import FakeChannel, fake_kind


async def test_an_operator_who_asks_is_asked_in_the_chat(office: Office) -> None:
    """auto: the asker is an operator."""
    assert await office.desk.routes(OLGA, ROOM) == (ROOM,)


async def test_a_chat_in_which_an_operator_wrote_lately_is_asked_there(office: Office) -> None:
    """auto: within 24 hours; a day later it is a direct message."""
    assert await office.desk.routes(USER, ROOM) == (OLGAS,)
    await office.write(OLGA, ROOM)
    assert await office.desk.routes(USER, ROOM) == (ROOM,)
    await office.house.clock.advance(24 * 3600 + 1)
    assert await office.desk.routes(USER, ROOM) == (OLGAS,)


@pytest.mark.parametrize(
    ("rules", "asker", "places"),
    [
        (OperatorRules(users=()), USER, ()),
        (OperatorRules(users=(OLGA,), notify="here"), USER, (ROOM,)),
        (OperatorRules(users=(OLGA, OTTO), notify="direct"), USER, (OLGAS, OTTOS)),
        (OperatorRules(users=(OLGA, OTTO), notify="direct", self_approval="never"), OLGA, (OTTOS,)),
        (OperatorRules(users=(OLGA,), notify="here", self_approval="never"), OLGA, ()),
        (OperatorRules(users=(OLGA,), self_approval="direct"), OLGA, ()),
        (OperatorRules(users=(Identity("elsewhere", "1"),), notify="direct"), USER, ()),
        (OperatorRules(users=(), local=LOCAL, platforms={"fake": "fake"}), LOCAL, (ROOM,)),
        (OperatorRules(users=(), local=LOCAL, platforms={"fake": "other"}), LOCAL, ()),
    ],
)
async def test_where_operators_are_asked(
    offices: Offices, rules: OperatorRules, asker: Identity, places: tuple[Place, ...]
) -> None:
    """Each setting; empty means that nobody can be asked, so that the call is refused with the true reason."""
    async with offices.open(rules) as office:
        assert tuple(await office.desk.routes(asker, ROOM)) == places


async def test_an_operator_is_reached_on_his_own_platform(offices: Offices) -> None:
    """Somebody asks on one channel, and the operator's direct chat is on another; who has none is passed over."""
    async with offices.open() as office:
        line = office.house.delivery.line("fake")
        assert line is not None
        second = FakeChannel(office.house.clock, name="second", platform="other")
        channels = {
            "fake": OpenChannel(name="fake", channel=line.channel, kind=fake_kind(), drafts=True),
            "second": OpenChannel(name="second", channel=second, kind=fake_kind(), drafts=True),
        }
        house = office.house
        delivery = Delivery(channels, house.outbox, house.clock, house.log, _no_move)
        people = (Identity("other", "7"), Identity("mail", "x@y.test"), OLGA, Identity("other", "7"))
        assert direct_places(delivery, people) == (Place("second", "7"), OLGAS)


async def _no_move(place: Place, chat: str) -> None:
    raise AssertionError(f"nothing moves: {place}, {chat}")


@pytest.mark.parametrize(
    ("rules", "decider", "counts"),
    [
        (OperatorRules(users=(OLGA,)), OLGA, True),
        (OperatorRules(users=(OTTO,)), OLGA, False),
        (OperatorRules(users=(USER,)), USER, True),
        (OperatorRules(users=(USER,), self_approval="direct"), USER, True),
        (OperatorRules(users=(USER, OLGA), self_approval="never"), USER, False),
        (OperatorRules(users=()), CLI, True),
        (OperatorRules(users=(), local=LOCAL, platforms={"fake": "fake"}), LOCAL, True),
        (OperatorRules(users=(), local=LOCAL, platforms={"fake": "other"}), LOCAL, False),
    ],
)
def test_whose_earlier_decision_counts(rules: OperatorRules, decider: Identity, counts: bool) -> None:  # noqa: FBT001 - a column
    """Who is no operator any more decides nothing, and who may not decide their own requests has not done so."""
    assert rules.still_counts(decider, USER, ROOM) is counts


async def test_a_channel_may_give_operators_more_time() -> None:
    """The channel's own timeout goes before the common one."""
    rules = OperatorRules(users=(), timeout=timedelta(hours=1), timeouts={"slow": timedelta(hours=24)})
    assert rules.time_for(ROOM) == timedelta(hours=1)
    assert rules.time_for(Place("slow", "1")) == timedelta(hours=24)


async def test_operators_who_are_asked_on_a_slow_channel_have_its_time() -> None:
    """By mail, say, about what was asked in a chat; a chat's own time holds wherever they are asked."""
    slow, quick = Place("slow", "1"), Place("quick", "1")
    timeouts = {"slow": timedelta(hours=24), "quick": timedelta(minutes=10)}
    rules = OperatorRules(users=(), timeout=timedelta(hours=1), timeouts=timeouts)
    assert rules.time_for(ROOM, (OLGAS, slow)) == timedelta(hours=24)
    assert rules.time_for(ROOM, (OLGAS, quick)) == timedelta(hours=1)
    assert rules.time_for(quick, (slow,)) == timedelta(minutes=10)


def test_an_id_without_a_scope_means_the_bots_own() -> None:
    """On a platform whose ids hold within a scope; full ids mean whom they name, other platforms have no scopes."""
    rules = OperatorRules(
        users=(Identity("org", "U1"), Identity("org", "T2/U2"), OLGA),
        homes=lambda platform: ("T1",) if platform == "org" else (),
    )
    assert rules.operators_at(ROOM) == (Identity("org", "T1/U1"), Identity("org", "T2/U2"), OLGA)
    assert rules.is_operator(Identity("org", "T1/U1"), ROOM)
    assert not rules.is_operator(Identity("org", "T2/U1"), ROOM)


def test_an_operator_without_a_scope_is_still_himself() -> None:
    """Whether somebody asks for himself is told by his full id too."""
    rules = OperatorRules(users=(Identity("org", "U1"),), self_approval="never", homes=lambda _: ("T1",))
    assert rules.deciders(Identity("org", "T1/U1"), ROOM, direct=True) == ()


@pytest.mark.parametrize(
    ("notice_after", "shown", "words"), [(None, (OLGAS,), ""), (60.0, (OLGAS,), WAITING), (60.0, (ROOM,), "")]
)
async def test_a_chat_is_told_that_its_turn_waits_where_nothing_else_shows_it(
    offices: Offices, notice_after: float | None, shown: tuple[Place, ...], words: str
) -> None:
    """A mailbox, say; not where the request itself is shown there."""
    async with offices.open(OperatorRules(users=(OLGA,)), notice_after=notice_after) as office:
        assert office.desk.waiting_words(ROOM, shown) == words
        assert office.desk.waiting_words(Place("closed", "1"), shown) == ""
