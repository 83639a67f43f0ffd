"""Strangers ask by a code that works once; names are bound to ids; revoking shuts out."""

from datetime import timedelta

import pytest

from tests.store.rows import ANN, BOB, NOW, OPERATOR, PLACE, envelope
from zerobot.core.admission import Admission
from zerobot.core.envelope import Acceptance, EnvelopeEdit, InboundEnvelope
from zerobot.core.places import Identity, Place
from zerobot.store.audit import Audit
from zerobot.store.database import Database
from zerobot.store.inbox import Accepted, Inbox
from zerobot.store.pairing import OPEN_REQUESTS, PairingRequest, Pairings
from zerobot.testing.clock import ManualClock

PAIRING = Admission()
NAMED = Admission(handles=frozenset({"@ann"}))


@pytest.fixture
def inbox(database: Database, clock: ManualClock) -> Inbox:
    return Inbox(database, clock)


@pytest.fixture
def pairings(database: Database, clock: ManualClock) -> Pairings:
    return Pairings(database, clock)


async def says(inbox: Inbox, said: InboundEnvelope, admission: Admission = PAIRING) -> Accepted:
    return await inbox.accept(said, admission, is_command=False)


async def asks(inbox: Inbox, sender: Identity = BOB) -> PairingRequest:
    """A stranger writes and gets a code."""
    accepted = await says(inbox, envelope(f"by {sender}", sender=sender))
    assert accepted.pairing is not None
    return accepted.pairing


async def test_a_stranger_is_told_a_code(inbox: Inbox) -> None:
    """The code has 8 characters, an hour to live, and goes to the chat in which he wrote."""
    accepted = await says(inbox, envelope(sender=BOB))
    assert accepted.outcome is Acceptance.PAIRING
    assert accepted.pairing is not None
    assert len(accepted.pairing.code) == 8
    assert (accepted.pairing.identity, accepted.pairing.place) == (BOB, PLACE)
    assert accepted.pairing.expires_at == NOW + timedelta(hours=1)


async def test_a_stranger_is_told_the_same_code_every_ten_minutes_at_most(
    inbox: Inbox, pairings: Pairings, clock: ManualClock
) -> None:
    """However much he writes; after the hour he gets a new code, and the old one is worth nothing."""
    first = await asks(inbox)
    clock.jump(599)
    quiet = await says(inbox, envelope("e2", sender=BOB))
    assert quiet == Accepted(outcome=Acceptance.PAIRING)
    clock.jump(1)
    again = await asks(inbox)
    assert (again.code, again.expires_at) == (first.code, first.expires_at)
    clock.jump(3000)
    second = await asks(inbox)
    assert second.code != first.code
    assert await pairings.approve(first.code, OPERATOR, clock.now()) is None
    assert await pairings.approve(second.code, OPERATOR, clock.now()) is not None


async def test_two_hundred_strangers_open_few_requests(inbox: Inbox) -> None:
    """V059: as many are answered as there are open requests, the others wait in silence."""
    told = [await says(inbox, envelope(f"e{number}", sender=Identity("pigeon", f"s{number}"))) for number in range(200)]
    assert len([each for each in told if each.pairing is not None]) == OPEN_REQUESTS <= 10


async def test_operators_are_asked_once_about_each_and_about_few_an_hour(
    inbox: Inbox, pairings: Pairings, clock: ManualClock
) -> None:
    """Strangers cannot flood operators; whoever is not shown stands in the list all the same."""
    for number in range(4):
        await asks(inbox, Identity("pigeon", f"s{number}"))
    within = timedelta(hours=1)
    first = await pairings.to_ask(clock.now(), 3, within)
    assert [each.identity.id for each in first] == ["s0", "s1", "s2"]
    assert await pairings.to_ask(clock.now(), 3, within) == []
    assert len(await pairings.list()) == 4
    clock.jump(3600)
    await asks(inbox)
    assert [each.identity for each in await pairings.to_ask(clock.now(), 3, within)] == [BOB]


