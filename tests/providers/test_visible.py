import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.providers.visible import VisibleText


def shown(*deltas: str) -> str:
    visible = VisibleText()
    return "".join([visible.feed(delta) for delta in deltas] + [visible.end()])


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("<think>secret plan</think>Hi", "Hi"),
        ("<think>secret</think>\n\nHi\n", "Hi\n"),
        ("<THINK>secret</Think>Hi", "Hi"),
        ("<thinking>secret</thinking>Hi", "Hi"),
        ("<think>never closed", ""),
        ("Hi <think>never closed", "Hi "),
        ("<think>secret<final>Hi</final>", "Hi"),
        ("<think>a<think>b</think>c</think>Hi", "Hi"),
        ("<think >secret</think >Hi", "Hi"),
        ("secret?</think>Hi", "secret?Hi"),
        ("A<think>x</think> B<think>y</think> C", "A B C"),
        ("<think>code: `</think>`", "`"),
        ("<think/>Hi", "Hi"),
    ],
)
def test_reasoning_is_hidden(raw: str, wanted: str) -> None:
    """Whatever stands in the tags is not for people, whole and cut at each character."""
    assert shown(raw) == wanted
    assert shown(*raw) == wanted


@pytest.mark.parametrize(
    "raw",
    [
        "Use `<think>` like this.",
        "``a ` <think>`` b",
        "```xml\n<think>\nx\n</think>\n```\nDone.",
        "~~~\n<think>\n~~~\nDone.",
        "> ```\n> <think>\n> ```\n",
        "```<think>``` is a span",
        "````\n```\n<think>\n````\n",
        "```\nunclosed <think>",
        "a < b and b > c, x<y",
        "<thin, <thinker> and <final>",
        "List<final> and </b>",
        "ends with <",
        "ends with <think",
    ],
)
def test_what_only_looks_like_a_tag_stays(raw: str) -> None:
    """Tags in code are the subject and not the form; other words in angle brackets are just words."""
    assert shown(raw) == raw
    assert shown(*raw) == raw


def test_a_tag_after_the_code_is_hidden_again() -> None:
    """Code ends at its fence, a span at its backtick, and an unclosed span at the end of its paragraph."""
    assert shown("```\nx\n```\n<think>s</think>A") == "```\nx\n```\nA"
    assert shown("`x` <think>s</think>A") == "`x` A"
    assert shown("a ` b\n\n<think>s</think>A") == "a ` b\n\nA"


def test_ordinary_text_is_never_held_back() -> None:
    """Each delta comes out at once; only what may begin a tag waits, and no longer than it may."""
    visible = VisibleText()
    assert visible.feed("Hello `") == "Hello `"
    assert visible.feed("wo") == "wo"
    assert visible.feed("rld` ~ <") == "rld` ~ "
    assert visible.feed("thx") == "<thx"
    assert visible.feed("<" + "t" * 50) == "<" + "t" * 50


def test_broken_characters_are_mended() -> None:
    """A surrogate pair cut over deltas is one character, and half of one is a replacement."""
    assert shown("\ud83d", "\ude80 go") == "🚀 go"
    assert shown("a\ud83d", "b") == "a\ufffdb"
    assert shown("a\ud83d") == "a\ufffd"
    assert shown("\ude80") == "\ufffd"


_PIECES = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<final>", "`", "```", "~~~", "\n", " ", "a", "<", ">", "/", "think", "\ud83d"]
    )
)


@settings(max_examples=200, deadline=None)
@given(_PIECES)
def test_the_cut_into_deltas_makes_no_difference(pieces: list[str]) -> None:
    """Whole, in the given pieces, and character by character, the same text is shown."""
    whole = "".join(pieces)
    assert shown(whole) == shown(*pieces) == shown(*whole)
