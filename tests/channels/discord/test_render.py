"""Markdown as Discord messages, read back as Discord's client reads them."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels._text.layout import lay_out
from channels._text.parse import parse
from channels.discord.markup import escape, line_markup
from channels.discord.render import MESSAGE_LIMIT, mark_repeat, render
from tests.channels.text.markdown_cases import Case, Seen, complaints, load_cases
from tests.channels.text.strategies import markdown
from tests.platforms.discord_text import read
from zerobot.core.channel import MessageBody

LINES = st.text(st.sampled_from("ab1 *_~|`<>@#[]():/\\-+.!\u00e9"), max_size=40)


def seen(body: MessageBody) -> Seen:
    """A message as its reader gets it."""
    reading = read(body.text)
    bare = [(kind, visible(text), address) for kind, text, address in reading.spans]
    return Seen(visible(reading.text), tuple(bare))


def visible(text: str) -> str:
    """Without what has no width: it stands where a sign must not be read."""
    return text.replace("\u200b", "")


def broken_rules(body: MessageBody) -> list[str]:
    """Which of Discord's rules a message breaks, or what in it is read as something that is never written."""
    reading = read(body.text)
    bad = []
    if not 1 <= len(body.text.encode("utf-16-le")) // 2 <= 2000:
        bad.append("length")
    if body.text != body.text.strip():
        bad.append("would be trimmed")
    if reading.mentions:
        bad.append(f"mentions {reading.mentions}")
    bad += [f"{kind}: {text}" for kind, text, _ in reading.spans if kind in {"block", "spoiler"}]
    return bad


def words(text: str) -> str:
    return "".join(visible(unquote(text)).split())


@pytest.mark.parametrize("case", load_cases(), ids=str)
def test_a_case_reads_as_it_should(case: Case) -> None:
    """What a reader sees of a model's Markdown has the properties of the case, within Discord's rules."""
    bodies = render(case.source)
    assert [broken_rules(body) for body in bodies] == [[] for _ in bodies]
    assert complaints(case, [seen(body) for body in bodies]) == []


@pytest.mark.parametrize("case", load_cases(), ids=str)
def test_every_prefix_of_a_case_is_a_valid_draft(case: Case) -> None:
    """A draft can be shown at any moment; of long texts a sample of the moments is tried."""
    size = len(case.source)
    for end in range(0, size + 1, 1 if size < 600 else size // 40):
        for body in render(case.source[:end]):
            assert broken_rules(body) == []


@given(LINES)
def test_an_escaped_text_is_read_as_it_was(text: str) -> None:
    """Whatever signs it has, none of them is a mark, a mention or an address."""
    reading = read("x " + escape("x " + text)[2:])
    assert reading.text == ("x " + text).strip()
    assert (reading.spans, reading.mentions) == ([], [])


@given(LINES, st.sampled_from(["**", "*", "~~", "`", "_", "***"]))
def test_a_line_with_marks_keeps_its_words(text: str, mark: str) -> None:
    """Where a format cannot be expressed it is left out; no word and no sign is lost, none appears."""
    source = f"a {mark}{text}{mark} b{mark}c{mark}"
    layout = lay_out(parse(source))
    assert words("".join(read(body.text).text for body in render(source))) == words(layout.text)


@settings(max_examples=300)
@given(markdown)
def test_any_text_is_kept_within_discords_rules(text: str) -> None:
    """There is no text that cannot be rendered, that Discord would refuse or change, or of which something is lost."""
    bodies = render(text)
    for body in (*bodies, *map(mark_repeat, bodies)):
        assert broken_rules(body) == []
    shown = words("".join(read(body.text).text for body in bodies))
    assert shown == words(lay_out(parse(text, address_limit=120)).text) or not bodies


@settings(max_examples=10)
@given(st.lists(markdown, min_size=1, max_size=4), st.integers(min_value=300, max_value=900))
def test_a_long_text_is_kept_over_several_messages(texts: list[str], times: int) -> None:
    """Marks are closed and opened again around a cut."""
    source = "".join((text + "\n\n") * (times // (len(text) + 1)) for text in texts)
    for body in render(source):
        assert broken_rules(body) == []


@pytest.mark.parametrize("length", [1999, 2000, 2001, 9000])
def test_a_long_answer_arrives_whole(length: int) -> None:
    """The parts put together are the answer, each as full as Discord takes it."""
    parts = [body.text for body in render("x" * length)]
    assert "".join(parts) == "x" * length
    assert len(parts) == -(-length // MESSAGE_LIMIT)


def test_code_over_several_messages_is_code_in_each() -> None:
    """Every part has its fence with the same language, and all lines are there."""
    code = "\n".join(f"value_{number} = compute({number})  # and so on" for number in range(150))
    bodies = render(f"Here:\n\n```python\n{code}\n```\n\nDone.")
    assert len(bodies) > 2
    assert all("```python\n" in body.text for body in bodies)
    joined = "\n".join(text for body in bodies for kind, text, _ in read(body.text).spans if kind == "code")
    assert joined == code


def test_formatting_goes_on_in_the_next_message() -> None:
    """A bold text over the cut is bold on both sides."""
    bodies = render("**" + "word " * 700 + "end**")
    assert [body.text[:2] + body.text[-2:] for body in bodies] == ["****", "****"]


def test_a_table_is_a_block_of_code() -> None:
    """Discord draws none."""
    (body,) = render("| a | b |\n|---|---|\n| 1 | 2 |")
    assert body.text == "```\na │ b\n──┼──\n1 │ 2\n```"


def test_what_would_notify_somebody_is_text() -> None:
    """People, roles, channels, everybody; an emoji and a time too."""
    (body,) = render("<@1> <@!2> <@&3> <#4> <:x:5> <t:6:R> @everyone")
    assert read(body.text).mentions == []
    assert read(body.text).text == "<@1> <@!2> <@&3> <#4> <:x:5> <t:6:R> @everyone"


def test_a_masked_link_is_shown_with_its_target_and_fetches_nothing() -> None:
    """The label links, the address stands after it as text, and angle brackets keep a preview away."""
    (body,) = render("See [the docs](https://a.test/x_y).")
    assert body.text == "See [the docs](<https://a.test/x_y>) (https\\://a.test/x_y)."


def test_signs_stay_readable() -> None:
    """What is not read as a mark is not escaped: phones show messages as they are written."""
    (body,) = render("2026-01-02: snake_case_name, 2 - 1 = 1, a|b, ~5, (x), C#, e.g. 3.5!")
    assert body.text == "2026-01-02: snake_case_name, 2 - 1 = 1, a|b, ~5, (x), C#, e.g. 3.5!"


def test_nested_marks_of_one_kind_do_not_meet() -> None:
    """Where two marks would stand side by side, a character of no width is between them."""
    (body,) = render("***both*** **a**_b_ and *x **y***")
    assert [kind for kind, _, _ in read(body.text).spans].count("bold") == 3
    assert seen(body).text == "both ab and x y"


@pytest.mark.parametrize("source", ["", "  \n \n", "\u200b", "\x00", "&nbsp;", "<br>", "# \n>", "```\n\n```"])
def test_what_nobody_sees_is_no_message(source: str) -> None:
    """Discord refuses an empty message, so none is made."""
    assert render(source) == []


def test_a_line_of_marks_is_written_by_its_spans() -> None:
    """Without spans it is only escaped."""
    assert line_markup("*x*", []) == "\\*x\\*"
