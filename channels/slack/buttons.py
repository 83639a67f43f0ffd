"""An approval prompt as a Slack message with buttons and a form, and what a press says; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from channels._text.layout import Span
from channels._text.prompt import as_text, line_text, shortened
from channels.slack.blocks import blocks_of
from channels.slack.formatting import Formatting, Json, body_of
from channels.slack.render import fits
from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.channel import MessageBody
from zerobot.core.envelope import Button
from zerobot.core.ids import ApprovalId

# An action id has at most 255 characters, a value 2000: https://docs.slack.dev/reference/block-kit/block-elements/button-element.
# Both together say all that a press needs, so buttons work in the next process too.
_PREFIX = "zerobot:"
_WITH_REASON = "reason"
_VERBS = {"approve": Button.APPROVE, "always": Button.ALWAYS, "deny": Button.DENY, _WITH_REASON: Button.DENY}
_LABELS = {
    "approve": "Approve",
    "always": "Always in this chat",
    "deny": "Deny",
    _WITH_REASON: "Deny with reason",
}
_STYLES = {"approve": "primary", "deny": "danger"}
FORM = "zerobot:reason"
"""The callback id of the form that asks why something is denied."""
_FIELD = "reason"
_REASON_CHARACTERS = 1000
_IN_FILE = "The whole request is in the file above."


@dataclass(frozen=True, slots=True)
class Verb:
    """What a button of ours says."""

    button: Button
    approval: ApprovalId
    opens_form: bool = False


@dataclass(frozen=True, slots=True)
class FormOrigin:
    """What a form was opened for: it comes back with the form."""

    approval: ApprovalId
    channel: str = ""
    """Slack's id of the channel that the prompt stands in."""
    thread: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class PromptView:
    """How a prompt is shown."""

    body: MessageBody
    blocks: list[Json]
    document: str | None
    """Sent as a file before the message."""


def read_press(action: str, value: str) -> Verb:
    """Read what a button of ours carries; it comes from the presser's client and may be anything.

    Returns:
        For data that no button of ours has: a denial of an approval that cannot exist, so that it is answered like
        any other unknown one.
    """
    verb = action.removeprefix(_PREFIX)
    if action.startswith(_PREFIX) and verb in _VERBS and value:
        return Verb(_VERBS[verb], ApprovalId(value), opens_form=verb == _WITH_REASON)
    return Verb(Button.DENY, ApprovalId(""))


def view(prompt: ApprovalPrompt) -> PromptView:
    """Lay out a prompt: all its lines in one message, or, when that is too short, all of them in a file as well."""
    document = prompt.attachment
    lines: Sequence[PromptLine] = prompt.lines
    if not _fits(lines):
        document = document or as_text(lines)
        lines = shortened(lines, _fits, _IN_FILE)
    body = _body(lines)
    buttons = [_buttons(prompt)] if prompt.open else []
    return PromptView(body, [*blocks_of(body), *buttons], document)


def reason_form(origin: FormOrigin) -> Json:
    """The form that asks why something is denied: https://docs.slack.dev/surfaces/modals."""
    return {
        "type": "modal",
        "callback_id": FORM,
        "private_metadata": json.dumps([origin.approval, origin.channel, origin.thread, origin.message]),
        "title": {"type": "plain_text", "text": "Deny with reason"},
        "submit": {"type": "plain_text", "text": "Deny"},
        "close": {"type": "plain_text", "text": "Cancel"},
        "blocks": [
            {
                "type": "input",
                "block_id": _FIELD,
                "label": {"type": "plain_text", "text": "Why?"},
                "hint": {"type": "plain_text", "text": "The model reads it and can try another way."},
                "element": {
                    "type": "plain_text_input",
                    "action_id": _FIELD,
                    "multiline": True,
                    "max_length": _REASON_CHARACTERS,
                },
            }
        ],
    }


def read_form(shown: Mapping[str, Any]) -> tuple[FormOrigin, str]:
    """Read a form that was sent: what it is about, and the reason."""
    try:
        approval, channel, thread, message = json.loads(shown.get("private_metadata") or "")
        origin = FormOrigin(ApprovalId(str(approval)), str(channel), str(thread), str(message))
    except (ValueError, TypeError):
        origin = FormOrigin(ApprovalId(""))
    values = (shown.get("state") or {}).get("values") or {}
    written = ((values.get(_FIELD) or {}).get(_FIELD) or {}).get("value")
    return origin, str(written or "").strip()


def _buttons(prompt: ApprovalPrompt) -> Json:
    verbs = ["approve", "deny", _WITH_REASON, *(["always"] if prompt.grantable else [])]
    return {"type": "actions", "elements": [_button(verb, prompt.approval) for verb in verbs]}


def _button(verb: str, approval: ApprovalId) -> Json:
    button: Json = {
        "type": "button",
        "action_id": f"{_PREFIX}{verb}",
        "text": {"type": "plain_text", "text": _LABELS[verb]},
        "value": approval,
    }
    return button | ({"style": _STYLES[verb]} if verb in _STYLES else {})


def _fits(lines: Sequence[PromptLine]) -> bool:
    return fits(_body(lines))


def _body(lines: Sequence[PromptLine]) -> MessageBody:
    """Set the lines: what names a thing in bold, arguments as one block of code, notes in italics."""
    text, spans = "", list[Span]()

    def add(piece: str, kind: str = "") -> None:
        nonlocal text
        if kind and piece:
            spans.append(Span(len(text), len(text) + len(piece), kind))  # type: ignore[arg-type]
        text += piece

    for kind, group in groupby(lines, key=lambda line: line.kind):
        block = list(group)
        if text:
            add("\n")
        if kind == "argument":
            add(as_text(block), "pre")
            continue
        for number, line in enumerate(block):
            add("\n" if number else "")
            if kind == "field" and line.label:
                add(f"{line.label}:", "bold")
                add(f" {line.text}")
            else:
                add(line_text(line), {"title": "bold", "outcome": "bold", "note": "italic"}.get(kind, ""))
    return body_of(text, Formatting(spans))
