"""Approvals by mail: a request as a mail, and the answer to it, which names its code in the subject. Pure."""

from __future__ import annotations

import re
from html import escape

from channels._text.prompt import as_text
from channels.email.mail import Mail
from channels.email.writing.body import with_html
from channels.email.writing.html import paragraph
from zerobot.core.approvals import ApprovalPrompt
from zerobot.core.channel import MessageBody
from zerobot.core.envelope import Button

_TOKEN = re.compile(r"\[zerobot ([0-9A-Z]{4,16})\]")
_WORDS = {"approve": Button.APPROVE, "always": Button.ALWAYS, "deny": Button.DENY}
_TITLE = 100


def subject(prompt: ApprovalPrompt) -> str:
    """The subject of a request, or of what became of it."""
    title = prompt.lines[0].text[:_TITLE] if prompt.lines else ""
    return title if not prompt.open or prompt.answer else f"[zerobot {prompt.code}] {title}"


def body(prompt: ApprovalPrompt) -> MessageBody:
    """All lines of a request as they are, and how it is answered."""
    text, how = as_text(prompt.lines), _how(prompt)
    html = f"<pre>{escape(text)}</pre>\n" + "".join(map(paragraph, how))
    return with_html("\n\n".join((text, *how)), html)


def answer(mail: Mail, text: str) -> str | None:
    """The command of the chat that an answer to a request means; None: it is none.

    A yes stands alone on its line: "approve? never!" and "always ask me" are none. A no may have its reason behind it.

    Args:
        mail: Whose subject names the code.
        text: What was written, without quotes.
    """
    token = _TOKEN.search(mail.subject)
    first, _, rest = text.strip().partition("\n")[0].partition(" ")
    word = first.strip(" .,:;!*_").lower()
    button = _WORDS.get(word)
    if token is None or button is None:
        return None
    code = token[1]
    if button is Button.DENY:
        return f"/deny {code} {rest.strip()}".rstrip()
    if rest.strip(" .,:;!*_"):
        return None
    return f"/approve {code} always" if button is Button.ALWAYS else f"/approve {code}"


def _how(prompt: ApprovalPrompt) -> list[str]:
    if not prompt.open:
        return []
    if prompt.answer:
        return [prompt.answer.replace("`", "")]
    always = ", always (it is then allowed in that chat)" if prompt.grantable else ""
    return [
        (
            "To decide, answer this mail and leave its subject as it is. The first line counts: "
            f"approve{always}, alone on that line, or deny, with a reason behind it if you like."
        ),
        "The decision counts once; whoever of the operators is first decides, here or elsewhere.",
    ]
