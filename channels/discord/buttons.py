"""An approval prompt as a Discord message with buttons and a form, and what a press says; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from channels._text.measure import utf16_len
from channels._text.prompt import as_text, line_text, shortened
from channels.discord.markup import MESSAGE_CHARACTERS, code_block, escape, holds_fence
from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.channel import MessageBody
from zerobot.core.envelope import Button
from zerobot.core.ids import ApprovalId

# A custom id has at most 100 characters: https://discord.com/developers/docs/components/reference#button. A verb, a
# colon and an approval's id of 22 characters are 24, whatever the tool is named. It says all that a press needs, so
# buttons work in the next process too.
_CUSTOM_ID = 100
_WITH_REASON = "r"
_VERBS = {"a": Button.APPROVE, "g": Button.ALWAYS, "d": Button.DENY, _WITH_REASON: Button.DENY}
_LABELS = {"a": "Approve", "g": "Always in this chat", "d": "Deny", _WITH_REASON: "Deny with reason"}
# https://discord.com/developers/docs/components/reference#button-button-styles
_STYLES = {"a": 3, "g": 2, "d": 4, _WITH_REASON: 2}
_ROW, _BUTTON, _TEXT_INPUT = 1, 2, 4
_PARAGRAPH = 2
_REASON_CHARACTERS = 1000
_IN_FILE = "The whole request is in the file."


@dataclass(frozen=True, slots=True)
class Verb:
    """What a button of ours says."""

    button: Button
    approval: ApprovalId
    opens_form: bool = False


@dataclass(frozen=True, slots=True)
class PromptView:
    """How a prompt is shown."""

    body: MessageBody
    components: list[dict[str, object]]
    document: str | None
    """Sent as a file with the message."""


def read_press(data: str) -> Verb:
    """Read what a button of ours carries; the data comes from the presser's client and may be anything.

    Returns:
        For data that no button of ours has: a denial of an approval that cannot exist, so that it is answered like
        any other unknown one.
    """
    verb, _, approval = data.partition(":")
    if verb in _VERBS and approval and len(data) <= _CUSTOM_ID:
        return Verb(_VERBS[verb], ApprovalId(approval), opens_form=verb == _WITH_REASON)
    return Verb(Button.DENY, ApprovalId(""))


def view(prompt: ApprovalPrompt) -> PromptView:
    """Lay out a prompt: all its lines in one message, or, when that is too short, all of them in a file as well."""
    document = prompt.attachment
    lines: Sequence[PromptLine] = prompt.lines
    if not _fits(lines):
        document = document or as_text(lines)
        lines = shortened(lines, _fits, _IN_FILE)
    elif any(holds_fence(line.text) for line in lines):
        # Within a block of code the fence must look broken; the file has it as it is.
        document = document or as_text(lines)
    return PromptView(MessageBody(_text(lines)), _components(prompt) if prompt.open else [], document)


def reason_form(approval: ApprovalId) -> dict[str, object]:
    """The form that asks why something is denied: https://discord.com/developers/docs/interactions/receiving-and-responding."""
    field = {
        "type": _TEXT_INPUT,
        "custom_id": "reason",
        "style": _PARAGRAPH,
        "label": "Why?",
        "placeholder": "The model reads it and can try another way.",
        "max_length": _REASON_CHARACTERS,
        "required": True,
    }
    return {
        "custom_id": f"{_WITH_REASON}:{approval}",
        "title": "Deny with reason",
        "components": [{"type": _ROW, "components": [field]}],
    }


def _components(prompt: ApprovalPrompt) -> list[dict[str, object]]:
    first = ["a", "d", _WITH_REASON]
    rows = [first, ["g"]] if prompt.grantable else [first]
    return [{"type": _ROW, "components": [_button(verb, prompt.approval) for verb in row]} for row in rows]


def _button(verb: str, approval: ApprovalId) -> dict[str, object]:
    return {"type": _BUTTON, "style": _STYLES[verb], "label": _LABELS[verb], "custom_id": f"{verb}:{approval}"}


def _fits(lines: Sequence[PromptLine]) -> bool:
    return utf16_len(_text(lines)) <= MESSAGE_CHARACTERS


def _text(lines: Sequence[PromptLine]) -> str:
    """Set the lines: what names a thing in bold, arguments as one block of code, notes in italics."""
    parts: list[str] = []
    for kind, group in groupby(lines, key=lambda line: line.kind):
        block = list(group)
        if kind == "argument":
            parts.append(code_block(as_text(block)))
            continue
        parts += [_line(kind, line) for line in block]
    return "\n".join(parts)


def _line(kind: str, line: PromptLine) -> str:
    if kind == "field" and line.label:
        return f"**{escape(line.label)}:** {escape(line.text)}"
    mark = {"title": "**", "outcome": "**", "note": "*"}.get(kind, "")
    text = escape(line_text(line)).strip()
    return f"{mark}{text}{mark}" if text else ""
