"""Guards of what the model says: drafts, replies, history and pauses see the same, guarded text (spec A44, A63-A69)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from zerobot.core.errors import ProviderError
from zerobot.core.events import Final, Outcome, StopReason, TextReset, TextShown, ToolStarted
from zerobot.core.guards import (
    Allow,
    BlockText,
    Flag,
    Guards,
    OutputStream,
    Passage,
    Post,
    Rewrite,
    Ruling,
    StreamPost,
    TextBlockedError,
    Verdict,
)
from zerobot.core.messages import AssistantMessage
from zerobot.core.model import Finish
from zerobot.security.leaks import LeakGuard
from zerobot.security.quoted_receipts import UNVERIFIED
from zerobot.security.redact import MASK, Redactor
from zerobot.testing.house import House
from zerobot.testing.model import call, calls, drops, fails, held, says, step
from zerobot.turn import notices
from zerobot.turn.kit import TurnLimits

SECRET = "winter-blue-owl"
LEAKS = Guards(streams=(StreamPost(guard=LeakGuard(Redactor([SECRET]))),))


@dataclass(slots=True)
class Says:
    """A guard of whole texts that always says the same, and keeps what it was shown."""

    verdict: object
    name: str = "checker"
    seen: list[str] = field(default_factory=list)

    async def inspect(self, passage: Passage) -> Verdict:
        """See `TextGuard`."""
        self.seen.append(passage.text)
        if isinstance(self.verdict, Exception):
            raise self.verdict
        if self.verdict == "hangs":
            await asyncio.Event().wait()
        return self.verdict  # type: ignore[return-value]  # some tests want nonsense


@dataclass(slots=True)
class StopsAt:
    """A stream guard that blocks at a word; or, without one, trips."""

    word: str = ""
    name: str = "words"

    def begin(self) -> OutputStream:
        """See `StreamGuard`."""
        return _StopsAt(self.word)


@dataclass(slots=True)
class _StopsAt:
    word: str

    def feed(self, delta: str) -> str:
        """See `OutputStream`."""
        if not self.word:
            raise RuntimeError("a bug")
        if self.word in delta:
            raise TextBlockedError("words", BlockText("Let us talk of something else.", "word"))
        return delta

    def finish(self, *, cut: bool) -> str:
        """See `OutputStream`."""
        return ""


def holding(verdict: object, **options: bool) -> Guards:
    """One guard of whole answers."""
    return Guards(output=(Post(guard=Says(verdict), time_limit=0.01 if verdict == "hangs" else 5.0, **options),))


def shown(house: House) -> list[str]:
    """All that watchers saw of the model's text, deltas and resets."""
    return [event.text if isinstance(event, TextShown) else "RESET" for event in house.seen(TextShown, TextReset)]


async def stored(house: House) -> list[AssistantMessage]:
    """What the model said, as the store has it."""
    return [message for message in (await house.messages()).messages if isinstance(message, AssistantMessage)]


async def agrees(house: House, text: str, stored_text: str | None = None) -> None:
    """The reply, the final and the history say the same."""
    assert await house.replies() == [text]
    assert house.finals[-1].text == text
    assert [each.text for each in await stored(house)] == [text if stored_text is None else stored_text]


# -- secrets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4, 100])
async def test_a_secret_is_in_no_delta_no_reply_and_no_history(house: House, size: int) -> None:
    """R15, A44: it is masked before anybody sees it, and what is stored is what was shown."""
    house.settings.guards = LEAKS
    text = f"The key is {SECRET}, keep it."
    house.model.answers(says(text, deltas=[text[at : at + size] for at in range(0, len(text), size)]))
    await house.user.says("hi")
    assert "".join(shown(house)) == f"The key is {MASK}, keep it."
    await agrees(house, f"The key is {MASK}, keep it.")


async def test_text_that_comes_with_the_answer_only_is_guarded_too(house: House) -> None:
    """Some providers stream nothing, others correct what they streamed."""
    house.settings.guards = LEAKS
    house.model.answers(says(f"It is {SECRET}", deltas=[]), says(f"It is {SECRET}", deltas=["It was"]))
    await house.user.says("hi")
    await house.user.says("again")
    assert shown(house) == [f"It is {MASK}", "It was", "RESET", f"It is {MASK}"]
    assert [each.text for each in await stored(house)] == [f"It is {MASK}"] * 2


