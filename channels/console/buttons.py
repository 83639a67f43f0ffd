"""An approval prompt as a terminal is given it, and what a terminal answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zerobot.core.envelope import Button, ButtonPress
from zerobot.core.ids import ApprovalId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zerobot.core.approvals import ApprovalPrompt
    from zerobot.core.places import Identity, Place

REASON_LIMIT = 1000
"""Characters of a reason; what is longer is cut."""


def lay_out(prompt: ApprovalPrompt, escape: Callable[[str], str]) -> dict[str, object]:
    """A prompt as plain JSON values: its lines as they are, and which buttons it has."""
    return {
        "approval": prompt.approval,
        "code": prompt.code,
        "lines": [[line.kind, escape(line.label), escape(line.text)] for line in prompt.lines],
        "whole": None if prompt.attachment is None else escape(prompt.attachment),
        "open": prompt.open,
        "grantable": prompt.grantable,
    }


def read(value: Mapping[str, object], presser: Identity, place: Place) -> ButtonPress | None:
    """The press in what a terminal sent; None when it is no press."""
    match value:
        case {"approval": str(approval), "button": "approve" | "always" | "deny" as button}:
            reason = value.get("reason", "")
            return ButtonPress(
                channel=place.channel,
                presser=presser,
                approval=ApprovalId(approval),
                button=Button(button),
                reason=reason[:REASON_LIMIT] if isinstance(reason, str) else "",
                place=place,
            )
    return None
