"""Markdown as a mail."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given

from channels._text.clean import clean
from channels._text.layout import lay_out
from channels._text.parse import parse
from channels.email.render import REPEAT_MARK, mark_repeat, plain, render
from channels.email.writing.body import html_of
from channels.email.writing.html import document
from tests.channels.text.markdown_cases import Case, Seen, complaints, load_cases
from tests.channels.text.strategies import markdown
from zerobot.core.channel import MessageBody

VOID = {"br", "hr", "meta"}
TAGS = {
    "html", "head", "body", "p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "ul", "ol", "li",
    "table", "tr", "th", "td", "strong", "em", "u", "s", "code", "a", *VOID,
}  # fmt: skip
ATTRIBUTES = {"style", "dir", "href", "rel", "start", "value", "charset"}
BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "ul", "ol", "li", "table", "tr"}
KINDS = {"strong": "bold", "em": "italic", "s": "strike", "a": "link", "code": "code", "pre": "code"}


class Reader(HTMLParser):
    """Reads HTML as a mail program shows it, and notes what must not be there."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.spans: list[tuple[str, str, str]] = []
        self.bad: list[str] = []
        self._open: list[tuple[str, int, str]] = []
        self._lists: list[int | None] = []
        self.feed(page)
        self.close()
        self.bad += [f"<{tag}> is never closed" for tag, _, _ in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.bad += [f"<{tag}>"] if tag not in TAGS else []
        self.bad += [f"{name}=" for name in given if name not in ATTRIBUTES or len(given) != len(attrs)]
        if "href" in given and not given["href"].lower().startswith(("http://", "https://")):
            self.bad.append(f"a link to {given['href']}")
        if "(" in given.get("style", ""):
            self.bad.append("a style that may load something")
        if tag in BLOCKS or tag == "br":
            self.text += "\n"
        if tag in {"ul", "ol"}:
            self._lists.append(int(given.get("start", "1")) if tag == "ol" else None)
        if tag == "li":
            self._bullet(given)
        if tag in {"th", "td"}:
            self.text += " "
        if tag not in VOID:
            self._open.append((tag, len(self.text), given.get("href", "")))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            self.bad.append(f"</{tag}> closes nothing")
            return
        name, start, address = self._open.pop()
        if name in {"ul", "ol"}:
            self._lists.pop()
        if name in KINDS:
            self.spans.append((KINDS[name], self.text[start:].removeprefix("\n"), address))
        if name in BLOCKS:
            self.text += "\n"

    def handle_data(self, data: str) -> None:
        names = [tag for tag, _, _ in self._open]
        if "pre" in names:
            data = data.removeprefix("\n") if self.get_starttag_text_is_last() else data
        elif "code" not in names:
            data = data.replace("\n", " ")
        self.text += data

    def get_starttag_text_is_last(self) -> bool:
        """Whether nothing stands yet in the innermost tag."""
        return self._open[-1][1] == len(self.text)

    def _bullet(self, given: dict[str, str]) -> None:
        if not self._lists:
            self.bad.append("<li> without a list")
            return
        number = self._lists[-1]
        depth = "  " * (len(self._lists) - 1)
        if number is None:
            self.text += depth + "• "
        else:
            number = int(given.get("value", number))
            self.text += f"{depth}{number}. "
            self._lists[-1] = number + 1


def read(body: MessageBody) -> Reader:
    return Reader(document(html_of(body)))


def words(text: str) -> list[str]:
    return sorted("".join(char for char in text if char.isalnum()))


@pytest.mark.parametrize("case", load_cases(), ids=str)
def test_a_case_reads_as_it_should(case: Case) -> None:
    """What a reader sees of a model's Markdown has the properties of the case; a mail is never split."""
    case.want.pop("split", None)
    bodies = render(case.source)
    assert len(bodies) <= 1
    readers = [read(body) for body in bodies]
    assert [reader.bad for reader in readers] == [[] for _ in bodies]
    assert complaints(case, [Seen(reader.text, tuple(reader.spans)) for reader in readers]) == []


@given(markdown)
def test_nothing_in_a_mail_is_active_and_its_html_is_whole(text: str) -> None:
    """No script, no picture, no event, no link but to the web, whatever a model writes; each tag is closed."""
    for body in render(text):
        assert read(body).bad == []
        assert read(mark_repeat(body)).bad == []


@given(markdown)
def test_both_forms_keep_the_text(text: str) -> None:
    """Whoever reads plain text reads the same letters and figures as whoever reads HTML, and none is lost."""
    laid_out = lay_out(parse(text)).text
    for body in render(text):
        assert words(body.text) == words(laid_out)
        if "://" not in text and not any(char.isdigit() for char in text):
            assert words(read(body).text) == words(laid_out)


@given(markdown)
def test_plain_text_has_no_characters_that_act(text: str) -> None:
    """Plain text is clean: no control characters, no halves of characters, no turned order."""
    for body in render(text):
        assert clean(body.text) == body.text


def test_nothing_visible_is_no_mail() -> None:
    """A mail without words is not sent."""
    assert render(" \n\u200b\n") == []


def test_quotations_are_marked_in_plain_text() -> None:
    """Plain text has nothing else to say that somebody else is speaking."""
    (body,) = render("He wrote:\n\n> one\n> two\n>\n> > three\n\nSo.")
    assert body.text == "He wrote:\n\n> one\n> two\n>\n> > three\n\nSo."


def test_code_can_be_copied_from_plain_text() -> None:
    """Its blanks stay, and nothing invisible is added."""
    (body,) = render("```py\n  a = 1\n\n    b = 2\n```")
    assert body.text == "  a = 1\n\n    b = 2"
    assert "<pre" in html_of(body)


def test_the_authors_numbers_stay() -> None:
    """A list that begins at 3 or leaves one out says so in HTML too."""
    (body,) = render("3. a\n4. b\n7. c")
    assert [line.split()[0] for line in read(body).text.split("\n") if line.strip()] == ["3.", "4.", "7."]


def test_a_masked_link_shows_where_it_goes() -> None:
    """The label says what the model wants; the address behind it says what is so."""
    (body,) = render("[your bank](https://evil.test/x)")
    assert "your bank (https://evil.test/x)" in body.text
    assert "your bank</a> (https://evil.test/x)" in html_of(body)


def test_an_address_is_followed_as_it_was_written() -> None:
    """What looks like a character reference in it is none."""
    (body,) = render("https://a.test/?a=1&copy=2&lt;")
    assert read(body).spans == [("link", "https://a.test/?a=1&copy=2&lt", "https://a.test/?a=1&copy=2&lt")]


def test_a_mark_of_a_repeat_stands_in_both_forms() -> None:
    """A second copy says so, however it is read."""
    body = mark_repeat(render("Hello")[0])
    assert body.text == f"{REPEAT_MARK}\n\nHello"
    assert html_of(body).startswith(f"<p>{REPEAT_MARK}</p>")
    assert mark_repeat(plain(body)).format == {}