@pytest.mark.parametrize("way", ["stop", "failure", "length"])
async def test_an_answer_that_breaks_off_in_a_secret_shows_no_half_of_it(house: House, way: str) -> None:
    """A stop, an error, the length limit: what is held is masked, in the draft and in the history."""
    house.settings.guards = LEAKS
    house.settings.max_retries = 0
    cut = f"It is {SECRET[:-3]}"
    answer, hold = held(says(cut, deltas=[cut]), after=1)
    if way == "stop":
        house.model.answers(answer)
        await house.user.writes("hi")
        await hold.reached()
        await house.user.stops()
    else:
        house.model.answers(drops(cut) if way == "failure" else says(cut, finish=Finish.LENGTH))
        await house.user.says("hi")
    assert "".join(shown(house)) == f"It is {MASK}"
    assert [each.text for each in await stored(house)] == [f"It is {MASK}"]
    assert (await house.replies())[0].startswith(f"It is {MASK}\n\n")


async def test_every_step_and_the_closing_answer_are_guarded(house: House) -> None:
    """A68: text beside calls, after an approval, and the answer to the closing request; a tool's line too."""
    # Seen to fail with: the closing answer or a line about a tool unguarded (A68).
    house.settings.guards = LEAKS
    house.settings.limits = TurnLimits(max_steps=2, tool_grace=0.05)
    house.model.answers(
        step(f"One {SECRET}", [call("sup", "c1", x="1")]),
        step(f"Two {SECRET}", [call("echo", "c2", text=SECRET)]),
        says(f"Three {SECRET}"),
    )
    await house.user.says("hi")
    await house.operator.presses("Approve")
    texts = [each.text for each in await stored(house)]
    assert texts == [f"One {MASK}", f"Two {MASK}", f"Three {MASK}"]
    assert SECRET not in "".join([*shown(house), *await house.replies()])
    assert not [event for event in house.seen(ToolStarted) if SECRET in str(event)]


async def test_a_failed_attempt_is_taken_back_when_guarded_text_follows(house: House) -> None:
    """Held text of the second attempt does not make the first one's stay."""
    house.settings.guards = LEAKS
    house.model.answers(drops("Hello wint"), says("Winter", deltas=["Winter"]))
    await house.user.writes("hi")
    await house.settles()
    await house.clock.advance(10)
    await house.idle()
    assert shown(house) == ["Hello ", MASK, "RESET", "Winter"]
    await agrees(house, "Winter")


# -- hold mode --------------------------------------------------------------------------------------------------------

SAFE = says("safe answer", deltas=["safe ", "answer"])


async def test_a_held_answer_that_is_allowed_is_shown_as_it_came(house: House) -> None:
    """T69 a, A66: nothing before the verdict, then each delta in order, then the final."""
    # Seen to fail with: deltas shown before the verdict (A66).
    house.settings.guards = holding(Allow())
    answer, hold = held(SAFE, after=2)
    house.model.answers(answer)
    await house.user.writes("hi")
    await hold.reached()
    assert shown(house) == []
    hold.release()
    await house.idle()
    assert shown(house) == ["safe ", "answer"]
    assert isinstance(house.events[-1], Final)
    await agrees(house, "safe answer")


async def test_a_held_answer_that_is_rewritten_is_seen_only_so(house: House) -> None:
    """T69 b, A69: no delta of the model's, and the rewritten text is final, stored, and what the model reads later."""
    house.settings.guards = holding(Rewrite("clean"))
    house.model.answers(SAFE, SAFE)
    await house.user.says("hi")
    assert shown(house) == ["clean"]
    await agrees(house, "clean")
    await house.user.says("more")
    assert house.model.last_request.lines == ["U:hi", "A:clean", "U:more"]


async def test_a_held_answer_that_is_blocked_is_replaced(house: House) -> None:
    """T69 c, A69: only the replacement, once; the reason's code is a note beside it that people do not read."""
    # Seen to fail with: another text stored than the replacement, no reason beside it, a listener told twice (A69).
    rulings: list[Ruling] = []
    blocks = Post(guard=Says(BlockText("No.", "tone")))
    house.settings.guards = Guards(output=(blocks,), on_ruling=rulings.append)
    house.model.answers(SAFE)
    await house.user.says("hi")
    assert shown(house) == []
    await agrees(house, "No.")
    final = house.finals[0]
    assert (final.reason, final.outcome) == (StopReason.BLOCKED_OUTPUT, Outcome.FAILED)
    assert final.error is not None
    assert final.error.message == "checker: tone"
    assert "tone" in (await stored(house))[0].notice
    assert [ruling.guard for ruling in rulings] == ["checker"]


