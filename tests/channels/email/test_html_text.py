"""The text of HTML as a person sees it."""

from __future__ import annotations

import pytest

from channels.email.said.html_text import html_lines
from channels.email.said.lines import Mark, written


def html_to_text(html: str) -> str:
    """What a person sees of an HTML document, as text."""
    return written(html_lines(html))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<div>a</div><div>b</div>", "a\nb"),
        ("<div>a</div><div><br></div><div>b</div>", "a\n\nb"),
        ("a<br>b<br><br>c", "a\nb\n\nc"),
        ("<p class=MsoNormal>a</p><p class=MsoNormal>&nbsp;</p><p class=MsoNormal>b</p>", "a\n\nb"),
        ("<p>a</p><p>b</p>", "a\n\nb"),
        ("<td>a<td>b", "a | b"),
        ("<table><tr><td>a<br>b</td><td>c</td></tr><tr><td></td><td>d</td></tr></table>e", "a\nb\nc\nd\n\ne"),
        ("<table><tr><td><table><tr><td>a</td><td>b</td></tr></table></td><td>c</td></tr></table>", "a | b\n\nc"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<h1>Title</h1>text", "Title\n\ntext"),
        ("<pre>  a\n\n  b</pre>", "  a\n\n  b"),
        ("a<hr>b", "a\n---\nb"),
        ('<img alt="😀"> <img alt="a chart"> <img src="https://example.test/pixel.gif">', "😀 [a chart]"),
        ("<b>bo</b>ld and <i> blank </i>s", "bold and blank s"),
        ("&lt;b&gt; &amp;amp; &#x41;", "<b> &amp; A"),
        ("a < b and 3<4", "a < b and 3<4"),
        ("a <b", "a <b"),
        ("a<!-- hidden -->b<!---->c<![if !mso]>d<![endif]><?xml version?>e", "abcde"),
        ("<title>no</title><script>no</script><style>no</style>yes", "yes"),
        ("<head><title>no</title><p>yes", "yes"),
        ("soft\xadly\u200b spoken", "softly spoken"),
        ('<a href="https://example.test/a">https://example.test/a</a>', "https://example.test/a"),
        ('<a href="https://example.test/a">here</a>', "here (https://example.test/a)"),
        ('<a href="mailto:a@example.test?subject=x">a@example.test</a>', "a@example.test"),
        ('<a href="javascript:alert(1)">here</a> <a href="data:text/html,x">there</a>', "here there"),
        ('<a href="https://example.test/a"><img></a>x', "x"),
        ("<blockquote>a<blockquote>b</blockquote></blockquote>c", "> a\n>\n> > b\n\nc"),
        ("<p title='a>b'>c</p><p title=\"it's\">d</p>", "c\n\nd"),
        ("<p title='not closed>c</p><b>d</b>", "c\n\nd"),
        ("<span style='display:none'>no<div>no</span>no</div></span>yes", "yes"),
        ("<div style='font-size:0'>no<p style='font-size:12px'>yes</p></div>", "yes"),
        ("<style>.x, p#y { Display : NONE }</style><i class='a x'>no</i><p id=y>no</p><p>yes</p>", "yes"),
        ("<style>@media print { .x{display:none} } .y{display:none}</style><i class=x>yes</i><i class=y>no</i>", "yes"),
        ("<style>.x{display:none}</style><style>.x{display:block}</style><p class=x>yes", "yes"),
    ],
)
def test_html_as_a_person_sees_it(html: str, text: str) -> None:
    """Blocks are lines, links and pictures are told, what is hidden is left out."""
    assert html_to_text(html) == text


@pytest.mark.parametrize(
    ("html", "mark"),
    [
        ('<div class="gmail_attr">Bot:</div>', Mark.ATTRIBUTION),
        ('<div class="moz-cite-prefix">Bot:</div>', Mark.ATTRIBUTION),
        ('<div id="divRplyFwdMsg">From: Bot</div>', Mark.HISTORY),
        ('<div style="border:none; border-top:solid #E1E1E1 1.0pt; padding:3.0pt 0in 0in 0in">Bot</div>', Mark.HISTORY),
        ('<div class="moz-forward-container">Bot</div>', Mark.FORWARD),
        ('<div id="Signature">Alice</div>', Mark.SIGNATURE),
        ("<div>Alice</div>", Mark.NONE),
    ],
)
def test_marks_of_clients_are_told(html: str, mark: Mark) -> None:
    """Clients' own mark-up tells quotes in whatever language."""
    assert [line.mark for line in html_lines(html)] == [mark]


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "bottom",
        "".join(f"<font size={size}><p>" for size in range(20_000)) + "</font>" * 60_000 + "bottom",
        "<blockquote><table><tr><td><ul><li>" * 20_000 + "bottom",
        "<a " + " ".join(f"x{index}" for index in range(100_000)) + ">bottom",
        '<a ">"' * 100_000 + ">bottom",
        "<a " * 300_000 + "'bottom",
        "<style>" + "@media{" * 100_000 + "</style>bottom",
        "<style>" + ".a{display:none}" * 50_000 + "</style>" + "<p class='b c'>x" * 20_000 + "bottom",
        "<i>" * 100_000 + "</b>" * 100_000 + "bottom",
        "<p style='/*'>" * 50_000 + "bottom",
        "<" * 1_000_000 + "bottom",
        "&" * 1_000_000 + "bottom",
    ],
    ids=lambda html: html[:20],
)
def test_html_made_to_take_long_is_read(html: str) -> None:
    """Work that grows with the square of the input would run into the time limit of the tests."""
    assert html_to_text(html).endswith("bottom")


def test_a_comment_that_is_not_closed_hides_the_rest() -> None:
    """As it does in browsers; and it is looked for once."""
    assert html_to_text("seen" + "<!--" * 300_000 + "hidden") == "seen"


def test_what_is_read_and_written_is_bounded() -> None:
    """A mail can be larger than anybody reads."""
    assert len(html_to_text("<blockquote>x" * 500_000)) < 10_000_000
