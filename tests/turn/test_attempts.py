"""Attempts, waiting and errors of one step (spec K9, K10, A42, A50, A51)."""

from dataclasses import replace

import pytest

from zerobot.core.errors import ProviderError, RateLimitError
from zerobot.core.events import Final, Outcome, StatusChanged, StopReason, TextReset, TextShown, TurnEvent
from zerobot.core.messages import ResultCode
from zerobot.core.usage import Usage
from zerobot.testing.house import House
from zerobot.testing.model import Scripted, call, calls, drops, fails, held, says, step
from zerobot.turn import notices


def overloaded() -> Scripted:
    """The provider is busy."""
    return fails(ProviderError("model.internal.example: busy, key sk-1", code="overloaded", status=529, retryable=True))


async def waits_of(house: House) -> list[float]:
    """Let the house work to its end, and tell how long it slept each time."""
    waits = []
    await house.settles()
    while (due := house.clock.next_due()) is not None:
        waits.append(due - house.clock.monotonic())
        await house.clock.advance(waits[-1])
    await house.idle()
    return waits


async def test_text_of_a_lost_attempt_is_taken_back(house: House) -> None:
    """T34: after a lost connection the draft is rewritten, never appended to, and the answer stands once."""
    house.model.answers(drops("Hel"), says("Hello", usage=(3, 2)))
    await house.user.writes("hi")
    await waits_of(house)
    assert house.seen(TextShown, TextReset) == [TextShown("Hel"), TextReset(), TextShown("Hello")]
    failed = [fields for event, fields in house.log if event == "model.failed"]
    assert [(each["attempt"], each["code"], each["retry_in"] is not None) for each in failed] == [
        (1, "stream_broken", True)
    ]
    assert await house.history() == ["U:hi", "A:Hello"]
    assert await house.replies() == ["Hello"]


async def test_text_before_a_call_only_answer_is_taken_back_too(house: House) -> None:
    """K8: what is shown equals the answer that counts, also when that one has no text."""
    # Seen to fail with: no reset before the next attempt's text (K8).
    house.model.answers(drops("Hel"), calls("echo", id="c1", text="a"), says("ok"))
    await house.user.writes("hi")
    await waits_of(house)
    assert house.seen(TextShown, TextReset) == [TextShown("Hel"), TextReset(), TextShown("ok")]


async def test_the_server_says_how_long_to_wait(house: House) -> None:
    """T35: a limit with its time is waited out exactly, then tried again."""
    # Seen to fail with: Retry-After passed over (K9).
    limit = RateLimitError("slow down", code="rate_limited", status=429, retryable=True, retry_after=2.0)
    house.model.answers(fails(limit), says("ok"))
    await house.user.writes("hi")
    assert await waits_of(house) == [2.0]
    assert house.finals[0].text == "ok"


@pytest.mark.parametrize(
    "error",
    [
        RateLimitError("no money", code="quota", status=429, retry_after=2.0),
        ProviderError("bad request", code="bad_request", status=400),
    ],
)
async def test_a_lasting_error_is_tried_once(house: House, error: ProviderError) -> None:
    """T35: what the same request cannot mend ends the turn at once, with the provider's code; the next turn works."""
    # Seen to fail with: the error left out of the final (A41), its internals in the chat (A42).
    house.model.answers(fails(error), says("ok"))
    await house.user.says("hi")
    final = house.finals[0]
    assert (final.reason, final.outcome, len(house.model.requests)) == (StopReason.ERROR, Outcome.FAILED, 1)
    assert final.error is not None
    assert final.error.code == error.code
    assert final.text == notices.failure(error.user_text, final.turn)
    await house.user.says("again")
    assert house.finals[1].text == "ok"


async def test_a_passing_error_is_tried_again_with_growing_waits(house: House) -> None:
    """T35: three attempts, the second wait longer than the first; from the second failure on people are told."""
    house.model.answers(overloaded(), overloaded(), overloaded(), says("ok"))
    await house.user.writes("hi")
    first, second = await waits_of(house)
    assert 0.5 <= first <= 0.625
    assert 1.0 <= second <= 1.25
    assert house.seen(StatusChanged) == [StatusChanged(notices.STILL_TRYING)]
    assert house.finals[0].error is not None
    assert house.finals[0].error.code == "overloaded"
    await house.user.says("again")
    assert house.finals[1].reason is StopReason.DONE


async def test_a_server_that_says_zero_seconds_is_not_hammered(house: House) -> None:
    """K9: only a positive time of the server replaces the engine's own."""
    error = ProviderError("busy", code="overloaded", status=503, retryable=True, retry_after=0.0)
    house.model.answers(fails(error), says("ok"))
    await house.user.writes("hi")
    assert [wait >= 0.5 for wait in await waits_of(house)] == [True]