async def test_a_held_answer_that_fails_is_dropped(house: House) -> None:
    """T69 d, A66: its deltas are never shown and never stored."""
    house.settings.guards = holding(Allow())
    house.settings.max_retries = 0
    house.model.answers(drops("safe answer"))
    await house.user.says("hi")
    assert shown(house) == []
    assert await house.history() == ["U:hi"]
    assert await house.replies() == [notices.failure(ProviderError.user_text, house.finals[0].turn)]


async def test_a_stop_drops_what_is_held(house: House) -> None:
    """A66: nobody has ruled on it."""
    # Seen to fail with: held text shown when the answer breaks off (A66).
    house.settings.guards = holding(Allow())
    answer, hold = held(SAFE, after=2)
    house.model.answers(answer)
    await house.user.writes("hi")
    await hold.reached()
    await house.user.stops()
    assert (shown(house), await house.history()) == ([], ["U:hi"])


@pytest.mark.parametrize("blocked", [False, True])
async def test_a_pause_waits_for_the_verdict(house: House, *, blocked: bool) -> None:
    """A67: what was said before a request is judged first; when it is blocked, nobody is asked and nothing runs."""
    # Seen to fail with: answers with calls not judged (A67).
    house.settings.guards = holding(BlockText("No.") if blocked else Allow())
    house.model.answers(step("I will do it", [call("sup", "c1", x="1")]))
    await house.user.says("hi")
    assert bool(await house.operator.sees()) is not blocked
    assert await house.replies() == ["No." if blocked else "I will do it"]
    assert shown(house) == ([] if blocked else ["I will do it"])
    assert house.tools.started == []


async def test_a_blocked_closing_answer_is_replaced(house: House) -> None:
    """A68: the closing request is a path like any other."""
    house.settings.guards = holding(BlockText("No."))
    house.settings.limits = TurnLimits(max_steps=1, tool_grace=0.05)
    house.model.answers(calls("echo", id="c1", text="a"), says("secret plans"))
    await house.user.says("hi")
    assert await house.replies() == ["No."]
    assert house.finals[0].reason is StopReason.BLOCKED_OUTPUT


# -- streaming mode ---------------------------------------------------------------------------------------------------


async def test_a_block_in_mid_stream_takes_back_what_was_shown(house: House) -> None:
    """A65: no further delta; the draft becomes the replacement; one final."""
    # Seen to fail with: no reset at the block (A65).
    house.settings.guards = Guards(streams=(StreamPost(guard=StopsAt("bomb")),))
    house.model.answers(says("Take a bomb and run", deltas=["Take ", "a bomb", " and run"]))
    await house.user.says("hi")
    assert shown(house) == ["Take ", "RESET"]
    await agrees(house, "Let us talk of something else.")
    assert [final.reason for final in house.finals] == [StopReason.BLOCKED_OUTPUT]


@pytest.mark.parametrize(("required", "text"), [(True, notices.GUARD_BROKE), (False, "fine words")])
async def test_a_stream_guard_that_trips(house: House, text: str, *, required: bool) -> None:
    """A63: one that is required blocks and is named; another one counts for nothing from then on."""
    # Seen to fail with: a required guard that lets pass when it fails (A63).
    house.settings.guards = Guards(streams=(StreamPost(guard=StopsAt(), required=required),))
    house.model.answers(says("fine words", deltas=["fine ", "words"]))
    await house.user.says("hi")
    assert "".join(shown(house)) == ("" if required else "fine words")
    await agrees(house, text)
    failures = [fields["guard"] for event, fields in house.log if event == "guard.failed"]
    assert failures == ["words"]


# -- failing, and order -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [RuntimeError("a bug"), "hangs", "nonsense"], ids=str)
@pytest.mark.parametrize("required", [True, False])
async def test_a_guard_that_fails(house: House, trouble: object, *, required: bool) -> None:
    """A63: raising, too slow or malformed; required guards block, and the verdict names them, others let pass."""
    # Seen to fail with: a required guard that lets pass when it fails, a verdict that names nobody (A63).
    house.settings.guards = holding(trouble, required=required)
    house.model.answers(SAFE)
    await house.user.says("hi")
    await agrees(house, notices.GUARD_BROKE if required else "safe answer")
    error = house.finals[0].error
    assert (error.message if error else "") == ("checker: guard_failed" if required else "")
    assert "guard.failed" in [event for event, _ in house.log]


