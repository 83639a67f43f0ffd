"""Asking the model for one step: attempts, waiting, failover, and what each of them cost."""

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from zerobot.core.clock import Clock
from zerobot.core.errors import ProviderError
from zerobot.core.events import StatusChanged, TextReset, TextShown
from zerobot.core.log import EventLog
from zerobot.core.model import Finish, ModelAnswer, ModelEvent, ModelRequest, TextDelta, UsageSoFar
from zerobot.core.usage import Usage
from zerobot.store.turn_rows import AttemptUsage
from zerobot.turn import notices
from zerobot.turn.guards import ReplyText
from zerobot.turn.kit import Emit, ModelChoice, ModelRoute

FIRST_WAIT = 0.5
LONGEST_WAIT = 32.0
JITTER = 0.25
"""Waits double from the first to the longest; up to a quarter is added, so that many turns do not come back at once."""

BROKEN_OFF = frozenset({Finish.LENGTH, Finish.PAUSE, Finish.FILTER})
"""Ends of an answer that is not complete: its last word may be a part of one."""

LONGEST_ANSWER = 100_000
"""Characters of one answer, some 25 messages of a chat. A model that writes on is cut off as at its own limit."""
Mend = Callable[[ModelRequest, ProviderError], ModelRequest | None]
"""What to send instead of a request that was refused; None: nothing can be done about it."""


class Asking:
    """One step's conversation with the models. It outlives a stop: what was shown and spent is known then too."""

    def __init__(
        self, emit: Emit, clock: Clock, log: EventLog, purpose: str, begin: Callable[[], ReplyText] = ReplyText
    ) -> None:
        self._emit = emit
        self._clock = clock
        self._log = log
        self._purpose = purpose
        self._begin = begin
        self.attempts: list[AttemptUsage] = []
        self._pieces: list[str] = []
        """Of `shown`: a text that grows by a character at a time would be copied each time."""
        self._void = False
        """Whether `shown` comes from an attempt that failed: the next one's first text replaces it."""
        self._failures = 0
        self._told = False
        """Whether people read that it takes longer."""
        self._waited = 0.0

    @property
    def shown(self) -> str:
        """The visible text of the current attempt, as it was emitted: what the guards let through."""
        return "".join(self._pieces)

    async def answer(self, request: ModelRequest, route: ModelRoute, mend: Mend) -> ModelAnswer:
        """Try the models of the route until one gives a whole answer.

        A model is tried again where the failure is passing, or where the request can be mended; when it has no tries or
        no time left, or the failure is final, the next one is asked. Text of a failed attempt is taken back before
        other text is shown.

        Args:
            request: Sendable; its model is the route's.
            route: The models.
            mend: What to send instead of a request that was refused.

        Raises:
            ProviderError: None answered; it is the last failure.
            TextBlockedError: A guard has blocked what was to be shown.
        """
        failure = ProviderError("no model is configured", code="no_model")
        for choice in route.choices:
            attempt = 0
            while True:
                attempt += 1
                try:
                    limit = request.max_output_tokens or choice.max_output
                    return await self._attempt(replace(request, model=choice.model, max_output_tokens=limit), choice)
                except ProviderError as error:
                    failure = error
                mended = mend(request, failure)
                wait = self._wait(failure, attempt, choice) if mended is None else 0.0
                last = wait is None and choice is route.choices[-1]
                self._report(failure, choice, attempt, wait, last=last)
                if wait is None:
                    break
                if mended is not None:
                    request, attempt = mended, 0
                    continue
                self._waited += wait
                await self._clock.sleep(wait)
        raise failure

    async def _attempt(self, request: ModelRequest, choice: ModelChoice) -> ModelAnswer:
        usage: Usage | None = None
        answer: ModelAnswer | None = None
        reply, said = self._begin(), ""
        try:
            stream = cast("AsyncGenerator[ModelEvent, None]", choice.provider.stream(request))
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        said += event.text
                        self._show(reply.feed(event.text))
                        if len(said) > LONGEST_ANSWER:
                            answer = ModelAnswer(text=said, finish=Finish.LENGTH, usage=usage)
                            break
                    elif isinstance(event, UsageSoFar):
                        usage = event.usage
                    elif isinstance(event, ModelAnswer):
                        usage = event.usage or usage
                        answer = _checked(event)
            if answer is None:
                raise ProviderError("the stream ended without an answer", code="stream_broken", retryable=True)
        finally:
            # Also when the turn is stopped: what an attempt cost is counted, once.
            failed = answer is None
            if failed:
                self._show(reply.break_off())
                self._void = bool(self._pieces)
            self.attempts.append(AttemptUsage(model=str(choice), purpose=self._purpose, failed=failed, usage=usage))
        return await self._complete(answer, said, reply)

    async def _complete(self, answer: ModelAnswer, said: str, reply: ReplyText) -> ModelAnswer:
        """Bring what is shown to the whole answer, as the guards let it through."""
        if answer.text != said:
            # The text came late, or is another one than what has streamed.
            self._void = bool(self._pieces)
            reply = self._begin()
            self._show(reply.feed(answer.text))
        for text in await reply.finish(cut=answer.finish in BROKEN_OFF):
            self._show(text)
        if self._void:
            self._take_back()
        self._answered()
        return replace(answer, text=self.shown)

    def _answered(self) -> None:
        """The model speaks: nobody need read any more that it takes longer."""
        if self._told:
            self._told = False
            self._emit(StatusChanged(""))

    def _show(self, text: str) -> None:
        if not text:
            return
        self._answered()
        if self._void:
            self._take_back()
        self._pieces.append(text)
        self._emit(TextShown(text))

    def take_back(self) -> None:
        """Take back what is shown, if anything is: nothing of the step is to stay."""
        if self._pieces:
            self._take_back()

    def _take_back(self) -> None:
        self._void = False
        self._pieces.clear()
        self._emit(TextReset())

    def _wait(self, error: ProviderError, attempt: int, choice: ModelChoice) -> float | None:
        """Seconds until the next try of the same model; None when there is none."""
        if not error.retryable or attempt > choice.max_retries:
            return None
        wait = error.retry_after or 0.0
        if wait <= 0:
            wait = min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT)
            wait *= 1 + random.uniform(0, JITTER)  # noqa: S311 - no secret
        return wait if self._waited + wait <= choice.retry_cap else None

    def _report(
        self, error: ProviderError, choice: ModelChoice, attempt: int, wait: float | None, *, last: bool
    ) -> None:
        self._failures += 1
        fields = {
            "model": str(choice),
            "attempt": attempt,
            "status": error.status,
            "code": error.code,
            "retry_in": wait,
        }
        self._log("model.failed", level="warning", error=error, **fields)
        if not last and self._failures > 1:
            self._told = True
            self._emit(StatusChanged(notices.STILL_TRYING))


def _checked(answer: ModelAnswer) -> ModelAnswer:
    says_nothing = not (answer.text.strip() or answer.calls)
    if says_nothing and answer.finish not in (Finish.FILTER, Finish.PAUSE):
        raise ProviderError("the model answered with nothing", code="empty_answer", retryable=True)
    return answer
