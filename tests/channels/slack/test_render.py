"""Markdown as Slack messages."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels.slack.blocks import blocks_of, escape
from channels.slack.render import MESSAGE_LIMIT, mark_repeat, render
from tests.channels.text.markdown_cases import Case, Seen, complaints, load_cases
from tests.channels.text.strategies import markdown
from tests.platforms.slack_blocks import UPDATE_CHARACTERS, BlocksError, check_message
from tests.platforms.slack_text import notified, read_blocks
from zerobot.core.channel import MessageBody

_MARKER = re.compile(r"[•◦▪│─┼]+|[0-9]+[.)]")


def seen(body: MessageBody) -> Seen:
    """A message as people see it."""
    blocks = blocks_of(body)
    reading = read_blocks(blocks)
    return Seen(reading.text if blocks else body.text, tuple(reading.spans))


def broken_rules(body: MessageBody) -> list[str]:
    """Which of Slack's rules a message breaks, as a new one and as a changed one; whom it would notify."""
    blocks: list[Any] = blocks_of(body)
    bad = notified(escape(body.text), blocks)
    try:
        check_message(escape(body.text), blocks, limit=UPDATE_CHARACTERS)
    except BlocksError as error:
        bad.append(str(error))
    return bad


@pytest.mark.parametrize("case", load_cases(), ids=str)
def test_a_case_reads_as_it_should(case: Case) -> None:
    """What a reader sees of a model's Markdown has the properties of the case, within Slack's rules."""
    bodies = render(case.source)
    assert [broken_rules(body) for body in bodies] == [[] for _ in bodies]
    assert complaints(case, [seen(body) for body in bodies]) == []


@pytest.mark.parametrize("case", load_cases(), ids=str)
def test_every_prefix_of_a_case_is_a_valid_draft(case: Case) -> None:
    """A draft can be shown at any moment; of long texts a sample of the moments is tried."""
    size = len(case.source)
    for end in range(0, size + 1, 1 if size < 600 else size // 60):
        for body in render(case.source[:end]):
            assert broken_rules(body) == []


@given(markdown)
@example("words\n```\n    \n```")
def test_any_text_keeps_slacks_rules(text: str) -> None:
    """There is no text that cannot be rendered, that Slack would refuse, or that notifies anybody."""
    for body in render(text):
        assert broken_rules(body) == []
        assert broken_rules(mark_repeat(body)) == []
        assert broken_rules(MessageBody(body.text)) == []


def words_of(text: str) -> list[str]:
    """The words of a text without what a list or a laid out table has beside them."""
    return [word for word in text.replace("\u200b", "").split() if not _MARKER.fullmatch(word)]


@given(markdown)
def test_blocks_and_text_say_the_same(text: str) -> None:
    """Whoever reads without blocks misses no word, and blocks add none."""
    for body in render(text):
        assert words_of(seen(body).text) == words_of(body.text)


@settings(max_examples=15)
@given(st.lists(markdown, min_size=1, max_size=4), st.integers(min_value=300, max_value=1500))
def test_a_long_text_keeps_slacks_rules(texts: list[str], times: int) -> None:
    """The same over several messages: formatting is cut with its text."""
    source = "".join((text + "\n\n") * (times // (len(text) + 1)) for text in texts)
    for body in render(source):
        assert broken_rules(body) == []


@pytest.mark.parametrize("length", [3999, 4000, 4001, 40_001])
def test_a_long_answer_arrives_whole(length: int) -> None:
    """The parts put together are the answer, each as full as Slack takes it."""
    parts = [body.text for body in render("x" * length)]
    assert "".join(parts) == "x" * length
    assert len(parts) == -(-length // MESSAGE_LIMIT)


def test_signs_that_are_escaped_count_as_they_are_written() -> None:
    """4,000 ampersands are 20,000 characters to Slack."""
    bodies = render("& " * 4000)
    assert all(len(escape(body.text)) <= UPDATE_CHARACTERS for body in bodies)
    assert "".join(body.text for body in bodies).count("&") == 4000


def test_signs_are_escaped_once() -> None:
    """In blocks a text stands as it is; in the text beside them nothing is read as a mark."""
    (body,) = render("a & b < c > d <!channel> <@U1> &amp;amp;")
    assert seen(body).text == "a & b < c > d <!channel> <@U1> &amp;"
    assert escape(body.text) == "a &amp; b &lt; c &gt; d &lt;!channel&gt; &lt;@U1&gt; &amp;amp;"


def test_much_formatting_is_cut_before_its_blocks_are_too_long() -> None:
    """Short stretches in different formats take far more room than their text."""
    bodies = render("**b** *i* `c` " * 250)
    assert len(bodies) > 1
    assert [broken_rules(body) for body in bodies] == [[] for _ in bodies]


def test_code_over_several_messages_is_code_in_each() -> None:
    """Every part has its block, and all lines are there."""
    code = "\n".join(f"value_{number} = compute({number})  # and so on" for number in range(300))
    bodies = render(f"Here:\n\n```python\n{code}\n```\n\nDone.")
    assert len(bodies) > 2
    parts = [words for body in bodies for kind, words, _ in seen(body).spans if kind == "code"]
    assert "\n".join(parts) == code


def test_code_in_a_quote_is_code_with_a_border() -> None:
    """Slack's quotes hold no code, but code can stand beside a line as quotes do."""
    (body,) = render("> see\n>\n> ```\n> x = 1\n> ```\n>\n> so")
    (block,) = blocks_of(body)
    parts: Any = block["elements"]
    assert [(part["type"], part.get("border")) for part in parts] == [
        ("rich_text_quote", None),
        ("rich_text_preformatted", 1),
        ("rich_text_quote", None),
    ]
