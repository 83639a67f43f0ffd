"""Which entries a turn may touch: by its origin, and by who else reads what is said there. Data and pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass

from zerobot.core.envelope import TurnOrigin
from zerobot.core.memory import MemoryOwner, MemorySource, TurnScope


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRule:
    """What turns of one origin do with memory."""

    injects: bool
    """Whether entries are put before the input."""
    injects_conversation: bool = False
    """Whether those of the conversation are among them: what was said there is not what a timed prompt is about."""
    tools: bool = False
    """Whether the memory tools work."""
    source: MemorySource | None = None
    """How entries are marked that come from such a turn."""


NOTHING = OriginRule(injects=False)

ORIGIN_RULES: Mapping[TurnOrigin, OriginRule] = {
    TurnOrigin.USER: OriginRule(injects=True, injects_conversation=True, tools=True, source=MemorySource.SAID),
    TurnOrigin.SCHEDULE: OriginRule(injects=True, tools=True, source=MemorySource.SCHEDULE),
    TurnOrigin.DAEMON: OriginRule(injects=True, tools=True, source=MemorySource.SCHEDULE),
    TurnOrigin.NESTED: NOTHING,
}


def rule_of(origin: TurnOrigin) -> OriginRule:
    """The rule of an origin; one that the table does not have has no memory."""
    return ORIGIN_RULES.get(origin, NOTHING)


def injected_owners(scope: TurnScope, *, uses_memory: bool = True) -> tuple[MemoryOwner, ...]:
    """Whose entries are put before the input of a turn.

    Args:
        scope: The turn's.
        uses_memory: Off where the turn's schedule says so.
    """
    rule = rule_of(scope.origin)
    if not (rule.injects and uses_memory):
        return ()
    return tuple(owner for owner in _audience(scope) if rule.injects_conversation or owner != _conversation(scope))


def recalled_owners(scope: TurnScope) -> tuple[MemoryOwner, ...]:
    """Whose entries the tool `recall` finds in a turn."""
    return _audience(scope) if rule_of(scope.origin).tools else ()


def own_owners(scope: TurnScope) -> tuple[MemoryOwner, ...]:
    """Whose entries the tools `remember` and `forget` change in a turn, the one that is meant by itself first.

    Never an agent's: those reach everybody, and only operators write them.
    """
    if not rule_of(scope.origin).tools:
        return ()
    own = (_conversation(scope),)
    return (MemoryOwner.person(scope.asker), *own) if scope.private else own


def source_in(scope: TurnScope) -> MemorySource | None:
    """How an entry is marked that comes from a turn; None: none may."""
    source = rule_of(scope.origin).source
    # What a turn says after it has read a web page may be what the page wanted it to say.
    return MemorySource.CONTENT if source is MemorySource.SAID and scope.outside_content else source


def _audience(scope: TurnScope) -> tuple[MemoryOwner, ...]:
    """Whose entries everybody who reads along may know: a person's own are not for a group's eyes."""
    shared = (_conversation(scope), MemoryOwner.agent(scope.agent))
    return (MemoryOwner.person(scope.asker), *shared) if scope.private else shared


def _conversation(scope: TurnScope) -> MemoryOwner:
    return MemoryOwner.conversation(scope.conversation)
