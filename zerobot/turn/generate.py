"""Asking the model for one step: attempts, waiting, failover, and what each of them cost."""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import cast

from zerobot.core.clock import Clock
from zerobot.core.errors import ProviderError, ZerobotError
from zerobot.core.events import StatusChanged, TextReset, TextShown
from zerobot.core.log import EventLog
from zerobot.core.model import Finish, ModelAnswer, ModelEvent, ModelRequest, TextDelta, UsageSoFar
from zerobot.core.usage import NO_USAGE, Usage
from zerobot.store.turn_rows import AttemptUsage
from zerobot.turn import notices
from zerobot.turn.estimate import tokens_of
from zerobot.turn.guards import ReplyText
from zerobot.turn.kit import Emit, ModelChoice, ModelRoute
from zerobot.turn.purse import Account, BudgetError, Reservation

FIRST_WAIT = 0.5
LONGEST_WAIT = 32.0
JITTER = 0.25
"""Waits double from the first to the longest; up to a quarter is added, so that many turns do not come back at once."""

BROKEN_OFF = frozenset({Finish.LENGTH, Finish.PAUSE, Finish.FILTER})
"""Ends of an answer that is not complete: its last word may be a part of one."""

UNBILLED = frozenset({400, 401, 402, 403, 404, 409, 413, 422, 429, 503, 529})
"""HTTP statuses by which a provider says that it did not begin to answer, so that there is nothing to pay for."""
UNSENT = frozenset({"connect_failed", "bad_url"})
"""Codes of errors before a provider has read anything."""

LONGEST_ANSWER = 100_000
"""Characters of one answer, some 25 messages of a chat. A model that writes on is cut off as at its own limit."""
Mend = Callable[[ModelRequest, ProviderError], ModelRequest | None]
"""What to send instead of a request that was refused; None: nothing can be done about it."""


@dataclass(slots=True)
class _Heard:
    """What has come of one attempt."""

    reply: ReplyText
    nothing: bool = True
    """Not even a sign that the model works."""
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    """Characters of all pieces."""
    usage: Usage | None = None
    answer: ModelAnswer | None = None

    @property
    def said(self) -> str:
        """All the text that has come, whatever of it was shown."""
        return "".join(self.pieces)

    def hear(self, text: str) -> None:
        """A piece of text has come."""
        self.pieces.append(text)
        self.length += len(text)

    @property
    def whole(self) -> ModelAnswer:
        """The answer, once it is there."""
        assert self.answer is not None, "an attempt without an answer raises"
        return self.answer

    def attempt(self, model: str, purpose: str, kept: Reservation) -> AttemptUsage:
        """What is recorded of it."""
        usage, failed = self.usage, self.answer is None
        if usage is not None and (failed or self.length > LONGEST_ANSWER):
            # It broke off, and a running total may lag behind what has come.
            usage = replace(usage, output_tokens=max(usage.output_tokens, tokens_of(self.said)))
        return AttemptUsage(model=model, purpose=purpose, failed=failed, usage=usage, reservation=kept.id)


class Asking:
    """One step's conversation with the models. It outlives a stop: what was shown and spent is known then too."""

    def __init__(
        self, emit: Emit, clock: Clock, log: EventLog, account: Account, begin: Callable[[], ReplyText] = ReplyText
    ) -> None:
        self._emit = emit
        self._clock = clock
        self._log = log
        self._account = account
        self._begin = begin
        self.attempts: list[AttemptUsage] = []
        self._pieces: list[str] = []
        """Of `shown`: a text that grows by a character at a time would be copied each time."""
        self.short = False
        """Whether a spending limit has left less room for the current attempt's answer than there could have been."""
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
        no time left, or the failure is final, or a spending limit stands in its way, the next one is asked: it may be
        cheaper. Text of a failed attempt is taken back before other text is shown.

        Args:
            request: Sendable; its model is the route's.
            route: The models.
            mend: What to send instead of a request that was refused.

        Raises:
            ProviderError: None answered; it is the last failure.
            BudgetError: The same, the last one not being asked because of a spending limit.
            StorageError: The store refused to say whether the call can be paid.
            TextBlockedError: A guard has blocked what was to be shown.
        """
        failed: ZerobotError = ProviderError("no model is configured", code="no_model")
        for choice in route.choices:
            attempt = 0
            while True:
                attempt += 1
                try:
                    limit = request.max_output_tokens or choice.max_output
                    return await self._attempt(replace(request, model=choice.model, max_output_tokens=limit), choice)
                except BudgetError as error:
                    # Of several it is the first: that of the model which was meant to answer.
                    failed = failed if isinstance(failed, BudgetError) else error
                    break
                except ProviderError as error:
                    failed = failure = error
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
        raise failed

    async def _attempt(self, request: ModelRequest, choice: ModelChoice) -> ModelAnswer:
        account, model, heard = self._account, str(choice), _Heard(self._begin())
        kept = await account.purse.reserve(account.payer, account.purpose, model, request)
        self.short = kept.short
        request = replace(request, max_output_tokens=kept.max_output or request.max_output_tokens)
        try:
            await self._hear(choice.provider.stream(request), heard)
        except ProviderError as error:
            if heard.nothing and _is_unbilled(error):
                heard.usage = NO_USAGE
            raise
        finally:
            # Also when the turn is stopped: what an attempt cost is counted, once.
            if heard.answer is None:
                self._show(heard.reply.break_off())
                self._void = bool(self._pieces)
            attempt = heard.attempt(model, account.purpose, kept)
            self.attempts.append(attempt)
            account.purse.ended(kept, model, attempt.usage)
        return await self._complete(heard.whole, heard.said, heard.reply)

    async def _hear(self, stream: AsyncIterator[ModelEvent], heard: "_Heard") -> None:
        async with aclosing(cast("AsyncGenerator[ModelEvent, None]", stream)) as events:
            async for event in events:
                heard.nothing = False
                if isinstance(event, TextDelta):
                    heard.hear(event.text)
                    self._show(heard.reply.feed(event.text))
                    if heard.length > LONGEST_ANSWER:
                        heard.answer = ModelAnswer(text=heard.said, finish=Finish.LENGTH, usage=heard.usage)
                        break
                elif isinstance(event, UsageSoFar):
                    heard.usage = event.usage
                elif isinstance(event, ModelAnswer):
                    heard.usage = event.usage or heard.usage
                    heard.answer = _checked(event)
        if heard.answer is None:
            raise ProviderError("the stream ended without an answer", code="stream_broken", retryable=True)

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


def _is_unbilled(error: ProviderError) -> bool:
    """Whether nothing is to be paid for an attempt that failed without a word; some bill a prompt that they filter."""
    return error.code in UNSENT or (error.status in UNBILLED and error.code != "filtered")


def _checked(answer: ModelAnswer) -> ModelAnswer:
    says_nothing = not (answer.text.strip() or answer.calls)
    if says_nothing and answer.finish not in (Finish.FILTER, Finish.PAUSE):
        raise ProviderError("the model answered with nothing", code="empty_answer", retryable=True)
    return answer