async def test_the_first_answer_to_a_request_counts(inbox: Inbox, pairings: Pairings, clock: ManualClock) -> None:
    """Two operators press: one lets in, the other learns so; a refused person is out, and gets no new code."""
    await asks(inbox)
    await asks(inbox, ANN)
    ann, bob = await pairings.to_ask(NOW, 5, timedelta(hours=1))
    decided, won = await pairings.decide(bob.request, OPERATOR, NOW, let_in=True)
    assert decided is not None
    assert (decided.identity, decided.state, won) == (BOB, "allowed", True)
    decided, won = await pairings.decide(bob.request, ANN, NOW, let_in=False)
    assert decided is not None
    assert (decided.state, decided.decided_by, won) == ("allowed", OPERATOR, False)
    await pairings.decide(ann.request, OPERATOR, NOW, let_in=False)
    assert await says(inbox, envelope("e9")) == Accepted(outcome=Acceptance.NOT_ALLOWED)
    assert await pairings.decide("pair.none", OPERATOR, NOW, let_in=True) == (None, False)
    clock.jump(3600)
    late = (await asks(inbox, Identity("pigeon", "3"))).expires_at
    (third,) = await pairings.to_ask(clock.now(), 5, timedelta(hours=1))
    assert (await pairings.decide(third.request, OPERATOR, late, let_in=True))[1] is False


async def test_what_a_person_wrote_is_refused_when_he_is_shut_out(
    inbox: Inbox, pairings: Pairings, database: Database
) -> None:
    """Waiting inputs are cancelled; an edit or a deletion of them changes nothing any more."""
    await pairings.approve((await asks(inbox)).code, OPERATOR, NOW)
    accepted = await says(inbox, envelope("e2", sender=BOB, message="m2"))
    assert accepted.conversation is not None
    await pairings.revoke(BOB, OPERATOR)
    edit = EnvelopeEdit(place=PLACE, sender=BOB, message_id="m2", text="more")
    assert not await inbox.edit(edit, PAIRING)
    assert not await pairings.may_talk(BOB, "pigeon", PAIRING)
    assert await inbox.refuse(BOB, "pigeon") == 1
    assert await inbox.waiting_count(accepted.conversation) == 0
    assert await pairings.may_talk(BOB, "pigeon", Admission(identities=frozenset({BOB})))


async def test_an_approved_person_talks(
    inbox: Inbox, pairings: Pairings, database: Database, clock: ManualClock
) -> None:
    """The operator types the code in any case; from then on messages are accepted; it is on record who let him in."""
    request = await asks(inbox)
    pairing = await pairings.approve(f" {request.code.lower()} ", OPERATOR, NOW)
    assert pairing is not None
    assert (pairing.identity, pairing.chat, pairing.name) == (BOB, "42", "Ann")
    assert (pairing.state, pairing.code, pairing.decided_by) == ("allowed", "", OPERATOR)
    assert (await says(inbox, envelope("e2", sender=BOB))).outcome is Acceptance.ACCEPTED
    (entry,) = await Audit(database, clock).latest()
    assert (entry.actor, entry.action, entry.subject) == (str(OPERATOR), "pair.approve", f"pigeon {BOB}")


async def test_pairing_is_for_one_channel(inbox: Inbox, pairings: Pairings) -> None:
    """Another bot does not know whom this one knows."""
    await pairings.approve((await asks(inbox)).code, OPERATOR, NOW)
    other = await says(inbox, envelope("e2", sender=BOB, place=Place("second", "42")))
    assert other.outcome is Acceptance.PAIRING


async def test_a_code_works_once_and_an_hour(inbox: Inbox, pairings: Pairings) -> None:
    """Used and late codes look like wrong ones."""
    used = await asks(inbox)
    assert await pairings.approve(used.code, OPERATOR, NOW) is not None
    assert await pairings.approve(used.code, OPERATOR, NOW) is None
    late = await asks(inbox, ANN)
    assert await pairings.approve(late.code, OPERATOR, late.expires_at) is None


