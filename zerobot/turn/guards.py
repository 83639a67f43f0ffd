"""Guards at work: rulings on whole texts, and the text of an answer on its way to people (turn-engine spec A60-A69)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from zerobot.core.events import ToolProgress, ToolStarted, TurnEvent
from zerobot.core.guards import (
    Allow,
    BlockText,
    CanBeAway,
    Flag,
    Guards,
    OutputStream,
    Passage,
    Post,
    Rewrite,
    Ruling,
    TextBlockedError,
    Verdict,
)
from zerobot.core.log import EventLog
from zerobot.security.quoted_receipts import Genuine, ReceiptStream
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.check import expect
from zerobot.turn.kit import Emit

GUARD_FAILED = "guard_failed"
GUARD_MISSING = "guard_missing"


async def judge_input(guards: Guards, passage: Passage, log: EventLog) -> Ruling:
    """Rule on what a person wrote, before it is accepted. Without a guard that is required nothing is."""
    missing = missing_guard(guards)
    if missing:
        block = BlockText(notices.UNGUARDED, GUARD_MISSING)
        log("guard.missing", level="error", guard=missing)
        return Ruling(verdict=block, guard=missing, text=block.text)
    return await judge(guards.input, passage, log, guards.on_ruling)


def missing_guard(guards: Guards) -> str:
    """The name of a guard of inputs that is required and not there, or away; empty: none is."""
    there = {post.guard.name for post in guards.input if not isinstance(post.guard, CanBeAway) or post.guard.active}
    return min(guards.required - there, default="")


async def judge(
    posts: Sequence[Post], passage: Passage, log: EventLog, on_ruling: Callable[[Ruling], None] | None = None
) -> Ruling:
    """Rule on a text: first those who may rewrite it, each after the other, then all judges at once on what is left.

    The worst verdict wins (block, flag, allow). A guard that fails blocks when it is required; else it counts for
    nothing.

    Returns:
        The ruling; the verdict of a text that was rewritten is `Rewrite`, whatever else was said short of a block.
    """
    ruling = await _ruling(posts, passage, log)
    if ruling.guard:
        said = type(ruling.verdict).__name__
        log("guard.ruled", guard=ruling.guard, verdict=said, flags=len(ruling.flags), place=str(passage.place))
    if on_ruling is not None:
        try:
            on_ruling(ruling)
        except Exception as error:  # noqa: BLE001 - a listener may raise anything; the ruling stands
            log("listener.failed", level="error", error=error, turn_event="Ruling")
    return ruling


async def _ruling(posts: Sequence[Post], passage: Passage, log: EventLog) -> Ruling:
    verdict: Verdict = Allow()
    by = ""
    flags: list[tuple[str, str]] = []
    for post in posts:
        if post.judges:
            continue
        said = await _inspect(post, passage, log)
        if isinstance(said, BlockText):
            return Ruling(verdict=said, guard=post.guard.name, text=said.text, flags=tuple(flags))
        if isinstance(said, Rewrite):
            verdict, by = said, post.guard.name
            passage = replace(passage, text=said.text)
        elif isinstance(said, Flag):
            flags.append((post.guard.name, said.code))
    judges = [post for post in posts if post.judges]
    for post, said in zip(judges, await _side_by_side(judges, passage, log), strict=True):
        if isinstance(said, BlockText):
            return Ruling(verdict=said, guard=post.guard.name, text=said.text, flags=tuple(flags))
        if isinstance(said, Flag | Rewrite):
            flags.append((post.guard.name, said.code if isinstance(said, Flag) else "rewrite"))
    if isinstance(verdict, Allow) and flags:
        verdict, by = Flag(flags[0][1]), flags[0][0]
    return Ruling(verdict=verdict, guard=by, text=passage.text, flags=tuple(flags))


async def _side_by_side(judges: Sequence[Post], passage: Passage, log: EventLog) -> list[Verdict]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_inspect(post, passage, log), name=f"guard {post.guard.name}") for post in judges]
    return [task.result() for task in tasks]


async def _inspect(post: Post, passage: Passage, log: EventLog) -> Verdict:
    """One guard's verdict. It fails when it raises, is too slow, or answers something that is no verdict."""
    try:
        async with asyncio.timeout(post.time_limit):
            said = await post.guard.inspect(passage)
        return expect(said, Allow, Flag, Rewrite, BlockText)
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; whether it blocks is its post's business
        log("guard.failed", level="error", error=error, guard=post.guard.name, required=post.required)
        return BlockText(notices.GUARD_BROKE, GUARD_FAILED) if post.required else Allow()