def posts(*guards: tuple[str, Verdict, bool]) -> Sequence[Post]:
    """Guards by name, with what they say; True: a judge."""
    return tuple(Post(guard=Says(verdict, name), judges=judges) for name, verdict, judges in guards)


async def test_rewriters_first_then_judges_on_what_is_left(house: House) -> None:
    """A64: each rewriter sees what the one before left; a judge's rewrite is a flag; the worst verdict wins."""
    # Seen to fail with: judges or rewriters that see the first text, a judge that may rewrite (A64).
    chain = posts(
        ("j1", Rewrite("ignored"), True),
        ("r1", Rewrite("one"), False),
        ("r2", Rewrite("two"), False),
        ("j2", Flag("odd"), True),
    )
    rulings: list[Ruling] = []
    house.settings.guards = Guards(output=tuple(chain), on_ruling=rulings.append)
    house.model.answers(SAFE)
    await house.user.says("hi")
    await agrees(house, "two")
    seen = {post.guard.name: post.guard.seen for post in chain if isinstance(post.guard, Says)}
    assert seen == {"r1": ["safe answer"], "r2": ["one"], "j1": ["two"], "j2": ["two"]}
    assert rulings[0].flags == (("j1", "rewrite"), ("j2", "odd"))


@dataclass(slots=True)
class Meets:
    """A judge that comes to its verdict when all of them have begun."""

    all_begun: asyncio.Barrier
    name: str

    async def inspect(self, passage: Passage) -> Verdict:
        """See `TextGuard`."""
        await self.all_begun.wait()
        return Allow()


async def test_judges_do_not_wait_for_each_other(house: House) -> None:
    """A64: all of them look at once, so that an answer is held no longer than the slowest one takes."""
    # Seen to fail with: judges asked one after another (A64).
    everybody = asyncio.Barrier(2)
    judges = [Post(guard=Meets(everybody, name), judges=True) for name in ("j1", "j2")]
    house.settings.guards = Guards(output=tuple(judges))
    house.model.answers(SAFE)
    await house.user.says("hi")
    await agrees(house, "safe answer")
    assert "guard.failed" not in [event for event, _ in house.log]


async def test_a_judges_block_beats_everything(house: House) -> None:
    """A64: flags and rewrites of others change nothing of it; a listener that raises does not either."""
    # Seen to fail with: a flag that beats a block (A64), a listener that hurts (A69).

    def trips(ruling: Ruling) -> None:
        raise RuntimeError(ruling.guard)

    chain = posts(("r1", Rewrite("one"), False), ("j1", Flag("odd"), True), ("j2", BlockText("No."), True))
    house.settings.guards = Guards(output=tuple(chain), on_ruling=trips)
    house.model.answers(SAFE)
    await house.user.says("hi")
    await agrees(house, "No.")


# -- receipts ---------------------------------------------------------------------------------------------------------


async def test_receipts_are_for_the_model_and_made_up_ones_are_marked(house: House) -> None:
    """BAR 3: a genuine receipt that the model quotes is not in the reply; an invented or changed one is marked."""
    house.model.answers(calls("echo", id="c1", text="a"), says("Ran it."))
    await house.user.says("hi")
    receipt = house.model.last_request.result_of("c1").receipt
    changed = receipt[:-4] + ("AAAA" if receipt[-4:] != "AAAA" else "BBBB")
    text = f"It ran. [receipt: {receipt}] And that: {changed}"
    house.model.answers(says(text, deltas=[text[at : at + 5] for at in range(0, len(text), 5)]))
    await house.user.says("prove it")
    assert house.finals[-1].text == f"It ran. And that: {UNVERIFIED}"
    assert receipt not in "".join(shown(house))
    assert [event for event, _ in house.log].count("receipt.unverified") == 1


async def test_a_receipt_of_another_conversation_proves_nothing_here(house: House) -> None:
    """A genuine one, replayed elsewhere, is a foreign one."""
    house.model.answers(calls("echo", id="c1", text="a"), says("Ran it."))
    await house.user.says("hi")
    receipt = house.model.last_request.result_of("c1").receipt
    house.model.answers(says(f"[receipt: {receipt}]"))
    await house.other("bob").says("hi")
    assert house.finals[-1].text == UNVERIFIED


async def test_an_attempt_without_text_stays_without(house: House) -> None:
    """A failure before any text has nothing to guard."""
    house.settings.guards = LEAKS
    house.settings.max_retries = 0
    house.model.answers(fails(ProviderError("no", code="auth")))
    await house.user.says("hi")
    assert (shown(house), await house.history()) == ([], ["U:hi"])
