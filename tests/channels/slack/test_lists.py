"""Lists as Slack's own."""

from __future__ import annotations

from typing import Any

import pytest

from channels.slack.blocks import blocks_of
from channels.slack.render import mark_repeat, render
from tests.platforms.slack_blocks import UPDATE_CHARACTERS, check_message
from tests.platforms.slack_text import read_blocks
from zerobot.core.channel import MessageBody


def elements(body: MessageBody) -> list[Any]:
    """The elements of a message that is one rich text."""
    (block,) = blocks_of(body)
    found: Any = block["elements"]
    return list(found)


def kinds(body: MessageBody) -> list[str]:
    """What each element is, without `rich_text_`."""
    return [element["type"].removeprefix("rich_text_") for element in elements(body)]


def shown(body: MessageBody) -> str:
    """What people see of a message."""
    return read_blocks(blocks_of(body)).text


@pytest.mark.parametrize(
    ("source", "drawn"),
    [
        ("- a\n- b\n  - c\n- d", "• a\n• b\n  ◦ c\n• d"),
        ("- a\n\n- b", "• a\n• b"),
        ("3. a\n4. b\n   - c\n5. d", "3. a\n4. b\n  ◦ c\n5. d"),
        ("1. a\n1. b\n7. c", "1. a\n2. b\n7. c"),
        ("1) a\n2) b", "1. a\n2. b"),
        ("- [ ] a\n- [x] b", "• ☐ a\n• ☑ b"),
        ("1. [x] a", "1. ☑ a"),
        ("-\n- b", "•  \n• b"),
        ("- a\n  b\n\n  c", "• a\nb\n\nc"),
    ],
)
def test_a_list_has_its_markers_from_slack(source: str, drawn: str) -> None:
    """Items hold their words alone, numbers stay the author's, the state of a task is one of the words."""
    (body,) = render(source)
    assert set(kinds(body)) == {"list"}
    assert shown(body) == drawn


def test_the_deepest_list_is_one_that_slack_takes() -> None:
    """Slack indents eight times; whatever is deeper in a model's list is text already."""
    (body,) = render("\n".join("  " * depth + "- x" for depth in range(30)))
    check_message(body.text, blocks_of(body), limit=UPDATE_CHARACTERS)
    assert [element["indent"] for element in elements(body)] == list(range(8))


def test_a_list_from_zero_is_text_until_one() -> None:
    """Slack's lists can't begin before 1."""
    (body,) = render("0. a\n1. b")
    assert kinds(body) == ["section", "list"]
    assert shown(body) == "0. a\n1. b"


def test_code_in_an_item_stands_below_it() -> None:
    """An item holds only text; the list goes on behind the code, with the next number."""
    (body,) = render("1. a\n   ```\n   x = 1\n   ```\n   and so\n2. b")
    assert kinds(body) == ["list", "preformatted", "section", "list"]
    assert shown(body) == "1. a\nx = 1\nand so\n2. b"


def test_a_list_in_a_quote_has_a_border() -> None:
    """It stands beside a line as quotes do."""
    (body,) = render("> see\n>\n> - a\n> - b\n\n- c")
    assert [(element["type"], element.get("border")) for element in elements(body)] == [
        ("rich_text_quote", None),
        ("rich_text_list", 1),
        ("rich_text_list", None),
    ]


def test_an_empty_line_behind_a_list_stays() -> None:
    """Slack leaves no gap there by itself."""
    (body,) = render("- a\n\nafter")
    assert shown(body) == "• a\n\nafter"


def test_a_list_over_several_messages_goes_on_with_its_numbers() -> None:
    """Every item is there once, under its own number, whatever message it is in."""
    source = "\n".join(f"{number}. item **{number}**" for number in range(1, 301))
    bodies = render(source)
    assert len(bodies) > 1
    assert "\n".join(map(shown, bodies)) == source.replace("*", "")


def test_the_rest_of_an_item_that_was_cut_has_no_marker() -> None:
    """It is the same item still."""
    first, second = render("- " + "word " * 1000 + "\n- b")
    assert kinds(first) == ["list"]
    assert kinds(second) == ["section", "list"]


def test_the_mark_of_a_repeat_stands_before_a_list() -> None:
    """The list is a list still."""
    (body,) = render("- a\n- b")
    marked = mark_repeat(body)
    assert kinds(marked) == ["section", "list"]
    assert shown(marked) == "↻ possibly a repeat:\n• a\n• b"