async def test_nobody_watches_silence_for_minutes(house: House) -> None:
    """K9: all waiting of one step together has a limit; what would go beyond it is given up."""
    # Seen to fail with: waits without a cap (K9).
    limit = RateLimitError("slow down", code="rate_limited", status=429, retryable=True, retry_after=30.0)
    house.model.answers(fails(limit), fails(limit))
    await house.user.writes("hi")
    assert await waits_of(house) == [30.0]
    assert house.finals[0].reason is StopReason.ERROR


async def test_an_error_after_rounds_keeps_them(house: House) -> None:
    """T88, A16, A41-A43: the final has the provider's code, the usage and the calls; the chat gets no internals."""
    house.settings.max_retries = 0
    house.model.answers(step("Look.", [call("echo", "c1", text="a")], usage=(4, 1)), overloaded(), says("ok"))
    await house.user.says("hi")
    final = house.finals[0]
    assert (final.reason, final.steps, final.usage) == (StopReason.ERROR, 2, Usage(input_tokens=4, output_tokens=1))
    assert [each.code for each in final.calls] == [ResultCode.OK]
    assert final.error is not None
    assert final.error.code == "overloaded"
    assert final.text == f"Look.\n\n{notices.failure(ProviderError.user_text, final.turn)}"
    assert not any(word in final.text for word in ("internal", "sk-", "Traceback"))
    await house.user.says("again")
    assert house.model.last_request.lines == ["U:hi", "A:Look.[c1]", "R c1=a", "U:again"]


async def test_a_billed_failure_counts_once(house: House) -> None:
    """A50, A51: a failed attempt's last running total is in the sum, and listed as failed, whatever comes after."""
    # Seen to fail with: failed attempts without their usage (A50), running totals added up (A51), failed attempts left
    # out of the final, or counted as good ones (A41, A50).
    house.model.answers(drops("He", usage=(12, 4)), says("Hello", usage=(10, 3)))
    await house.user.writes("hi")
    await waits_of(house)
    final = house.finals[0]
    assert (final.usage, final.failed_usage) == (
        Usage(input_tokens=22, output_tokens=7),
        Usage(input_tokens=12, output_tokens=4),
    )


async def test_running_totals_are_not_added(house: House) -> None:
    """A51: of several reports in one attempt only the last one counts."""
    house.model.answers(replace(says("ok", usage=(10, 3)), spent=Usage(input_tokens=10, output_tokens=1)))
    await house.user.says("hi")
    assert house.finals[0].usage == Usage(input_tokens=10, output_tokens=3)


async def test_a_failed_turn_still_costs(house: House) -> None:
    """A42, A50: the usage of attempts before the failure is in the final and in the store."""
    house.settings.max_retries = 0
    house.model.answers(drops("", usage=(12, 4)))
    await house.user.says("hi")
    assert house.finals[0].usage == Usage(input_tokens=12, output_tokens=4)
    row = await house.engine.database.read(
        lambda db: tuple(db.execute("SELECT failed, input_tokens, output_tokens FROM model_calls").fetchone())
    )
    assert row == (1, 12, 4)


async def test_an_attempt_that_is_called_off_still_costs(house: House) -> None:
    """T68, A50: what the provider had counted when the user stopped it is in the final and in the store, as failed."""
    # Seen to fail with: the attempt that a stop ended forgotten (A50).
    counted = Usage(input_tokens=12, output_tokens=4)
    answer, hold = held(replace(says("Hello"), spent=counted), after=2)
    house.model.answers(answer)
    await house.user.writes("hi")
    await hold.reached()
    await house.user.stops()
    final = house.finals[0]
    assert (final.reason, final.usage, final.failed_usage) == (StopReason.CANCELLED, counted, counted)
    assert await house.engine.database.read(
        lambda db: [tuple(row) for row in db.execute("SELECT failed, input_tokens, output_tokens FROM model_calls")]
    ) == [(1, 12, 4)]


async def test_a_listener_that_always_fails_changes_nothing(house: House) -> None:
    """T39: whoever watches a turn cannot hurt it: the history is whole, the reply is queued once."""

    def broken(event: TurnEvent) -> None:
        raise RuntimeError(f"cannot show {type(event).__name__}")

    house.settings.listener = broken
    house.model.answers(calls("echo", id="c1", text="a"), says("done"))
    await house.user.says("hi")
    assert await house.history() == ["U:hi", "A:[c1]", "R c1=a", "A:done"]
    assert await house.replies() == ["done"]
    assert house.seen(Final) == [house.finals[0]]


async def test_a_bug_ends_the_turn_with_a_word(house: House) -> None:
    """A40, A42: what nobody foresaw becomes one error final; the chat learns the turn's id and nothing else."""
    house.model.answers(says("ok"))
    house.model._take = None  # type: ignore[assignment,method-assign]
    await house.user.says("hi")
    final = house.finals[0]
    assert final.reason is StopReason.ERROR
    assert final.text == notices.failure(notices.INTERNAL, final.turn)
