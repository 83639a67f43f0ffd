"""Reading Markdown into the tree."""

from __future__ import annotations

import pytest
from hypothesis import given

from channels._text.parse import parse
from channels._text.tree import (
    BOLD,
    CODE,
    ITALIC,
    CodeBlock,
    Heading,
    Item,
    ItemList,
    Mark,
    Paragraph,
    Quote,
    Run,
    Table,
    plain_text,
)
from tests.channels.text.strategies import markdown


def words(source: str) -> str:
    """The text of a single paragraph."""
    (block,) = parse(source)
    assert isinstance(block, Paragraph)
    return plain_text(block.runs)


@given(markdown)
def test_there_is_no_text_that_cannot_be_read(text: str) -> None:
    """Reading never raises, and what is read can be encoded."""
    repr(parse(text)).encode()


def test_blocks_become_blocks() -> None:
    """Each kind of block has its node."""
    source = "# Title\n\ntext\n\n> quote\n\n```python\n\tx\n```"
    assert parse(source) == (
        Heading(1, (Run("Title"),)),
        Paragraph((Run("text"),)),
        Quote((Paragraph((Run("quote"),)),)),
        CodeBlock("    x", "python"),
    )


def test_marks_are_listed_from_the_outside() -> None:
    """A run knows in what it stands."""
    assert parse("**a *b* `c`**") == (
        Paragraph((Run("a ", (BOLD,)), Run("b", (BOLD, ITALIC)), Run(" ", (BOLD,)), Run("c", (BOLD, CODE)))),
    )


def test_numbers_are_the_authors_own_but_count_when_they_repeat() -> None:
    """A gap in the numbers stays, `1. 1. 1.` goes on."""
    (block,) = parse("1. a\n1. b\n7. c")
    assert isinstance(block, ItemList)
    assert [item.number for item in block.items] == ["1.", "2.", "7."]


def test_a_task_knows_its_state() -> None:
    """The brackets are read, not shown."""
    (block,) = parse("- [x] done\n- [ ] open\n- [y] text")
    assert isinstance(block, ItemList)
    assert block.items[0] == Item((Paragraph((Run("done"),)),), checked=True)
    assert [item.checked for item in block.items] == [True, False, None]


def test_a_table_has_its_cells_and_alignments() -> None:
    """Cells are runs, a short row is filled up."""
    (block,) = parse("| a | b |\n|:--|--:|\n| **1** |")
    assert block == Table(((Run("a"),), (Run("b"),)), (((Run("1", (BOLD,)),), ()),), ("left", "right"))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("List<String> and <think> and <script>x</script>", "List<String> and <think> and <script>x</script>"),
        ("one<br>two<BR/>three", "one\ntwo\nthree"),
        ("<b>bold</b> <u>line</u>", "bold line"),
        ("an open <b> is a word", "an open <b> is a word"),
        ("10<sup>6</sup> H<sub>2</sub>O", "10⁶ H₂O"),
        ("x<sup>a b</sup>", "x<sup>a b</sup>"),
        ("<details><summary>More</summary>", "More"),
        ("From: Ann <ann@mail.test>", "From: Ann <ann@mail.test>"),
    ],
)
def test_tags_are_formatting_or_text_and_never_html(source: str, text: str) -> None:
    """The few tags that models use for formatting are understood; every other one is shown."""
    assert words(source) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("2*3*4 = 24", "2*3*4 = 24"),
        ("open __init__.py", "open __init__.py"),
        ("$a_1 * b_2$ and $5 or _$6_", "$a_1 * b_2$ and $5 or $6"),
        (r"\(a_1 * b_2\) and $$x_i$$", "a_1 * b_2 and x_i"),
        ("**注意：**内容", "注意：内容"),
        ("see https://a.test/x*y*z_w_.", "see https://a.test/x*y*z_w_."),
        ("(https://a.test/x_(y))", "(https://a.test/x_(y))"),
    ],
)
def test_what_only_looks_like_emphasis_is_left_alone(source: str, text: str) -> None:
    """Numbers, names, formulas and addresses keep their stars and underscores; Chinese emphasis is emphasis."""
    assert words(source) == text


def test_a_bare_address_is_a_link_without_what_follows_it() -> None:
    """The full stop and the bracket belong to the sentence."""
    (block,) = parse("(see https://a.test/x).")
    assert isinstance(block, Paragraph)
    assert block.runs[1] == Run("https://a.test/x", (Mark("link", "https://a.test/x"),))
    assert plain_text(block.runs) == "(see https://a.test/x)."


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("![a cat](https://a.test/cat.png)", "a cat (https://a.test/cat.png)"),
        ("![](https://a.test/cat.png)", "https://a.test/cat.png"),
        ("[\u200b](https://evil.test/p.png?d=1)x", "https://evil.test/p.png?d=1x"),
        ("[x](javascript:alert(1)) [y](tg://settings)", "x y"),
        ("[![badge](https://a.test/b.svg)](https://a.test/)", "badge (https://a.test/)"),
    ],
)
def test_pictures_and_hidden_links_are_written_out(source: str, text: str) -> None:
    """Nothing is loaded, and no address hides behind nothing."""
    assert words(source) == text


def test_a_formula_on_lines_of_its_own_is_code() -> None:
    """Its lines are shown as they are."""
    assert parse("$$\na_1\n= b_2\n$$") == (CodeBlock("a_1\n= b_2", "latex"),)


def test_the_bottom_of_a_storm_of_quotes_is_still_there() -> None:
    """What is nested deeper than anybody reads becomes text, and none of it is lost."""
    assert "deep" in repr(parse("> " * 500 + "deep"))