async def test_guessing_locks_the_right_code_too(inbox: Inbox, pairings: Pairings) -> None:
    """After five wrong codes the sixth is not looked at, also when it is right; later it works."""
    request = await asks(inbox)
    for _ in range(5):
        assert await pairings.approve("WRONG", OPERATOR, NOW) is None
    assert await pairings.approve(request.code, OPERATOR, NOW) is None
    assert await pairings.approve(request.code, OPERATOR, NOW + timedelta(minutes=15)) is not None


async def test_open_requests_are_few(inbox: Inbox, clock: ManualClock) -> None:
    """Beyond the limit strangers are told nothing; what is over makes room."""
    for number in range(OPEN_REQUESTS):
        await asks(inbox, Identity("pigeon", f"s{number}"))
    assert await says(inbox, envelope("more", sender=BOB)) == Accepted(outcome=Acceptance.PAIRING)
    clock.jump(3600)
    await asks(inbox)


async def test_a_listed_name_is_bound_to_the_first_id(inbox: Inbox, pairings: Pairings) -> None:
    """Its owner stays in under another name; who takes the name is a stranger; the list shows who has it."""
    assert (await says(inbox, envelope("e1", handles=("@Ann",)), NAMED)).outcome is Acceptance.ACCEPTED
    assert (await says(inbox, envelope("e2"), NAMED)).outcome is Acceptance.ACCEPTED
    thief = await says(inbox, envelope("e3", sender=BOB, handles=("@ann",)), NAMED)
    assert thief.outcome is Acceptance.PAIRING
    assert [(each.channel, each.handle, each.identity) for each in await pairings.handles()] == [
        ("pigeon", "@ann", ANN)
    ]


async def test_revoking_shuts_out_and_frees_the_name(inbox: Inbox, pairings: Pairings) -> None:
    """A wrong person who came first is out for good, is offered no code, and the right one can come."""
    await says(inbox, envelope("e1", sender=BOB, handles=("@ann",)), NAMED)
    assert await pairings.revoke(BOB, OPERATOR) == ["pigeon"]
    out = await says(inbox, envelope("e2", sender=BOB, handles=("@ann",)), NAMED)
    assert out == Accepted(outcome=Acceptance.NOT_ALLOWED)
    assert (await says(inbox, envelope("e3", handles=("@ann",)), NAMED)).outcome is Acceptance.ACCEPTED


async def test_revoking_ends_pairing_and_is_on_record(
    inbox: Inbox, pairings: Pairings, database: Database, clock: ManualClock
) -> None:
    """An allowed person and an open request end the same way; who was never let in is nothing to revoke."""
    await pairings.approve((await asks(inbox)).code, OPERATOR, NOW)
    request = await asks(inbox, ANN)
    assert await pairings.revoke(BOB, OPERATOR) == ["pigeon"]
    assert await pairings.revoke(BOB, OPERATOR) == ["pigeon"], "a crash may come between this and what follows from it"
    assert await pairings.revoke(ANN, OPERATOR) == ["pigeon"]
    assert await pairings.approve(request.code, OPERATOR, NOW) is None
    assert await pairings.revoke(Identity("pigeon", "7"), OPERATOR) == []
    assert (await says(inbox, envelope("e2", sender=BOB))).outcome is Acceptance.NOT_ALLOWED
    actions = [entry.action for entry in await Audit(database, clock).latest()]
    assert actions == ["pair.revoke", "pair.revoke", "pair.approve"]


async def test_the_list_shows_open_requests_and_decisions(inbox: Inbox, pairings: Pairings, clock: ManualClock) -> None:
    """An expired request is not shown."""
    await asks(inbox, ANN)
    clock.jump(3600)
    request = await asks(inbox)
    await pairings.approve((await asks(inbox, Identity("pigeon", "3003"))).code, OPERATOR, clock.now())
    assert [(each.state, each.identity.id, each.code) for each in await pairings.list()] == [
        ("allowed", "3003", ""),
        ("pending", "2002", request.code),
    ]
