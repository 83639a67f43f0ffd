"""The words in which operators are asked whether to let somebody in; what the stranger chose is escaped."""

from datetime import datetime

from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.ids import ApprovalId
from zerobot.core.places import Identity
from zerobot.security.prompt import clock_text, expiry_text, person_text
from zerobot.security.visible import one_line

MAX_NAME = 100
"""Characters of a name; a stranger may have chosen a long one to push the rest out of sight."""


def pairing_prompt(
    request: str, person: Identity, name: str, channel: str, code: str, expires_at: datetime, now: datetime
) -> ApprovalPrompt:
    """Ask about somebody who wrote to the bot in a direct chat.

    Args:
        request: What the buttons name.
        person: By the platform's id.
        name: As the stranger has chosen it.
        channel: Where he wrote.
        code: What he was told; `/pair CODE` does the same as the button.
        expires_at: UTC.
        now: UTC, for the time that is left.
    """
    return ApprovalPrompt(
        approval=ApprovalId(request),
        code=code,
        lines=(
            PromptLine(kind="title", text="Somebody wants to talk to me"),
            *_who(person, name, channel),
            PromptLine(kind="note", label="note", text="names are chosen freely; only the id tells who it is"),
            PromptLine(kind="note", label="note", text="Approve lets this person talk to me; it allows no tool"),
            PromptLine(kind="field", label="expires", text=expiry_text(expires_at, now)),
            PromptLine(kind="field", label="code", text=code),
        ),
        grantable=False,
        answer=f"Answer `/pair {code}` to let this person in.",
    )


def settled_pairing(
    request: str,
    person: Identity,
    name: str,
    channel: str,
    *,
    let_in: bool | None,
    by: Identity | None,
    at: datetime | None,
) -> ApprovalPrompt:
    """The same message when it is decided; `let_in` None: nobody decided in time."""
    if let_in is None:
        outcome = "Expired: nobody decided. They are told a new code when they write again."
    else:
        when = f" on {clock_text(at)}" if at else ""
        outcome = f"{'Let in' if let_in else 'Shut out'} by {one_line(str(by))}{when}."
    title = PromptLine(kind="title", text="Somebody wanted to talk to me")
    return ApprovalPrompt(
        approval=ApprovalId(request),
        code="",
        lines=(title, *_who(person, name, channel), PromptLine(kind="outcome", text=outcome)),
        open=False,
        grantable=False,
        decided_by=by,
    )


def _who(person: Identity, name: str, channel: str) -> tuple[PromptLine, ...]:
    short = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    return (
        PromptLine(kind="field", label="who", text=person_text(short, str(person))),
        PromptLine(kind="field", label="channel", text=one_line(channel)),
    )
