"""A model that answers from a script, keeps what it was asked, and refuses what no provider would take."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from zerobot.core.errors import HistoryRejectedError, ProviderError
from zerobot.core.messages import AssistantMessage, Message, RecordedCall, ToolResult, UserMessage
from zerobot.core.model import Finish, ModelAnswer, ModelCall, ModelEvent, ModelRequest, TextDelta, UsageSoFar
from zerobot.core.usage import Usage


@dataclass(slots=True)
class Hold:
    """An answer that waits for the test."""

    after: int
    """How many of its deltas come before it waits; more than it has: the usage so far comes too."""
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    async def reached(self) -> None:
        """Wait until the model was asked, has shown `after` deltas, and waits."""
        await self._asked.wait()

    def release(self) -> None:
        """Let the answer go on."""
        self._released.set()

    async def wait(self) -> None:
        """Called by the model: tell that it waits, and wait."""
        self._asked.set()
        await self._released.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """What the model does when it is asked once. Made by the functions below."""

    deltas: tuple[str, ...] = ()
    answer: ModelAnswer | None = None
    """None: `error` is raised after the deltas, or the stream just ends."""
    error: ProviderError | None = None
    spent: Usage | None = None
    """A running total that is reported before the end."""
    hold: Hold | None = None
    to: str | None = None
    """Only for a request whose last words of a person are these; None: for any."""


def call(name: str, id: str = "", raw: str | None = None, /, **arguments: object) -> ModelCall:  # noqa: A002 - a call's id
    """One call of an answer; `raw` is the text of the arguments when it is not what JSON makes of `arguments`."""
    return ModelCall(provider_id=id, name=name, raw_arguments=json.dumps(arguments) if raw is None else raw)


def step(
    text: str = "",
    calls: Sequence[ModelCall] = (),
    *,
    finish: Finish | None = None,
    usage: tuple[int, int] | None = None,
    reasoning: Sequence[dict[str, object]] = (),
    deltas: Sequence[str] | None = None,
) -> Scripted:
    """One whole answer.

    Args:
        text: What it says.
        calls: What it asks for.
        finish: Its end; None: what fits.
        usage: Input and output tokens; None: the provider says nothing.
        reasoning: Opaque blocks.
        deltas: How the text streams; None: at once.
    """
    return Scripted(
        deltas=tuple(deltas) if deltas is not None else (text,) if text else (),
        answer=ModelAnswer(
            text=text,
            calls=tuple(calls),
            reasoning=tuple(reasoning),
            finish=finish or (Finish.TOOL if calls else Finish.STOP),
            usage=tokens(usage),
        ),
    )


def says(
    text: str,
    *,
    finish: Finish = Finish.STOP,
    usage: tuple[int, int] | None = None,
    deltas: Sequence[str] | None = None,
) -> Scripted:
    """An answer that is only text."""
    return step(text, finish=finish, usage=usage, deltas=deltas)


def calls(name: str, *, id: str = "", **arguments: object) -> Scripted:  # noqa: A002 - a call's id
    """An answer that asks for one tool, without a word."""
    return step(calls=[call(name, id, **arguments)])


def fails(error: ProviderError, *, usage: tuple[int, int] | None = None) -> Scripted:
    """An attempt that fails before any text; `usage` is what the provider bills all the same."""
    return Scripted(error=error, spent=tokens(usage))


def drops(shown: str, *, usage: tuple[int, int] | None = None) -> Scripted:
    """An attempt that shows some text and then loses the connection."""
    error = ProviderError("the connection broke", code="stream_broken", retryable=True)
    return Scripted(deltas=(shown,), error=error, spent=tokens(usage))


def held(scripted: Scripted, *, after: int = 0) -> tuple[Scripted, Hold]:
    """Make an answer wait for the test once it has shown `after` of its deltas."""
    hold = Hold(after)
    return replace(scripted, hold=hold), hold


def tokens(usage: tuple[int, int] | None) -> Usage | None:
    """Input and output tokens as a `Usage`."""
    return None if usage is None else Usage(input_tokens=usage[0], output_tokens=usage[1])


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that the model got."""

    request: ModelRequest

    @property
    def lines(self) -> list[str]:
        """Its messages, see `lines_of`."""
        return lines_of(self.request.messages)

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were offered."""
        return [tool.name for tool in self.request.tools]

    def result_of(self, wire_id: str) -> ToolResult:
        """The result of a call, by the id that the script gave it."""
        found = [each.result for each in recorded_calls(self.request.messages) if each.wire_id == wire_id]
        assert found, f"the request holds no call {wire_id}"
        assert found[0] is not None, f"the call {wire_id} has no result"
        return found[0]


class ScriptedModel:
    """A `ModelProvider` that answers what the test has written down, in that order.

    A request that no provider would take, or that nobody has scripted, fails: it is refused, and kept in `violations`,
    which a test's end looks at.
    """

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.requests: list[SeenRequest] = []
        self.violations: list[str] = []
        self.improvise: Callable[[ModelRequest], Scripted | None] = lambda _: None
        """Answers what nobody has scripted; None: nobody has."""
        self._script: list[Scripted] = []

    @property
    def last_request(self) -> SeenRequest:
        """The newest request."""
        return self.requests[-1]

    @property
    def unused(self) -> int:
        """How many scripted answers nobody has asked for."""
        return len(self._script)

    def answers(self, *scripted: Scripted, to: str | None = None) -> None:
        """Add to the script; `to` binds the answers to requests whose last words of a person are these."""
        self._script.extend(replace(each, to=to) for each in scripted)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Answer from the script.

        Raises:
            ProviderError: The script says so, or the request is not sendable (`HistoryRejectedError`).
        """
        self.requests.append(SeenRequest(request))
        scripted = self._take(request)
        for index, delta in enumerate(scripted.deltas):
            if scripted.hold and scripted.hold.after == index:
                await scripted.hold.wait()
            yield TextDelta(delta)
        if scripted.hold and scripted.hold.after == len(scripted.deltas):
            await scripted.hold.wait()
        if scripted.spent is not None:
            yield UsageSoFar(scripted.spent)
        if scripted.hold and scripted.hold.after > len(scripted.deltas):
            await scripted.hold.wait()
        if scripted.error is not None:
            raise scripted.error
        if scripted.answer is not None:
            yield scripted.answer

    async def check(self, model: str) -> str:
        """It always works."""
        return f"{self.name}/{model} answers from a script"

    def _take(self, request: ModelRequest) -> Scripted:
        faults = faults_of(request.messages, sendable=True)
        last = next((m.text for m in reversed(request.messages) if isinstance(m, UserMessage) and m.text), "")
        index = next((i for i, each in enumerate(self._script) if each.to in (None, last)), None)
        improvised = self.improvise(request) if index is None else None
        if index is None and improvised is None:
            faults.append(f"nobody has scripted an answer to {lines_of(request.messages)}")
        if faults:
            self.violations += faults
            raise HistoryRejectedError("; ".join(faults), code="history_rejected", status=400)
        return improvised or self._script.pop(index or 0)


