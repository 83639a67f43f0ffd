"""An approval prompt as a Telegram message with buttons, and what a pressed button says; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from channels._text.measure import utf16_len
from channels._text.prompt import as_text, line_text, shortened
from channels.telegram.units import MESSAGE_UNITS
from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.channel import MessageBody
from zerobot.core.envelope import Button
from zerobot.core.ids import ApprovalId

# Button data is 1 to 64 bytes: https://core.telegram.org/bots/api#inlinekeyboardbutton. A verb, a colon and an
# approval's id of 22 characters are 24, whatever the tool or the call is named.
_VERBS = {"a": Button.APPROVE, "g": Button.ALWAYS, "d": Button.DENY}
_LABELS = {Button.APPROVE: "Approve", Button.ALWAYS: "Always in this chat", Button.DENY: "Deny"}
_DATA_BYTES = 64
_IN_FILE = "The whole request is in the file above."


@dataclass(frozen=True, slots=True)
class ButtonFace:
    """One button of a message."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class PromptView:
    """How a prompt is shown."""

    body: MessageBody
    rows: tuple[tuple[ButtonFace, ...], ...]
    document: str | None
    """Sent as a file before the message."""


def read_press(data: str) -> tuple[Button, ApprovalId]:
    """Read what a button of ours carries; the data comes from the presser's client and may be anything.

    Returns:
        For data that no button of ours has: a denial of an approval that cannot exist, so that it is answered like
        any other unknown one.
    """
    verb, _, approval = data.partition(":")
    if verb in _VERBS and approval and len(data.encode("utf-8", "replace")) <= _DATA_BYTES:
        return _VERBS[verb], ApprovalId(approval)
    return Button.DENY, ApprovalId("")


def view(prompt: ApprovalPrompt) -> PromptView:
    """Lay out a prompt: all its lines in one message, or, when that is too short, all of them in a file as well."""
    document = prompt.attachment
    lines = prompt.lines
    body = _body(lines)
    if not _fits(lines):
        document = document or as_text(lines)
        body = _body(shortened(lines, _fits, _IN_FILE))
    return PromptView(body, _rows(prompt) if prompt.open else (), document)


def _fits(lines: Sequence[PromptLine]) -> bool:
    return utf16_len(_body(lines).text) <= MESSAGE_UNITS


def _rows(prompt: ApprovalPrompt) -> tuple[tuple[ButtonFace, ...], ...]:
    faces = {button: ButtonFace(_LABELS[button], f"{verb}:{prompt.approval}") for verb, button in _VERBS.items()}
    first = (faces[Button.APPROVE], faces[Button.DENY])
    return (first, (faces[Button.ALWAYS],)) if prompt.grantable else (first,)


def _body(lines: Sequence[PromptLine]) -> MessageBody:
    """Set the lines: what names a thing in bold, arguments as one block of code, notes in italics."""
    text, entities = "", list[dict[str, object]]()

    def add(piece: str, kind: str = "") -> None:
        nonlocal text
        if kind and piece:
            entities.append({"type": kind, "offset": utf16_len(text), "length": utf16_len(piece)})
        text += piece

    for kind, group in groupby(lines, key=lambda line: line.kind):
        block = list(group)
        if text:
            text += "\n"
        if kind == "argument":
            add("\n".join(line_text(line) for line in block), "pre")
            continue
        for number, line in enumerate(block):
            text += "\n" if number else ""
            if kind == "field" and line.label:
                add(f"{line.label}:", "bold")
                text += f" {line.text}"
            else:
                add(line_text(line), {"title": "bold", "outcome": "bold", "note": "italic"}.get(kind, ""))
    return MessageBody(text, {"entities": entities} if entities else {})
