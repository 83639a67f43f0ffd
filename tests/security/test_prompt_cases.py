"""Approval prompts with known properties."""

from datetime import timedelta
from typing import Any

import pytest

from tests.security.cases import Case, ident, judge_prompt, load
from tests.security.worlds import NOW
from zerobot.core.approvals import Approval, ApprovalPrompt
from zerobot.core.ids import ApprovalId, CallId, ConversationId, TurnId
from zerobot.core.places import Identity, Place
from zerobot.security.prompt import approval_prompt
from zerobot.security.redact import Redactor
from zerobot.security.visible import has_hidden


def _arguments(case: Case) -> dict[str, Any]:
    join = case.get("join", [])
    return {name: "".join(value) if name in join else value for name, value in case["args"].items()}


def _approval(case: Case) -> Approval:
    context = case["context"]
    asker = context["asker_id"] or context["origin"]
    return Approval(
        id=ApprovalId("secret-id"),
        code="BCD234",
        conversation=ConversationId(1),
        turn=TurnId("t1"),
        call=CallId("call_1"),
        tool=case["tool"],
        arguments=_arguments(case),
        digest="0" * 64,
        rule="risk",
        why=context["reason"],
        description="",
        asker=Identity.parse(asker),
        asker_name=context["asker"],
        place=Place(context["channel"], context["chat"]),
        requested_at=NOW,
        expires_at=NOW + timedelta(hours=1),
    )


def visible(prompt: ApprovalPrompt) -> str:
    """A prompt as the plainest adapter shows it: label, colon, text."""
    return "\n".join(f"{line.label}: {line.text}" if line.label else line.text for line in prompt.lines)


@pytest.mark.parametrize("case", load("prompts"), ids=ident)
def test_a_prompt_shows_the_call_and_nothing_forged(case: Case) -> None:
    """All of the call is seen, escaped, with secrets masked, and no line passes for one of ours."""
    prompt = approval_prompt(_approval(case), Redactor(), NOW)
    shown = visible(prompt)
    assert judge_prompt(case, shown, prompt.attachment or "") == []
    for ch in case.get("mark_nonascii", []):
        assert f"U+{ord(ch):04X}" in shown
    for part in ("BCD234", "2026-05-01 13:00 UTC", case["context"]["chat"], case["context"]["reason"]):
        assert part in shown
    assert "secret-id" not in shown
    assert len(shown) < 4_000


@pytest.mark.parametrize("case", load("prompts"), ids=ident)
def test_no_line_of_a_prompt_ends_or_hides_another(case: Case) -> None:
    """Each line is one line of visible characters."""
    for line in approval_prompt(_approval(case), Redactor(), NOW).lines:
        assert not has_hidden(line.label + line.text)
        assert not set("\n\t") & set(line.label + line.text)
