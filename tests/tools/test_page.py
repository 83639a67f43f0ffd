"""The text of what a server sent."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerobot.tools.page import UnreadableError, cleaned, decoded, page_text
from zerobot.tools.page_child import to_markdown

BASE = "https://site.test/dir/page"


def md(html: str, limit: int = 100_000) -> str:
    """A body as Markdown."""
    return to_markdown(f"<body>{html}", BASE, limit)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>A</h2><p>b</p><p>c<br>d", "## A\n\nb\n\nc\nd"),
        ("a <b>b</b>, <em> c </em> d<code>e</code><i></i><b><p>f</p></b>g", "a **b**, *c* d`e`**f**\n\ng"),
        ("<ul><li><li>a</ul><h3></h3>b", "- \n- a\n\n### \n\nb"),
        ("<ul><li>a<li>b<ol><li>c</ol></ul>after", "- a\n- b\n  1. c\n\nafter"),
        ("before<ul><li><p>a</p><p>b</p></ul>", "before\n\n- a\n\n  b"),
        ("<table><tr><th>a<th>b<tr><td><p>1</p><td>2 <br> 3</table>", "| a | b\n| 1 | 2 3"),
        ("<table><tr><td><h1>a</h1><td><ul><li>b</ul></table>", "# a\n\n- b"),
        ("<pre>a\n  <b>b</b>\n</pre>c", "```\na\n  b\n```\n\nc"),
        ("<blockquote><p>a<p>b</blockquote>c<hr>d", "> a\n\n> b\n\nc\n\n---\n\nd"),
        ("<a href='x?y'>a</a> <a href=#z>b</a> <a href=javascript:1>c</a> <a href='//o.test'> </a>",
         "[a](https://site.test/dir/x?y) b c"),
        ("<a href='http://[x'>a</a>", "a"),
        ("<img alt='a  b'><img>", "[picture: a b]"),
        ("a<script>b</script><style>c</style><template>d</template><!-- e --><svg><text>f</text></svg>", "a"),
        ("a<p hidden>b<p style='color: red; DISPLAY : none'>c<p style='visibility:hidden'>d", "a"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_page_keeps_its_shape(html: str, text: str) -> None:
    """Headings, lists, tables, code, quotes and links are told in Markdown; what nobody sees is left out."""
    assert md(html) == text


def test_a_long_page_ends_at_the_limit() -> None:
    """No more is converted than is shown."""
    assert len(md("<p>word word</p>" * 1_000, limit=100)) < 130


SOUP = ("<b>", "</b>", "<p>", "<li>", "<ul>", "</ul>", "<td>", "<table>", "<pre>", "</pre>", "<a>", "x", "&", "\n")


@given(st.lists(st.sampled_from(SOUP)))
def test_any_tag_soup_is_read(pieces: list[str]) -> None:
    """Unclosed, crossed and stray tags: no words are lost and nothing raises."""
    assert md("".join(pieces)).count("x") == pieces.count("x")


# -- types and charsets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b'{"a": 1}', "application/json", '{"a": 1}'),
        (b"<a/>", "application/atom+xml; charset=utf-8", "<a/>"),
        (b"a,b", "text/csv", "a,b"),
        (b"plain <b>", "", "plain <b>"),
        (b"  <!DOCTYPE html><p>a", "", "a"),
        (b"<!-- x --><html><p>a", "", "a"),
        (b"<!---->" * 280, "", "<!---->" * 280),
        (b"see <html>", "", "see <html>"),
        (b"<p>a", "TEXT/HTML; Charset=UTF-8", "a"),
        (b"a", "text/plain; charset*=broken''%", "a"),
        (b"a", "text/plain/b; x", "a"),
        ("größe".encode("latin-1"), 'text/plain; a=b; charset="iso-8859-1"', "größe"),
        (b"a", "x", "a"),
        ("a".encode("utf-16"), "text/plain", "a"),
    ],
)
async def test_texts_are_shown_by_their_type(data: bytes, kind: str, text: str) -> None:
    """Pages are converted, other texts are shown as they are; without a type their beginning decides."""
    assert await page_text(data, kind, BASE) == text


@pytest.mark.parametrize(
    ("data", "kind"), [(b"a\0b", ""), (b"a\0b", "text/html"), (b"a", "application/pdf"), (b"a", "video/mp4")]
)
async def test_other_types_are_not_shown(data: bytes, kind: str) -> None:
    """It says which type it is; bytes that are no text are none, whatever the server calls them."""
    with pytest.raises(UnreadableError, match="it is not text" if b"\0" in data else f"it is {kind} and not text"):
        await page_text(data, kind, BASE)


@pytest.mark.parametrize(
    ("data", "charset", "html", "text"),
    [
        ("größe".encode(), "", False, "größe"),
        ("größe".encode("latin-1"), "", False, "größe"),
        ("“a”".encode("cp1252"), "iso-8859-1", False, "“a”"),
        ("größe".encode("utf-16"), "utf-8", False, "größe"),
        ("\ufeffgröße".encode(), "", False, "größe"),
        ("привет".encode("koi8-r"), "koi8-r", False, "привет"),
        ("日本".encode("shift_jis"), "Shift_JIS".lower(), False, "日本"),
        ("<meta charset=gb2312>中".encode("gb2312"), "", True, "<meta charset=gb2312>中"),
        ("größe".encode(), "no-such-charset", False, "größe"),
        (b"\xff\xfea", "utf-8", False, "\ufffd\ufffda"),
        (b"a\xe9", "utf-8", False, "a\ufffd"),
        (b"616263", "hex", False, "616263"),
        (b"a-b", "punycode", False, "a-b"),
        (b"a-b", "idna", False, "a-b"),
        (b"\\x41", "unicode_escape", False, "\\x41"),
        (b"abc", "utf-7", False, "abc"),
    ],
)
def test_a_charset_is_found(data: bytes, charset: str, html: bool, text: str) -> None:  # noqa: FBT001 - a table's column
    """The byte order mark, the header, the page itself, UTF-8, Windows: in this order, and only charsets of the Web."""
    assert decoded(data, charset, html=html) == text


@given(st.binary(max_size=64), st.text(max_size=20))
def test_any_bytes_are_decoded(data: bytes, charset: str) -> None:
    """Whatever a server sends or says, there is a text."""
    assert isinstance(decoded(data, charset, html=True), str)


def test_hidden_characters_are_taken_out() -> None:
    """Line ends and blanks become ordinary ones; what nobody sees goes."""
    assert cleaned("a\r\nb\rc\u2028d\u00a0e\u00adf\u200bg\U000e0041h\x1b[0mi\tj") == "a\nb\nc\nd efgh[0mi\tj"


# -- pages that fight back --------------------------------------------------------------------------------------------


ENDLESS = b"<div>" * 400_000
"""Takes minutes."""


def conversions() -> list[int]:
    """The processes of this one that convert a page."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in children if b"page_child" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def conversion() -> int:
    """The process that converts a page, as soon as there is one."""
    while not (found := conversions()):  # noqa: ASYNC110 - a process of the system tells nobody that it is there
        await asyncio.sleep(0)
    return found[0]


async def test_a_page_that_takes_too_long_is_given_up() -> None:
    """The process that converts it is ended; the daemon goes on."""
    with pytest.raises(UnreadableError, match="takes too long"):
        await page_text(ENDLESS, "text/html", BASE, seconds=0.3)
    assert conversions() == []


async def test_a_page_that_cannot_be_read_is_told() -> None:
    """Whatever ends that process before it is done, the model reads that there is nothing."""
    reading = asyncio.create_task(page_text(ENDLESS, "text/html", BASE))
    os.kill(await conversion(), signal.SIGKILL)
    with pytest.raises(UnreadableError, match="cannot be read"):
        await reading


async def test_a_stop_ends_the_conversion() -> None:
    """No process is left behind."""
    reading = asyncio.create_task(page_text(ENDLESS, "text/html", BASE))
    await conversion()
    reading.cancel()
    await asyncio.wait({reading})
    assert reading.cancelled()
    assert conversions() == []