def faults_of(messages: Sequence[Message], *, sendable: bool) -> list[str]:
    """What makes a history invalid, in words; empty when it is valid.

    Args:
        messages: Oldest first. That each result has its call, next to it, their types see to.
        sendable: Whether it goes to a provider, so that no call at all may be open.
    """
    faults = []
    ids = [each.wire_id for each in recorded_calls(messages)]
    if len(ids) != len(set(ids)):
        faults.append(f"call ids repeat: {ids}")
    if messages and not isinstance(messages[0], UserMessage):
        faults.append("the first message is not a person's")
    if sendable and not messages:
        faults.append("there is no message")
    for index, message in enumerate(messages):
        if not isinstance(message, AssistantMessage):
            continue
        if message.says_nothing:
            faults.append(f"message {index} says nothing")
        if message.open_calls and (sendable or index < len(messages) - 1):
            faults.append(f"message {index} has calls without a result: {[c.wire_id for c in message.open_calls]}")
    return faults


def recorded_calls(messages: Sequence[Message]) -> list[RecordedCall]:
    """All calls in a history, in order."""
    return [each for m in messages if isinstance(m, AssistantMessage) for each in m.calls]


def lines_of(messages: Sequence[Message]) -> list[str]:
    """A history in short: `U:hi`, `A:text[c1 c2]`, `R c1=result`, `R c2!DENIED`; an open call has none."""
    lines = []
    for message in messages:
        if isinstance(message, UserMessage):
            lines.append(f"U:{message.text}")
            continue
        ids = " ".join(each.wire_id for each in message.calls)
        lines.append(f"A:{message.text}" + (f"[{ids}]" if ids else ""))
        lines += [_result_line(each.wire_id, each.result) for each in message.calls if each.result is not None]
    return lines


def _result_line(wire_id: str, result: ToolResult) -> str:
    return f"R {wire_id}={result.text}" if result.ok else f"R {wire_id}!{result.code}"
