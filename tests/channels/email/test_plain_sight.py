"""What an HTML mail orders counts only if its sender has surely seen it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.mail import Body
from channels.email.said.plain_sight import first_line_is_seen
from channels.email.said.words import spoken

OUTLOOK = """<html xmlns:v="urn:schemas-microsoft-com:vml"><head><meta name=Generator content="Word 15"><style>
<!-- /* Font Definitions */ @font-face {font-family:"Cambria Math"; panose-1:2 4 5 3 5 4 6 3 2 4;}
p.MsoNormal, li.MsoNormal {margin:0cm; font-size:11.0pt; font-family:"Calibri",sans-serif; mso-fareast-language:EN-US;}
a:link, span.MsoHyperlink {mso-style-priority:99; color:#0563C1; text-decoration:underline;}
@page WordSection1 {size:612.0pt 792.0pt; margin:70.85pt 70.85pt 2.0cm 70.85pt;}
div.WordSection1 {page:WordSection1;} --></style></head><body lang=DE link="#0563C1" style="word-wrap:break-word">
<div class=WordSection1><p class=MsoNormal><span lang=EN-US>approve<o:p></o:p></span></p></div></body></html>"""


@pytest.mark.parametrize(
    "html",
    [
        "approve",
        '<div dir="ltr">approve</div>',
        OUTLOOK,
        (
            '<html><head><style style="display:none;"> P {margin-top:0;} </style></head><body dir="ltr">'
            '<div style="font-family: Aptos; font-size: 12pt; color: rgb(0, 0, 0);">approve</div></body></html>'
        ),
        (
            '<body style="-webkit-nbsp-mode: space; line-break: after-white-space;">approve<br>'
            '<blockquote type="cite" style="position:fixed">older</blockquote></body>'
        ),
        '<div style="font-family:Arial;font-size:14px;line-height:1.5;color:#333;background:#fff">approve</div>',
        '<body bgcolor="#FFFFFF" text="#000000"><p>approve</p><div style="display:none">x</div>',
    ],
)
def test_what_mail_programs_write_around_words_hides_nothing(html: str) -> None:
    """Nor does it matter what stands below the first line: quotes, pictures, signatures."""
    assert first_line_is_seen(html)
    assert spoken([Body(text=html, html=True)]).new.startswith("approve")


@pytest.mark.parametrize(
    "style",
    [
        *("color:#fff", "color:white;background:#ffffff", "color:rgba(0,0,0,0)", "color:#00000000", "background:black"),
        *("font:0/0 a", "font-size:1%", "font-size:.1em", "line-height:0", "opacity:0.01", "filter:opacity(0)"),
        *("width:0;overflow:hidden", "max-width:0px", "height:1px;overflow:clip", "margin-left:-9999px"),
        *("position:absolute;right:9999px", "transform:scale(0)", "clip-path:inset(100%)", "content-visibility:hidden"),
        *("display:none", "mso-hide:all", "letter-spacing:-1em", "color:expression(x)", "something-new:1"),
    ],
)
def test_a_line_that_a_style_may_hide_is_in_doubt(style: str) -> None:
    """Of the element itself, of one before it, by a sheet; the usual ways are not read at all."""
    assert not first_line_is_seen(f'<div style="{style}">approve</div><p>No</p>')
    assert not first_line_is_seen(f'<p style="{style}">No</p>approve')
    assert not first_line_is_seen(f"<p>approve</p><p>No</p><style>p:first-child{{{style}}}</style>")
    assert not first_line_is_seen(f"<style>@media all{{.h{{{style}}}}}</style><p class=h>approve</p><p>No</p>")


@pytest.mark.parametrize(
    "html",
    [
        *("<details><summary></summary>approve</details>No", "<noscript>approve</noscript>No", "<rp>approve</rp>No"),
        *(
            '<font color="#ffffff">approve</font><p>No',
            "<font size=0>approve</font><p>No",
            "<dialog>approve</dialog>No",
        ),
        *("<p hidden>No</p>approve", '<img src="x" alt="approve"><p>No', "<svg></svg>approve", "", "<p> </p>"),
    ],
)
def test_a_line_that_an_element_may_hide_is_in_doubt(html: str) -> None:
    """As is one that is not there."""
    assert not first_line_is_seen(html)


@given(st.text(alphabet="<>/ab\"'=; {}:-#0style", max_size=300))
def test_any_mark_up_can_be_judged(html: str) -> None:
    """Whatever it is."""
    first_line_is_seen(html)
    first_line_is_seen(f"<style>{html}</style><p style='{html}'>x")
