"""The pair-check: may this sender talk to the bot at all? Pure; what the store knows is handed in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from zerobot.core.places import Identity, at_home


class Standing(StrEnum):
    """What the store knows of a sender on a channel."""

    UNKNOWN = "unknown"
    """Never paired; a request may be open."""
    ALLOWED = "allowed"
    REVOKED = "revoked"


class Answer(StrEnum):
    """The answer of the pair-check."""

    ADMITTED = "admitted"
    PAIRING = "pairing"
    """Not yet: an operator may approve a code."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Who may talk on one channel, from its settings."""

    identities: frozenset[Identity] = frozenset()
    """The ids of the list, as text: `1001` and `"1001"` of a settings file are the same."""
    handles: frozenset[str] = frozenset()
    """The names of the list, such as `@ann`, case-folded (`fold_handle`)."""
    domains: frozenset[str] = frozenset()
    """The domains of the list, `@example.com`, in lower case: everyone whose id is an address there."""
    everyone: bool = False
    pairing: bool = True
    """Whether an unknown person in a direct chat may ask to be let in."""
    operators: frozenset[Identity] = frozenset()
    """Always admitted."""

    def at_home(self, home: Sequence[str], homes: Callable[[str], Sequence[str]]) -> "Admission":
        """The same with full ids, on a platform whose ids hold within a scope.

        Args:
            home: The channel's own scope, if it is known.
            homes: Gives those of all channels of a platform: operators are the same everywhere.
        """
        operators = frozenset(full for each in self.operators for full in at_home(each, homes(each.platform)))
        identities = frozenset(full for each in self.identities for full in at_home(each, home))
        return replace(self, identities=identities, operators=operators)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the pair-check says, and what has to be remembered of it."""

    answer: Answer
    bind: tuple[str, ...] = ()
    """Names of the list that belong to this sender's id from now on, and to nobody else."""


def fold_handle(handle: str) -> str:
    """A name in the form in which names are compared; no platform tells names apart by case."""
    return handle.strip().casefold()


def _is_of(sender: Identity, domains: frozenset[str]) -> bool:
    _, at, domain = sender.id.rpartition("@")
    return bool(at) and f"@{domain}" in domains


def judge(
    admission: Admission,
    sender: Identity,
    handles: tuple[str, ...],
    *,
    direct: bool,
    standing: Standing,
    bound: Mapping[str, str],
) -> Judgement:
    """Decide whether a sender may talk.

    A name lets somebody in once: the first sender under it is remembered by his id, and from then on the id counts. He
    stays admitted under another name, and whoever takes the name later is a stranger. Revoking beats names, pairing and
    an open door, so that a wrong person who came first can be shut out; only the list of ids and the operators beat it.

    Args:
        admission: The channel's settings.
        sender: By the platform's immutable id.
        handles: The names that the sender has at the moment.
        direct: Whether the sender is alone with the bot; pairing is offered only there.
        standing: What pairing knows of the sender.
        bound: For names of the list: the identity, as text, to whom each belongs.
    """
    if sender in admission.operators or sender in admission.identities:
        return Judgement(answer=Answer.ADMITTED)
    if standing is Standing.REVOKED:
        return Judgement(answer=Answer.REFUSED)
    if admission.everyone or standing is Standing.ALLOWED or _is_of(sender, admission.domains):
        return Judgement(answer=Answer.ADMITTED)
    if any(bound.get(handle) == str(sender) for handle in admission.handles):
        return Judgement(answer=Answer.ADMITTED)
    free = {fold_handle(handle) for handle in handles} & admission.handles - bound.keys()
    if free:
        return Judgement(answer=Answer.ADMITTED, bind=tuple(sorted(free)))
    return Judgement(answer=Answer.PAIRING if admission.pairing and direct else Answer.REFUSED)
