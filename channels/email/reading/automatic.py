"""Mail that nobody wrote, or that nobody waits for an answer to (RFC 3834), and the bot's own."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Literal

from channels.email.mail import Mail
from channels.email.own_ids import read_own_id
from channels.email.reading.comments import without_comments
from channels.email.reading.parameters import Parameterized, read_content_type

Reason = Literal[
    "auto_generated",
    "auto_reply",
    "bounce",
    "bulk",
    "calendar",
    "list",
    "loop",
    "no_reply",
    "no_sender",
    "null_sender",
    "own_mail",
    "receipt",
    "report",
]
"""Why a mail is not answered, for the log."""

_REPORTS: dict[str, Reason] = {
    "delivery-status": "bounce",  # RFC 3464
    "disposition-notification": "receipt",  # RFC 8098
}
_TOP_LEVEL: dict[str, Reason] = {
    "message/delivery-status": "bounce",
    "message/disposition-notification": "receipt",
    "multipart/report": "report",
}
_PRECEDENCES: dict[str, Reason] = {"bulk": "bulk", "junk": "bulk", "list": "list", "auto_reply": "auto_reply"}
# From before RFC 3834: each is written by some program for out-of-office notes. Present is enough, but for a `no`.
_AUTO_REPLY_FIELDS = (
    "x-autoreply",
    "x-auto-reply",
    "x-autoreply-from",
    "x-autorespond",
    "x-autoresponder",
    "x-mail-autoreply",
    "x-vacation",
)
_AUTO_GENERATED_FIELDS = ("x-cron-env", "x-ms-exchange-generated-message-source")
_LIST_FIELDS = ("mailing-list", "x-mailing-list", "x-beenthere", "x-mailman-version", "x-ml-name", "x-listname")
# What Exchange puts before the subject of an out-of-office note, by language. People write such words too, so they
# count only beside the field by which Exchange asks for no answer, which alone is on people's mail as well.
_OUT_OF_OFFICE = re.compile(
    r"(?:automatic reply|auto(?:matic)?[ -]?(?:reply|response)|out of (?:the )?office|automatische antwort|"
    r"abwesenheitsnotiz|abwesend|réponse automatique|absence du bureau|respuesta automática|fuera de la oficina|"
    r"risposta automatica|fuori sede|resposta automática|automatisch antwoord|afwezigheidsbericht|autosvar|"
    r"automatiskt? svar|automaattinen vastaus|odpowiedź automatyczna|automatická odpověď|automatikus válasz|"
    r"otomatik yanıt|автоматический ответ|автоматична відповідь|自动答复|自动回复|自動回覆|自動応答|자동 회신)",
    re.IGNORECASE,
)
_BOUNCER = re.compile(r"mailer-?daemon|mail-daemon|postmaster|mdaemon")
_NOBODY = re.compile(r"(?:.*[._+-])?(?:no|do[._-]?not|dont)[._-]?(?:reply|respond|answer)(?:[._+-].*)?")
# RFC 3834, section 2, and RFC 2142, section 6.
_LIST_PROGRAM = re.compile(r"owner-.+|.+-(?:owner|request|bounces?)|bounces?(?:[+-].*)?|majordomo|listserv|mailman")
# An invitation is answered as long as somebody wrote something to it.
_INVITATIONS = frozenset({"", "REQUEST", "PUBLISH", "ADD"})


def why_unanswered(mail: Mail, own: AbstractSet[str]) -> Reason | None:
    """Tell why a mail is not answered.

    Args:
        mail: The mail.
        own: The bot's own addresses, as `Mailbox.address` has them.

    Returns:
        None when a person may have written it and may want an answer.
    """
    return (
        _from_ourselves(mail, own)
        or _report(mail)
        or _bounce(mail)
        or _submitted(mail)
        or _precedence(mail)
        or _list(mail)
        or _calendar(mail)
        or _to_nobody(mail)
    )


def _from_ourselves(mail: Mail, own: AbstractSet[str]) -> Reason | None:
    if mail.sender is not None and mail.sender.address in own:
        return "own_mail"
    return "own_mail" if read_own_id(mail.message_id, own) is not None else None


def _report(mail: Mail) -> Reason | None:
    """A report on an earlier mail, by its type (RFC 6522)."""
    kind = _content_type(mail)
    if kind.value == "multipart/report":
        return _REPORTS.get(kind.token("report-type").lower(), "report")
    return _TOP_LEVEL.get(kind.value)


def _bounce(mail: Mail) -> Reason | None:
    # Exim's bounces are plain text; this field names whom they could not reach.
    if _BOUNCER.fullmatch(_local(mail)) or mail.values("x-failed-recipients"):
        return "bounce"
    # Sendmail's From need not be an address.
    if mail.sender is None and any("mailer-daemon" in value.lower() for value in mail.values("from")):
        return "bounce"
    return None


def _submitted(mail: Mail) -> Reason | None:
    """What the mail says of itself: RFC 3834, section 5, and what programs wrote before it."""
    said = [_word(value) for value in mail.values("auto-submitted")]
    if any(word.startswith("auto-replied") for word in said):
        return "auto_reply"
    if any(word != "no" for word in said):
        return "auto_generated"
    if any(_word(value) != "no" for name in _AUTO_REPLY_FIELDS for value in mail.values(name)):
        return "auto_reply"
    if any(
        "autorespon" in value.lower() for value in (*mail.values("x-post-messageclass"), *mail.values("delivered-to"))
    ):
        return "auto_reply"
    if mail.values("x-auto-response-suppress") and _OUT_OF_OFFICE.match(mail.subject):
        return "auto_reply"
    return "auto_generated" if any(mail.values(name) for name in _AUTO_GENERATED_FIELDS) else None


def _precedence(mail: Mail) -> Reason | None:
    found = (_PRECEDENCES.get(_word(value).replace("-", "_")) for value in mail.values("precedence"))
    return next((reason for reason in found if reason is not None), None)


def _list(mail: Mail) -> Reason | None:
    # RFC 2369 and RFC 2919; every field of theirs begins like this.
    if any(name.startswith("list-") or name in _LIST_FIELDS for name, _ in mail.fields):
        return "list"
    if _LIST_PROGRAM.fullmatch(_local(mail)):
        return "list"
    return "loop" if mail.values("x-loop") else None


def _calendar(mail: Mail) -> Reason | None:
    """The traffic of calendars: answers, cancellations, and invitations without a word."""
    if not mail.calendar and _content_type(mail).value != "text/calendar":
        return None
    return None if mail.calendar in _INVITATIONS and mail.bodies else "calendar"


def _to_nobody(mail: Mail) -> Reason | None:
    """There is nobody to answer to: a null return path (RFC 5321, section 4.5.5), or no sender."""
    # The topmost is the one that our server wrote; a sender may have written another.
    if [without_comments(value).strip() for value in mail.values("return-path")[:1]] in (["<>"], [""]):
        return "null_sender"
    if _NOBODY.fullmatch(_local(mail)):
        return "no_reply"
    return "no_sender" if mail.sender is None else None


def _local(mail: Mail) -> str:
    """What stands before the `@` of the sender; empty when there is none."""
    return mail.sender.address.rpartition("@")[0] if mail.sender is not None else ""


def _content_type(mail: Mail) -> Parameterized:
    return read_content_type(next(iter(mail.values("content-type")), "").encode("latin-1", "replace"))


def _word(value: str) -> str:
    """The first word of a field, in lower case, without comments and parameters."""
    words = without_comments(value).partition(";")[0].split()
    return words[0].lower() if words else ""
