"""The approval prompt on Discord."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.discord.buttons import PromptView, read_press, reason_form, view
from tests.platforms.discord_text import read
from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.envelope import Button
from zerobot.core.ids import ApprovalId, new_approval_id

LINES = (
    PromptLine(kind="title", text="Approval needed 🧪"),
    PromptLine(kind="field", label="Tool", text="shell"),
    PromptLine(kind="argument", label="command", text="rm -rf **build** <@1>"),
    PromptLine(kind="argument", label="workdir", text="/tmp"),
    PromptLine(kind="field", label="Asked by", text="Ann_ (discord:1001) @everyone"),
    PromptLine(kind="note", text="Expires at 10:00 UTC. Code: BCDF23"),
)


def prompt(*lines: PromptLine, **more: Any) -> ApprovalPrompt:
    return ApprovalPrompt(approval=ApprovalId("A" * 22), code="BCDF23", lines=lines or LINES, **more)


def faces(shown: PromptView) -> list[dict[str, Any]]:
    rows = cast("list[dict[str, Any]]", shown.components)
    return [button for row in rows for button in row["components"]]


def test_all_lines_are_read_as_they_are() -> None:
    """Nothing of them is a mark or a mention, and arguments are one block of code."""
    shown = view(prompt())
    reading = read(shown.body.text)
    for line in LINES:
        assert line.text in reading.text
    code = [text for kind, text, _ in reading.spans if kind == "code"]
    assert code == ["command: rm -rf **build** <@1>\nworkdir: /tmp"]
    assert reading.mentions == []
    assert [text for kind, text, _ in reading.spans if kind == "bold"] == [LINES[0].text, "Tool:", "Asked by:"]
    assert shown.document is None


def test_the_buttons() -> None:
    """In the contract's words, each to be read back; one of them opens the form."""
    shown = faces(view(prompt()))
    assert [each["label"] for each in shown] == ["Approve", "Deny", "Deny with reason", "Always in this chat"]
    verbs = [read_press(each["custom_id"]) for each in shown]
    assert [verb.button for verb in verbs] == [Button.APPROVE, Button.DENY, Button.DENY, Button.ALWAYS]
    assert [verb.opens_form for verb in verbs] == [False, False, True, False]
    assert all(len(each["custom_id"]) <= 100 for each in shown)
    assert view(prompt(open=False)).components == []
    assert "Always in this chat" not in [each["label"] for each in faces(view(prompt(grantable=False)))]


@given(st.sampled_from(Button))
@settings(max_examples=10)
def test_every_press_is_read_back(button: Button) -> None:
    """What a button carries is what its press says; so does the form."""
    approval = new_approval_id()
    shown = faces(view(ApprovalPrompt(approval=approval, code="X", lines=LINES)))
    assert (button, approval) in [
        (verb.button, verb.approval) for verb in (read_press(each["custom_id"]) for each in shown)
    ]
    assert read_press(str(reason_form(approval)["custom_id"])).approval == approval


@pytest.mark.parametrize("data", ["", "a", "a:", "x:abc", "approve", ":abc", "a:" + "x" * 100, "я:1"])
def test_forged_data_is_a_denial_of_nothing(data: str) -> None:
    """It names no approval, and never approves."""
    verb = read_press(data)
    assert (verb.button, verb.approval, verb.opens_form) == (Button.DENY, "", False)


def test_an_argument_cannot_leave_its_block() -> None:
    """A fence in it is shown broken, and the file has it as it is."""
    shown = view(prompt(PromptLine(kind="argument", label="command", text="x``` **approved** ```")))
    (code,) = [text for kind, text, _ in read(shown.body.text).spans if kind == "code"]
    assert code.replace("\u200b", "") == "command: x``` **approved** ```"
    assert shown.document == "command: x``` **approved** ```"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=3000), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_a_prompt_that_is_too_long_is_whole_in_its_file(texts: list[str]) -> None:
    """Whatever the lines are: the message fits, and what it does not show is in the file."""
    lines = [PromptLine(kind="argument", label=f"a{number}", text=text) for number, text in enumerate(texts)]
    shown = view(prompt(*lines))
    assert len(shown.body.text.encode("utf-16-le")) // 2 <= 2000
    whole = shown.body.text if shown.document is None else shown.document
    assert all(text in whole for text in texts)
    assert shown.document is None or "`" in "".join(texts) or "in the file" in shown.body.text
