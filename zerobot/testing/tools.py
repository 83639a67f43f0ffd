"""Tools for tests of the engine: they count, they wait for the test, they fail on demand."""

import asyncio
import posixpath
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from zerobot.core.ids import CallId
from zerobot.core.tools import (
    EVERYTHING,
    NOTHING,
    Access,
    Accesses,
    BadArgumentsError,
    Effect,
    Execution,
    Mode,
    Risk,
    Tool,
    ToolContext,
    ToolOutput,
)

SECRET = "secret-42"  # noqa: S105 - what `vault` gives away, so that a test can look for it
Arguments = Mapping[str, object]
Work = Callable[[str, Arguments, ToolContext], Awaitable[ToolOutput]]
"""What a double does: its label (`wr a#1`), the arguments, the context."""
Touches = Callable[[Arguments], Accesses]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is special about a double."""

    required: Mapping[str, type] = field(default_factory=dict)
    accesses: Touches = lambda _: NOTHING
    risk: Risk = Risk.LOW
    """LOW runs by itself, MEDIUM is supervised."""
    effects: frozenset[Effect] = frozenset()
    """Empty: it reads when its risk is low, else it writes."""
    stop_batch: bool = False
    repeatable: bool = False
    timeout: float = 600.0
    destination: str = ""


class ToolDouble:
    """A tool that tells its `Toolbox` what happens to it."""

    def __init__(self, box: "Toolbox", name: str, kind: Kind, work: Work) -> None:
        self.name = name
        self.description = f"The tool {name} of the tests."
        self.kind = kind
        self._box = box
        self.work = work

    @property
    def parameters(self) -> Mapping[str, object]:
        """JSON Schema of the arguments."""
        return {"type": "object", "required": sorted(self.kind.required), "additionalProperties": True}

    @property
    def runs(self) -> int:
        """How often it was started."""
        return self._box.runs[self.name]

    def resolve(self, arguments: Arguments) -> Execution:
        """Check what is required.

        Raises:
            BadArgumentsError: Something is missing or of another type.
        """
        for key, wanted in self.kind.required.items():
            if not isinstance(arguments.get(key), wanted):
                raise BadArgumentsError(f"{key} must be of type {wanted.__name__}")
        label = self._label(arguments)
        return Execution(
            run=lambda context: self._box.run(self.name, label, context, self.work(label, arguments, context)),
            description=f"runs {label}",
            effects=self.kind.effects or frozenset({Effect.READ if self.kind.risk is Risk.LOW else Effect.WRITE}),
            risk=self.kind.risk,
            accesses=self.kind.accesses(arguments),
            timeout=self.kind.timeout,
            stop_batch=self.kind.stop_batch,
            repeatable=self.kind.repeatable,
            destination=self.kind.destination,
        )

    def _label(self, arguments: Arguments) -> str:
        number = f"#{arguments['n']}" if "n" in arguments else ""
        values = [str(value) for key, value in arguments.items() if key != "n"]
        return " ".join([self.name, *values]) + number


class Toolbox(Mapping[str, Tool]):
    """The standard tools. A call is named by its tool and its arguments: `echo a`, `wr a#1` (`n` is the number)."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        """Starts by tool."""
        self.started: list[str] = []
        """Labels, in the order of their starts."""
        self.starts: Counter[CallId] = Counter()
        """Starts by call: never more than one each."""
        self.ended: list[str] = []
        """Labels of calls that came to an end of any kind, in that order."""
        self._open = False
        self._changed = asyncio.Condition()
        self._released: set[str] = set()
        self.doubles = {double.name: double for double in self._standard()}

    def __getitem__(self, name: str) -> Tool:
        return self.doubles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.doubles)

    def __len__(self) -> int:
        return len(self.doubles)

    def add(self, name: str, work: Work, kind: Kind | None = None) -> ToolDouble:
        """Add a tool of a test's own."""
        self.doubles[name] = ToolDouble(self, name, kind or Kind(), work)
        return self.doubles[name]

    async def release(self, *labels: str) -> None:
        """Let calls go on that wait for the test, now or when they start; without labels: all there will be."""
        async with self._changed:
            self._released.update(labels)
            self._open = self._open or not labels
            self._changed.notify_all()

    async def has_started(self, *labels: str) -> None:
        """Wait until calls have started."""
        async with self._changed:
            await self._changed.wait_for(lambda: set(labels) <= set(self.started))

    async def run(self, name: str, label: str, context: ToolContext, work: Awaitable[ToolOutput]) -> ToolOutput:
        """Do a call's work, and keep its start and its end."""
        self.runs[name] += 1
        self.starts[context.call] += 1
        await self._note(self.started, label)
        try:
            return await work
        finally:
            self.ended.append(label)

    async def waits(self, label: str) -> None:
        """Wait for the release of a call."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._open or label in self._released)

    async def _note(self, where: list[str], label: str) -> None:
        async with self._changed:
            where.append(label)
            self._changed.notify_all()

    def _standard(self) -> Sequence[ToolDouble]:
        text, path = {"text": str}, {"p": str}
        return [
            ToolDouble(self, "echo", Kind(required=text), _echo),
            ToolDouble(self, "rd", Kind(required=path, accesses=_file(Mode.READ)), self._held("read")),
            ToolDouble(self, "wr", Kind(required=path, accesses=_file(Mode.WRITE)), self._held("wrote")),
            ToolDouble(self, "tree", Kind(required=path, accesses=_file(Mode.READ, tree=True)), self._held("read")),
            ToolDouble(self, "any", Kind(accesses=lambda _: EVERYTHING), self._held("did")),
            ToolDouble(self, "sup", Kind(required={"x": str}, risk=Risk.MEDIUM), _did),
            ToolDouble(
                self, "supw", Kind(required=path, risk=Risk.MEDIUM, accesses=_file(Mode.WRITE)), self._held("wrote")
            ),
            ToolDouble(self, "boom", Kind(), _boom),
            ToolDouble(self, "slow", Kind(), self._held("slept")),
            ToolDouble(self, "deaf", Kind(), self._deaf),
            ToolDouble(self, "stopper", Kind(stop_batch=True), _stopper),
            ToolDouble(self, "num", Kind(required={"value": int}), _did),
            ToolDouble(self, "vault", Kind(), _vault),
            ToolDouble(self, "free", Kind(), _did),
        ]

    def _held(self, verb: str) -> Work:
        async def work(label: str, arguments: Arguments, _: ToolContext) -> ToolOutput:
            await self.waits(label)
            return ToolOutput(text=f"{verb} {arguments.get('p', '')}".strip())

        return work

    async def _deaf(self, label: str, _: Arguments, __: ToolContext) -> ToolOutput:
        waiting = asyncio.ensure_future(self.waits(label))
        while not waiting.done():
            try:
                await asyncio.wait({waiting})
            except asyncio.CancelledError:
                continue
        return ToolOutput(text="heard nothing")


def _file(mode: Mode, *, tree: bool = False) -> Touches:
    def touches(arguments: Arguments) -> Accesses:
        return Accesses(items=(Access(posixpath.normpath("/" + str(arguments["p"]).lstrip("/")), mode, tree),))

    return touches


async def _echo(_: str, arguments: Arguments, __: ToolContext) -> ToolOutput:
    return ToolOutput(text=str(arguments["text"]))


async def _did(_: str, arguments: Arguments, __: ToolContext) -> ToolOutput:
    return ToolOutput(text=" ".join(["did", *(str(value) for value in arguments.values())]))


async def _boom(_: str, __: Arguments, ___: ToolContext) -> ToolOutput:
    raise RuntimeError("kaput")


async def _stopper(_: str, __: Arguments, ___: ToolContext) -> ToolOutput:
    return ToolOutput(text="that is all", stop_turn=True)


async def _vault(_: str, __: Arguments, ___: ToolContext) -> ToolOutput:
    return ToolOutput(text=f"the combination is {SECRET}")
