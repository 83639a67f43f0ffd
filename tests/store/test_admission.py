"""Who may talk: the pair-check as a pure function."""

import pytest

from tests.store.rows import ANN, BOB, OPERATOR
from zerobot.core.admission import Admission, Answer, Judgement, Standing, fold_handle, judge
from zerobot.core.places import Identity

LISTED = Admission(identities=frozenset({ANN}))
NAMED = Admission(handles=frozenset({"@ann"}))
OPEN_DOOR = Admission(everyone=True)


def judged(
    admission: Admission,
    sender: Identity,
    *handles: str,
    direct: bool = True,
    standing: Standing = Standing.UNKNOWN,
    bound: dict[str, str] | None = None,
) -> Judgement:
    return judge(admission, sender, handles, direct=direct, standing=standing, bound=bound or {})


@pytest.mark.parametrize(
    ("admission", "sender", "standing", "answer"),
    [
        (LISTED, ANN, Standing.UNKNOWN, Answer.ADMITTED),
        (LISTED, ANN, Standing.REVOKED, Answer.ADMITTED),
        (LISTED, BOB, Standing.UNKNOWN, Answer.PAIRING),
        (LISTED, BOB, Standing.ALLOWED, Answer.ADMITTED),
        (LISTED, BOB, Standing.REVOKED, Answer.REFUSED),
        (LISTED, Identity("raven", "1001"), Standing.UNKNOWN, Answer.PAIRING),
        (OPEN_DOOR, BOB, Standing.UNKNOWN, Answer.ADMITTED),
        (OPEN_DOOR, BOB, Standing.REVOKED, Answer.REFUSED),
        (Admission(operators=frozenset({OPERATOR})), OPERATOR, Standing.REVOKED, Answer.ADMITTED),
        (Admission(pairing=False), BOB, Standing.UNKNOWN, Answer.REFUSED),
        (Admission(), BOB, Standing.UNKNOWN, Answer.PAIRING),
    ],
)
def test_ids_pairing_and_the_open_door(
    admission: Admission, sender: Identity, standing: Standing, answer: Answer
) -> None:
    """The list of ids and operators always come in, the revoked never else, strangers are offered pairing."""
    assert judged(admission, sender, standing=standing).answer is answer


def test_pairing_is_offered_only_in_a_direct_chat() -> None:
    """In a group a stranger gets no code, so nobody can read it there."""
    assert judged(Admission(), BOB, direct=False).answer is Answer.REFUSED


def test_the_first_sender_under_a_listed_name_gets_it() -> None:
    """A free name lets him in and is bound to his id, in whatever case he writes it."""
    assert judged(NAMED, ANN, "@Ann", "@other") == Judgement(answer=Answer.ADMITTED, bind=("@ann",))


def test_a_bound_name_counts_by_the_id() -> None:
    """Its owner comes in without the name, nobody else with it."""
    bound = {"@ann": str(ANN)}
    assert judged(NAMED, ANN, bound=bound) == Judgement(answer=Answer.ADMITTED)
    assert judged(NAMED, BOB, "@ann", bound=bound).answer is Answer.PAIRING


def test_a_name_that_left_the_list_admits_nobody() -> None:
    """What is bound means something only while the list has the name."""
    assert judged(Admission(), ANN, "@ann", bound={"@ann": str(ANN)}).answer is Answer.PAIRING


def test_a_name_is_never_taken_for_an_id() -> None:
    """Somebody who calls himself like an id on the list is a stranger."""
    assert judged(Admission(identities=frozenset({ANN})), BOB, "1001", "pigeon:1001").answer is Answer.PAIRING


def test_the_revoked_cannot_take_a_name() -> None:
    """Shut out, he binds nothing."""
    assert judged(NAMED, BOB, "@ann", standing=Standing.REVOKED) == Judgement(answer=Answer.REFUSED)


def test_names_are_compared_without_case() -> None:
    """The settings' form and the platform's form meet in the middle."""
    assert fold_handle(" @ANN ") == "@ann"


def test_ids_without_a_scope_mean_the_channels_own() -> None:
    """Operators are the same on all channels, the list of a channel is its own; what is not known yet admits nobody."""
    written = Admission(
        identities=frozenset({Identity("org", "U1"), Identity("org", "T9/U2")}),
        operators=frozenset({Identity("org", "U3")}),
    )
    full = written.at_home(("T1",), lambda _: ("T1", "T2"))
    assert full.identities == {Identity("org", "T1/U1"), Identity("org", "T9/U2")}
    assert full.operators == {Identity("org", "T1/U3"), Identity("org", "T2/U3")}
    assert written.at_home((), lambda _: ()) == written


@pytest.mark.parametrize(
    ("sender", "standing", "answer"),
    [
        ("ann@example.test", Standing.UNKNOWN, Answer.ADMITTED),
        ("ann@mail.example.test", Standing.UNKNOWN, Answer.PAIRING),
        ("ann@notexample.test", Standing.UNKNOWN, Answer.PAIRING),
        ("example.test", Standing.UNKNOWN, Answer.PAIRING),
        ("ann@example.test@evil.test", Standing.UNKNOWN, Answer.PAIRING),
        ("ann@example.test", Standing.REVOKED, Answer.REFUSED),
    ],
)
def test_a_domain_lets_in_its_own_addresses_and_no_others(sender: str, standing: Standing, answer: Answer) -> None:
    """`@example.test` in the list of a mailbox; whoever was shut out stays out, and nobody is bound to anything."""
    admission = Admission(domains=frozenset({"@example.test"}))
    assert judged(admission, Identity("mail", sender), standing=standing) == Judgement(answer=answer)
