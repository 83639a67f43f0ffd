"""Markdown as Telegram messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels._text.layout import GUARD
from channels._text.measure import utf16_len
from channels.telegram.render import MESSAGE_LIMIT, plain, render
from tests.channels.text.markdown_cases import Case, Seen, complaints, load_cases
from tests.channels.text.strategies import markdown
from zerobot.core.channel import MessageBody

KINDS = {
    "bold": "bold",
    "italic": "italic",
    "strikethrough": "strike",
    "code": "code",
    "pre": "code",
    "text_link": "link",
}


def entities(body: MessageBody) -> list[dict[str, Any]]:
    found = body.format.get("entities", [])
    assert isinstance(found, list)
    return found


def words(body: MessageBody, entity: dict[str, Any]) -> str:
    """The text that an entity formats; raises when it cuts a character."""
    units = body.text.encode("utf-16-le")
    return units[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le")


def formatted(body: MessageBody) -> list[tuple[str, str]]:
    return [(entity["type"], words(body, entity)) for entity in entities(body)]


def seen(body: MessageBody) -> Seen:
    return Seen(
        body.text,
        tuple((KINDS.get(e["type"], e["type"]), words(body, e), e.get("url", "")) for e in entities(body)),
    )


def broken_rules(body: MessageBody) -> list[str]:
    """Which of Telegram's rules a message breaks."""
    found = entities(body)
    text = body.text
    bad = []
    if not 1 <= utf16_len(text) <= 4096:
        bad.append("length")
    if text != text.strip(" \n") or not text.strip("\u200b\u200c\u200d\u2060\ufeff \n"):
        bad.append("would be trimmed or refused")
    if len(found) > 100:
        bad.append("too many entities")
    if found != sorted(found, key=lambda e: (e["offset"], -e["length"])):
        bad.append("unsorted")
    open_entities: list[dict[str, Any]] = []
    for entity in found:
        part = words(body, entity)
        if entity["offset"] < 0 or utf16_len(part) != entity["length"] or not part or part != part.strip(" \n"):
            bad.append(f"range: {entity}")
        while open_entities and _end(open_entities[-1]) <= entity["offset"]:
            open_entities.pop()
        if open_entities and _end(open_entities[-1]) < _end(entity):
            bad.append(f"crossing: {entity}")
        if any(not _may_hold(outer["type"], entity["type"]) for outer in open_entities):
            bad.append(f"nesting: {entity}")
        open_entities.append(entity)
    return bad


def _end(entity: dict[str, Any]) -> int:
    return int(entity["offset"] + entity["length"])


def _may_hold(outer: str, inner: str) -> bool:
    if outer in {"pre", "code"} or inner == outer:
        return False
    return inner not in {"pre", "code"} or outer == "blockquote"


@pytest.mark.parametrize("case", load_cases(), ids=str)
def test_a_case_reads_as_it_should(case: Case) -> None:
    """What a reader sees of a model's Markdown has the properties of the case, within Telegram's rules."""
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
def test_any_text_keeps_telegrams_rules(text: str) -> None:
    """There is no text that cannot be rendered or that Telegram would refuse or change."""
    for body in (*render(text), *plain(text)):
        assert broken_rules(body) == []