class Stage:
    """A stream guard at work on one answer.

    Args:
        name: The guard's.
        stream: What it has begun.
        log: Hears of its failures.
        required: Whether the answer is blocked when it fails; else the text passes it by from then on.
    """

    def __init__(self, name: str, stream: OutputStream, log: EventLog, *, required: bool) -> None:
        self._name = name
        self._stream: OutputStream | None = stream
        self._log = log
        self._required = required

    def feed(self, text: str) -> str:
        """Let the guard see a piece; returns what comes out of it.

        Raises:
            TextBlockedError: The guard blocks the answer, or has failed and is required.
        """
        stream = self._stream
        if stream is None or not text:
            return text
        return self._guarded(lambda: stream.feed(text), text)

    def finish(self, text: str, *, cut: bool) -> str:
        """Let the guard see the last piece and give out what it holds.

        Raises:
            TextBlockedError: See `feed`.
        """
        shown = self.feed(text)
        stream = self._stream
        return shown if stream is None else shown + self._guarded(lambda: stream.finish(cut=cut), "")

    def _guarded(self, work: Callable[[], str], instead: str) -> str:
        try:
            return expect(work(), str)
        except TextBlockedError:
            raise
        except Exception as error:
            # A plug-in may raise anything; whether it blocks is its post's business.
            self._log("guard.failed", level="error", error=error, guard=self._name, required=self._required)
            if self._required:
                raise TextBlockedError(self._name, BlockText(notices.GUARD_BROKE, GUARD_FAILED)) from error
            self._stream = None
            return instead


Judge = Callable[[str], Awaitable[Ruling]]


class ReplyText:
    """The text of one answer on its way from a model to people.

    Args:
        stages: Each sees what the one before lets through.
        judge: Rules on the whole; nothing is shown before. None: text is shown as it comes.
    """

    def __init__(self, stages: Sequence[Stage] = (), judge: Judge | None = None) -> None:
        self._stages = stages
        self._judge = judge
        self._held: list[str] = []
        self._blocked = False

    def feed(self, delta: str) -> str:
        """Take a piece in; returns what may be shown now.

        Raises:
            TextBlockedError: A guard has blocked the answer.
        """
        text = delta
        try:
            for stage in self._stages:
                text = stage.feed(text)
        except TextBlockedError:
            self._blocked = True
            raise
        return self._kept(text)

    async def finish(self, *, cut: bool) -> Sequence[str]:
        """The answer is complete; returns what is still to be shown, in pieces.

        Args:
            cut: Whether it broke off at the model's length limit.

        Raises:
            TextBlockedError: A guard has blocked the answer.
        """
        rest = self._kept(self._rest(cut=cut))
        if self._judge is None:
            return [rest] if rest else []
        whole = "".join(self._held)
        if not whole.strip():
            return self._held
        ruling = await self._judge(whole)
        if isinstance(ruling.verdict, BlockText):
            raise TextBlockedError(ruling.guard, ruling.verdict)
        return self._held if ruling.text == whole else [ruling.text]

    def break_off(self) -> str:
        """The answer breaks off; returns what may still be shown: nothing if it is blocked, or held."""
        if self._blocked or self._judge is not None:
            return ""
        try:
            return self._rest(cut=True)
        except TextBlockedError:
            return ""

    def _rest(self, *, cut: bool) -> str:
        text = ""
        for stage in self._stages:
            text = stage.finish(text, cut=cut)
        return text

    def _kept(self, text: str) -> str:
        if self._judge is None:
            return text
        if text:
            self._held.append(text)
        return ""


class Answers:
    """Guards the answers of one turn."""

    def __init__(self, guards: Guards, turn: Turn, genuine: Genuine, log: EventLog) -> None:
        self._guards = guards
        self._turn = turn
        self._genuine = genuine
        self._unverified: set[str] = set()
        self._log = log

    def begin(self) -> ReplyText:
        """A model begins an answer.

        Raises:
            TextBlockedError: A guard that is required does not begin.
        """
        return ReplyText([self._receipts(), *self._stages()], self._judge if self._guards.output else None)

    def line(self, text: str) -> str:
        """A line about what goes on, which shows what a model has written: a command, a file's name."""
        try:
            for stage in self._stages():
                text = stage.finish(text, cut=False)
        except TextBlockedError:
            return ""
        return text

    def _receipts(self) -> Stage:
        return Stage("receipts", ReceiptStream(self._is_genuine), self._log, required=True)

    def _is_genuine(self, receipt: str) -> bool:
        if self._genuine(receipt):
            return True
        if receipt not in self._unverified:
            self._unverified.add(receipt)
            self._log("receipt.unverified", level="warning")
        return False

    def _stages(self) -> list[Stage]:
        stages = []
        for post in self._guards.streams:
            try:
                stream = post.guard.begin()
            except Exception as error:
                name = post.guard.name
                self._log("guard.failed", level="error", error=error, guard=name, required=post.required)
                if post.required:
                    raise TextBlockedError(name, BlockText(notices.GUARD_BROKE, GUARD_FAILED)) from error
                continue
            stages.append(Stage(post.guard.name, stream, self._log, required=post.required))
        return stages

    async def _judge(self, text: str) -> Ruling:
        passage = Passage(text=text, place=self._turn.place, turn=self._turn.id)
        return await judge(self._guards.output, passage, self._log, self._guards.on_ruling)


def guarded_lines(emit: Emit, answers: Answers) -> Emit:
    """Guard what events tell beside the text: the words about a tool are a model's, too."""

    def guarded(event: TurnEvent) -> None:
        if isinstance(event, ToolStarted):
            event = replace(event, description=answers.line(event.description))
        elif isinstance(event, ToolProgress):
            event = replace(event, text=answers.line(event.text))
        emit(event)

    return guarded
