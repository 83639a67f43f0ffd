"""What the model server is told to answer: values that combine with `+`, and the functions that make them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

USAGE = (12, 5)
"""Input and output tokens that an answer reports unless told otherwise."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call that the model makes."""

    name: str
    arguments: str
    """As text, so that it may be broken."""
    id: str = ""
    """Empty: the server makes one up, as real ones do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer of the model: text, calls, a reason to stop. `says(...) + calls(...)` is one answer with both."""

    deltas: tuple[str, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    finish: str = ""
    """In our words: stop tool length filter pause. Empty: tool when there are calls, else stop."""
    usage: tuple[int, int] | None = USAGE
    reasoning: str = ""
    drop_after: int | None = None
    """Break the connection after so many text deltas, without any end."""
    hold_after: int | None = None
    """Send nothing more after so many text deltas until the test calls `release()`; 0 holds before the first."""
    stay_open: bool = False
    """Send the protocol's end, then something late, and keep the connection open until the test releases it."""
    fault: Mapping[str, object] | None = None
    """An error object inside the stream, after the text."""

    def __add__(self, other: "Step") -> Self:
        """Join two answers into one; what the second says of the ending counts."""
        return replace(
            self,
            deltas=self.deltas + other.deltas,
            calls=self.calls + other.calls,
            finish=other.finish or self.finish,
            usage=other.usage,
            reasoning=self.reasoning + other.reasoning,
            drop_after=self.drop_after if other.drop_after is None else other.drop_after,
            hold_after=self.hold_after if other.hold_after is None else other.hold_after,
            stay_open=self.stay_open or other.stay_open,
            fault=other.fault or self.fault,
        )

    @property
    def stop_reason(self) -> str:
        """Why the model stops, in our words."""
        return self.finish or ("tool" if self.calls else "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuses:
    """An HTTP answer other than success."""

    status: int
    message: str = ""
    kind: str = ""
    """The error's type; empty: what the protocol uses for the status."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    """Instead of the protocol's error object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plays:
    """Recorded bytes, piece by piece, and then the end of the connection."""

    pieces: tuple[bytes, ...]
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    hold_after: int | None = None
    """Send nothing more after so many pieces until the test calls `release()`."""
    hold_before_headers: bool = False
    """Send nothing at all until then."""
    pause: float = 0.0
    """Seconds before each piece."""


Answer = Step | Refuses | Plays


def says(
    text: str,
    *,
    finish: str = "",
    usage: tuple[int, int] | None = USAGE,
    deltas: Sequence[str] | None = None,
    reasoning: str = "",
) -> Step:
    """Answer with text, in one delta a word unless `deltas` says how it is cut."""
    cut = tuple(deltas) if deltas is not None else tuple(_by_word(text))
    assert "".join(cut) == text, "the deltas are not the text"
    return Step(deltas=cut, finish=finish, usage=usage, reasoning=reasoning)


def calls(name: str, *, id: str = "", **arguments: object) -> Step:  # noqa: A002
    """Answer with one tool call; two such answers joined with `+` are two calls at once."""
    return Step(calls=(ScriptedCall(name, json.dumps(arguments, ensure_ascii=False), id),))


def calls_raw(name: str, arguments: str, *, id: str = "", finish: str = "") -> Step:  # noqa: A002
    """Call a tool with arguments as text, to be cut or broken."""
    return Step(calls=(ScriptedCall(name, arguments, id),), finish=finish)


def step(
    *,
    text: str = "",
    calls: Sequence[ScriptedCall] = (),
    finish: str = "",
    usage: tuple[int, int] | None = USAGE,
) -> Step:
    """Answer with everything spelled out."""
    return Step(deltas=tuple(_by_word(text)), calls=tuple(calls), finish=finish, usage=usage)


def drops(text: str = "", *, deltas: Sequence[str] | None = None) -> Step:
    """Send some text and break the connection, before any end."""
    cut = tuple(deltas) if deltas is not None else tuple(_by_word(text))
    return Step(deltas=cut, drop_after=len(cut), usage=None)


def holds(answer: Step, *, after: int = 0) -> Step:
    """Send the answer, but wait after so many text deltas until the test calls `release()`."""
    return replace(answer, hold_after=after)


def stays_open(answer: Step) -> Step:
    """Send the whole answer and a late delta, and don't close the connection."""
    return replace(answer, stay_open=True)


def breaks_with(fault: Mapping[str, object], *, text: str = "") -> Step:
    """Send some text, then an error object inside the stream."""
    return Step(deltas=tuple(_by_word(text)), fault=fault, usage=None)


def status(
    code: int,
    *,
    message: str = "",
    kind: str = "",
    retry_after: float | str | None = None,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Refuses:
    """Answer with an HTTP status; `retry_after` in seconds, or as an HTTP date."""
    wait = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Refuses(status=code, message=message, kind=kind, headers={**(headers or {}), **wait}, body=body)


def _by_word(text: str) -> list[str]:
    words = text.split(" ")
    return [word for word in [*(f"{word} " for word in words[:-1]), words[-1]] if word]