@settings(max_examples=15)
@given(st.lists(markdown, min_size=1, max_size=4), st.integers(min_value=300, max_value=1500))
def test_a_long_text_keeps_telegrams_rules(texts: list[str], times: int) -> None:
    """The same over several messages: entities are cut with their text."""
    source = "".join((text + "\n\n") * (times // (len(text) + 1)) for text in texts)
    for body in render(source):
        assert broken_rules(body) == []


@pytest.mark.parametrize("length", [4095, 4096, 4097, 20_000])
def test_a_long_answer_arrives_whole(length: int) -> None:
    """The parts put together are the answer, each as full as Telegram takes it."""
    parts = [body.text for body in render("x" * length)]
    assert "".join(parts) == "x" * length
    assert len(parts) == -(-length // MESSAGE_LIMIT)


@pytest.mark.parametrize("text", ["a" * 4095 + "🧪" * 3000, "🧪" * 5000])
def test_an_emoji_is_never_cut(text: str) -> None:
    """A message that has one unit left does not take half an emoji."""
    assert "".join(body.text for body in render(text)) == text


def test_code_over_several_messages_is_code_in_each() -> None:
    """Every part has its block with the same language, and all lines are there."""
    code = "\n".join(f"value_{number} = compute({number})  # and so on" for number in range(300))
    bodies = render(f"Here:\n\n```python\n{code}\n```\n\nDone.")
    assert len(bodies) > 2
    assert all(entities(body)[0]["language"] == "python" for body in bodies)
    joined = "\n".join(words(body, entities(body)[0]) for body in bodies)
    assert joined == code


def test_an_indented_part_of_code_keeps_its_indent() -> None:
    """Where each line is indented, the next part begins with an invisible character that Telegram does not trim."""
    code = "\n".join(f"    line {number} of a long function" for number in range(300))
    second = render(f"```python\ndef f():\n{code}\n```")[1]
    assert second.text.startswith(GUARD + "    line")
    assert entities(second)[0]["offset"] == 0


def test_formatting_goes_on_in_the_next_message() -> None:
    """A bold text over the cut is bold on both sides."""
    bodies = render("**" + "word " * 1500 + "end**")
    assert [formatted(body)[0][0] for body in bodies] == ["bold", "bold"]
    assert [entities(body)[0]["length"] for body in bodies] == [len(body.text) for body in bodies]


def test_of_too_many_entities_the_least_telling_go() -> None:
    """No text is lost, and links stay when italics go."""
    (body,) = render("*i* " * 90 + "[x](https://a.test) " * 60)
    kinds = [entity["type"] for entity in entities(body)]
    assert kinds.count("text_link") == 60
    assert kinds.count("italic") == 40


def test_offsets_count_utf16_units() -> None:
    """An emoji before a bold word moves it by two."""
    (body,) = render("🧪 **bold**")
    assert body.format == {"entities": [{"type": "bold", "offset": 3, "length": 4}]}


def test_a_masked_link_is_shown_with_its_target() -> None:
    """The label links, and the address stands after it."""
    (body,) = render("See [the docs](https://a.test/x?y=1).")
    assert body.text == "See the docs (https://a.test/x?y=1)."
    assert body.format["entities"] == [{"type": "text_link", "offset": 4, "length": 8, "url": "https://a.test/x?y=1"}]


def test_a_mention_by_number_is_only_a_name() -> None:
    """Nobody is notified by a link that the model wrote."""
    (body,) = render("[Ann](tg://user?id=111)")
    assert body == MessageBody("Ann")


@pytest.mark.parametrize(
    "source", ["", "  \n \n", "\u200b", "\x00", "\u202e\ufeff", "&nbsp;", "<br>", "[](tg://x)", "# \n>"]
)
def test_what_nobody_sees_is_no_message(source: str) -> None:
    """Telegram refuses an empty message, so none is made."""
    assert render(source) == []
    assert plain(source) == []


def test_a_quote_holds_code_but_no_quote() -> None:
    """The inner quote is marked in its text."""
    (body,) = render("> a\n> > b\n>\n> ```\n> c\n> ```")
    assert formatted(body) == [("blockquote", "a\n\n> b\n\nc"), ("pre", "c")]


def test_a_ring_in_two_characters_is_not_lost() -> None:
    """Telegram takes combining rings out; composed, the letter stays."""
    (body,) = render("A\u030angstro\u0308m x\u0333")
    assert body.text.startswith("Ångstr")
    assert body.text.endswith("x")


def test_plain_text_is_readable_and_keeps_addresses() -> None:
    """Without formatting there are no marks and no tags, and every address is whole."""
    address = "https://a.test/" + "x" * 300
    (body,) = plain(f"# T\n\n**From**: <b>Ann</b> <ann@mail.test> & `Q1 < Q2` [more]({address})")
    assert body == MessageBody(f"T\n\nFrom: Ann <ann@mail.test> & Q1 < Q2 more ({address})")


STORMS = (
    *(mark * 3000 for mark in ("[", "[a](", "![", "> ", "- ", "*a_ ", "`a", "$a=", "\\(", "<b>", "<!--", "&", "\\[\n")),
    "http://" * 900,
    "(" * 3000 + "https://a.test/" + "(" * 3000,
    "|a" * 2000 + "\n" + "|-" * 2000,
    "\n".join(["> " * 20 + "x"] * 300),
)


@pytest.mark.parametrize("source", STORMS, ids=lambda source: source[:4])
def test_a_storm_of_marks_is_rendered_by_the_rules(source: str) -> None:
    """No text sends rendering astray, however deep it nests; how long it takes is for the benchmarks to say."""
    bodies = render(source)
    assert bodies
    assert [rule for body in bodies for rule in broken_rules(body)] == []
