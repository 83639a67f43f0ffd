"""What a terminal is given to show: nothing in it acts on the terminal, and its formatting fits its text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.console.render import MESSAGE_LIMIT, mark_repeat, plain, render
from zerobot.core.channel import MessageBody
from zerobot.security.visible import escape, has_hidden

HOSTILE = [
    "\x1b[2J\x1b[H cleared",
    "\x1b]0;a title\x07",
    "\x1b]8;;https://evil.test\x1b\\click\x1b]8;;\x1b\\",
    "\x9b31m C1 control",
    "\x1b[6n asks for an answer",
    "back\b\b\b\bspace",
    "over\rwritten",
    "\u202eright to left",
    "tag \U000e0041 character",
    "[bold red]markup of a console library[/]",
    "\x1b",
]


def spans(body: MessageBody) -> list[tuple[str, str]]:
    rows = body.format.get("spans", [])
    assert isinstance(rows, list)
    return [(body.text[start:end], kind) for start, end, kind, _ in rows]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_acts_on_the_terminal(text: str) -> None:
    """Whatever a model writes, no control, bidirectional or invisible character is in what is shown."""
    for body in render(f"before {text} after", escape):
        assert not has_hidden(body.text.replace("\n", ""))


@given(st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_text_is_rendered_safely(text: str) -> None:
    """No text fails, none has a hidden character left, and every span is inside its text."""
    for body in render(text, escape):
        assert body.text.strip()
        assert not has_hidden(body.text)
        assert all(piece for piece, _ in spans(body))


def test_formatting_stands_beside_the_text() -> None:
    """Marks become spans; the text has none of their characters."""
    (body,) = render("**Yes**, `rm -rf` is *risky*", escape)
    assert body.text == "Yes, rm -rf is risky"
    assert spans(body) == [("Yes", "bold"), ("rm -rf", "code"), ("risky", "italic")]


def test_spans_fit_although_something_was_escaped_before_them() -> None:
    """An escape is longer than what it stands for; the formatting after it moves along."""
    (body,) = render("\ue000 **bold**", escape)
    assert spans(body) == [("bold", "bold")]


def test_a_link_shows_where_it_goes() -> None:
    """A masked link has its address in the text."""
    (body,) = render("[your bank](https://evil.test/login)", escape)
    assert "https://evil.test/login" in body.text


def test_ordinary_emoji_are_no_riddles() -> None:
    """A choice of look or a joined family is shown by its plain symbols, not by escapes."""
    (body,) = render("❤️ 1️⃣ 👩‍🔧", escape)
    assert body.text == "❤ 1⃣ 👩🔧"


def test_code_keeps_its_indentation() -> None:
    """The first line of a code block begins where its author began it."""
    (body,) = render("```\n  indented\n```", escape)
    assert body.text == "  indented"


@pytest.mark.parametrize("markdown", ["", " \n\t", "\x1b[0m"])
def test_nothing_visible_is_no_message(markdown: str) -> None:
    """What shows nothing becomes no message."""
    assert render(markdown, escape) == []


def test_a_long_text_becomes_several_messages() -> None:
    """Each message stays within what a line of the control socket takes, and nothing is lost."""
    bodies = render("word " * 30_000, escape)
    assert len(bodies) > 1
    assert all(len(body.text) <= MESSAGE_LIMIT for body in bodies)
    assert sum(body.text.count("word") for body in bodies) == 30_000


def test_a_repeat_is_marked_and_a_plain_body_has_no_format() -> None:
    """The last resorts change no word of the message."""
    (body,) = render("**hello**", escape)
    assert mark_repeat(body).text.endswith("hello")
    assert mark_repeat(body).text != "hello"
    assert plain(body) == MessageBody("hello")
