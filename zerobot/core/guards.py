"""What looks at the words that come in and go out (turn-engine spec A60-A69).

An input guard sees what a person wrote before it is accepted. Of what the model writes, a stream guard sees each piece
before anybody does; an output guard sees a step's whole text, and until its verdict nothing of it is shown (hold mode).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from zerobot.core.ids import TurnId
from zerobot.core.places import Identity, Place

TIME_LIMIT = 5.0
"""Seconds that a guard has for a verdict."""


@dataclass(frozen=True, slots=True)
class Allow:
    """Nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Flag:
    """It may go on; it is on record that somebody should look at it."""

    code: str
    """A short stable word for the log."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """This takes its place; the words before are seen by nobody."""

    text: str


@dataclass(frozen=True, slots=True)
class BlockText:
    """It must not go on."""

    text: str
    """What people read in its place (Markdown)."""
    code: str = "blocked"
    """A short stable word for the log, and for the model's note."""


Verdict = Allow | Flag | Rewrite | BlockText


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Words that a guard looks at."""

    text: str
    place: Place
    sender: Identity | None = None
    """Who wrote it; None: the model."""
    turn: TurnId | None = None
    """None: no turn has begun."""


class TextGuard(Protocol):
    """Looks at whole texts."""

    @property
    def name(self) -> str:
        """Its name, unique among the guards of its kind."""
        ...

    async def inspect(self, passage: Passage) -> Verdict:
        """Say what is to be done. May be cancelled at any await; whatever it raises is a failure of the guard."""
        ...


@runtime_checkable
class CanBeAway(Protocol):
    """A guard that stands on something that may be down. One without this is always there."""

    @property
    def active(self) -> bool:
        """Whether it can work now. It is asked before each input."""
        ...


class OutputStream(Protocol):
    """Sees one answer of a model, piece by piece."""

    def feed(self, delta: str) -> str:
        """Take a piece in; returns what may be shown now, be it of this piece or of earlier ones.

        Raises:
            TextBlockedError: Nothing more may be shown, and what was shown is to be taken back.
        """
        ...

    def finish(self, *, cut: bool) -> str:
        """The answer has ended; returns the rest.

        Args:
            cut: Whether it broke off, so that its last word may be a part of one.

        Raises:
            TextBlockedError: See `feed`.
        """
        ...


class StreamGuard(Protocol):
    """Looks at answers while they come in. It never waits."""

    @property
    def name(self) -> str:
        """Its name, unique among the stream guards."""
        ...

    def begin(self) -> OutputStream:
        """A model begins an answer."""
        ...


class TextBlockedError(Exception):
    """A guard has blocked a text."""

    def __init__(self, guard: str, block: BlockText) -> None:
        super().__init__(f"{guard}: {block.code}")
        self.guard = guard
        self.block = block


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A guard of whole texts, and what is made of it."""

    guard: TextGuard
    required: bool = True
    """Whether a text is blocked when the guard fails (raises, is too slow, answers nonsense). Else the guard counts for
    nothing then, and the log says so."""
    judges: bool = False
    """Judges look side by side at what the others have left of a text, and change nothing of it."""
    time_limit: float = TIME_LIMIT
    """Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPost:
    """A stream guard, and what is made of it."""

    guard: StreamGuard
    required: bool = True
    """As with `Post`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What all guards together say of a passage."""

    verdict: Verdict
    guard: str = ""
    """Whose verdict it is; empty: everybody allows it."""
    text: str
    """What is left of the passage: as it was, as it was rewritten, or what people read in its place."""
    flags: tuple[tuple[str, str], ...] = ()
    """Who flagged it, and with which code."""

    @property
    def blocked(self) -> bool:
        """Whether the passage must not go on."""
        return isinstance(self.verdict, BlockText)


def unheard(ruling: Ruling) -> None:
    """Nobody wants to know of rulings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The guards of an engine, each kind in its order."""

    input: tuple[Post, ...] = ()
    output: tuple[Post, ...] = ()
    """One is enough, and answers are held until its verdict."""
    streams: tuple[StreamPost, ...] = ()
    required: frozenset[str] = frozenset()
    """Names of guards of inputs without which no input is accepted."""
    on_ruling: Callable[[Ruling], None] = unheard
    """Is told once of each ruling on a whole text; what it raises changes nothing."""


NO_GUARDS = Guards()
