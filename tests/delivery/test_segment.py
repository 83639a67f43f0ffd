"""What a draft shows, from a turn's events alone."""

from hypothesis import given
from hypothesis import strategies as st

from zerobot.core.events import ApprovalsRequested, StatusChanged, StepStarted, TextReset, TextShown, ToolStarted
from zerobot.core.ids import CallId, TurnId
from zerobot.delivery.segment import Segment


@given(st.lists(st.lists(st.text(max_size=8), max_size=4), max_size=4))
def test_the_text_is_the_steps_texts(steps: list[list[str]]) -> None:
    """However the deltas are cut, each step's text is whole, and a blank line stands between two."""
    segment = Segment()
    for deltas in steps:
        segment.take(StepStarted(1))
        for delta in deltas:
            segment.take(TextShown(delta))
    texts = ["".join(deltas).strip() for deltas in steps]
    assert segment.text() == "\n\n".join(text for text in texts if text)


def test_a_reset_voids_only_the_current_step() -> None:
    """Another attempt of the second step begins; the first step's text stays."""
    segment = Segment()
    for event in (StepStarted(1), TextShown("a"), StepStarted(2), TextShown("b"), TextReset()):
        segment.take(event)
    assert segment.text() == "a"


def test_a_tool_without_any_text_shows_nothing() -> None:
    """Typing signals say that work goes on; a message would only flash up."""
    segment = Segment()
    segment.take(ToolStarted(CallId("c"), "shell", "run"))
    assert segment.shown() == ""


def test_a_status_is_one_line_and_no_markdown_of_its_own() -> None:
    """What a tool says about itself can't break out of the italics."""
    segment = Segment()
    segment.take(TextShown("Text."))
    segment.take(StatusChanged("a_b*c\n`d` [e](f) <g>"))
    assert segment.shown() == "Text.\n\n_a\\_b\\*c \\`d\\` \\[e\\](f) \\<g\\>_"


def test_a_pause_ends_it() -> None:
    """Nothing of the turn belongs to this message any more."""
    segment = Segment()
    segment.take(ApprovalsRequested(TurnId("t"), ()))
    assert segment.ended
    assert segment.final is None
