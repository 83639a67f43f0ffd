"""The approval prompt on Telegram."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels._text.measure import utf16_len
from channels.telegram.buttons import PromptView, read_press, view
from channels.telegram.units import slice_units
from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.envelope import Button
from zerobot.core.ids import ApprovalId, new_approval_id

LINES = (
    PromptLine(kind="title", text="Approval needed 🧪"),
    PromptLine(kind="field", label="Tool", text="shell"),
    PromptLine(kind="argument", label="command", text="rm -rf <b>build</b>"),
    PromptLine(kind="argument", label="workdir", text="/tmp"),
    PromptLine(kind="field", label="Asked by", text="Ann (telegram:1001)"),
    PromptLine(kind="note", text="Expires at 10:00 UTC. Code: BCDF23"),
)


def prompt(
    *lines: PromptLine, attachment: str | None = None, is_open: bool = True, grantable: bool = True
) -> ApprovalPrompt:
    return ApprovalPrompt(
        approval=ApprovalId("A" * 22),
        code="BCDF23",
        lines=lines or LINES,
        attachment=attachment,
        open=is_open,
        grantable=grantable,
    )


def covered(shown: PromptView, kind: str) -> list[str]:
    """What the entities of a kind cover."""
    entities = cast("list[dict[str, int | str]]", shown.body.format["entities"])
    return [
        slice_units(shown.body.text, int(one["offset"]), int(one["offset"]) + int(one["length"]))
        for one in entities
        if one["type"] == kind
    ]


def test_all_lines_are_shown_and_arguments_are_one_block() -> None:
    """Nothing is left out, nothing is markup, and what belongs to an argument is visibly the argument's."""
    shown = view(prompt())
    for line in LINES:
        assert line.text in shown.body.text
    assert covered(shown, "pre") == ["command: rm -rf <b>build</b>\nworkdir: /tmp"]
    assert covered(shown, "bold") == ["Approval needed 🧪", "Tool:", "Asked by:"]
    assert shown.document is None


def test_the_buttons() -> None:
    """An open prompt has its buttons in the contract's words; each fits Telegram's 64 bytes and can be read back."""
    faces = [face for row in view(prompt()).rows for face in row]
    assert [face.label for face in faces] == ["Approve", "Deny", "Always in this chat"]
    assert [read_press(face.data)[0] for face in faces] == [Button.APPROVE, Button.DENY, Button.ALWAYS]
    assert all(read_press(face.data)[1] == "A" * 22 for face in faces)
    assert all(len(face.data.encode()) <= 64 for face in faces)


def test_no_always_where_it_is_not_offered_and_none_once_it_is_decided() -> None:
    """What cannot be granted has no button for it; a decided prompt has none at all."""
    assert "Always in this chat" not in [face.label for row in view(prompt(grantable=False)).rows for face in row]
    assert view(prompt(is_open=False)).rows == ()


@pytest.mark.parametrize("data", ["", "a", "a:", "x:abc", "approve", ":abc", "a:" + "x" * 80, "я:1"])
def test_forged_data_is_a_denial_of_nothing(data: str) -> None:
    """Data that no button of ours has names no approval, and never approves."""
    assert read_press(data) == (Button.DENY, "")


@given(st.sampled_from(Button))
@settings(max_examples=10)
def test_every_press_is_read_back(button: Button) -> None:
    """What a button carries is what its press says."""
    approval = new_approval_id()
    rows = view(ApprovalPrompt(approval=approval, code="X", lines=LINES)).rows
    assert (button, approval) in [read_press(face.data) for row in rows for face in row]


def test_the_attachment_goes_along() -> None:
    """A request that had to be cut comes with its file."""
    assert view(prompt(attachment="all of it")).document == "all of it"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4000), min_size=1, max_size=30))
@settings(max_examples=40)
def test_a_prompt_that_is_too_long_for_a_message_is_whole_in_its_file(texts: list[str]) -> None:
    """Whatever the lines are: the message fits, and what it does not show is in the file."""
    lines = [PromptLine(kind="argument", label=f"a{number}", text=text) for number, text in enumerate(texts)]
    shown = view(prompt(*lines))
    assert utf16_len(shown.body.text) <= 4096
    whole = shown.body.text if shown.document is None else shown.document
    assert all(text in whole for text in texts)
    if shown.document is not None:
        assert "file above" in shown.body.text


def test_many_lines_keep_the_last_ones_readable() -> None:
    """A huge argument is shortened; the lines around it are not."""
    lines = [LINES[0], PromptLine(kind="argument", label="command", text="🧪" * 9000), LINES[5]]
    shown = view(prompt(*lines))
    assert LINES[5].text in shown.body.text
    assert shown.document is not None
    assert "🧪" * 9000 in shown.document
