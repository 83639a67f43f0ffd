"""What becomes of an approval prompt: buttons while it is open, the outcome afterwards."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.security.test_prompt_cases import visible
from tests.security.worlds import NOW
from zerobot.core.approvals import Approval, ApprovalState
from zerobot.core.ids import ApprovalId, CallId, ConversationId, TurnId
from zerobot.core.places import Identity, Place
from zerobot.security.prompt import MAX_SHOWN, SCHEDULE, approval_prompt
from zerobot.security.redact import Redactor

OLGA = Identity("testing", "olga")


def approval(**changes: Any) -> Approval:
    """A pending approval, changed."""
    return replace(
        Approval(
            id=ApprovalId("id"),
            code="BCD234",
            conversation=ConversationId(1),
            turn=TurnId("t1"),
            call=CallId("call_1"),
            tool="shell",
            arguments={"command": "make test", "timeout": 60},
            digest="0" * 64,
            rule="risk",
            why="not covered by a rule",
            description="Run a command in .",
            asker=Identity("testing", "ann"),
            asker_name="Ann",
            place=Place("main", "team"),
            sandbox="no sandbox",
            requested_at=NOW,
            expires_at=NOW + timedelta(hours=1),
        ),
        **changes,
    )


def shown(value: Approval, secrets: tuple[str, ...] = ()) -> str:
    """The prompt as text."""
    return visible(approval_prompt(value, Redactor(secrets), NOW))


def test_an_open_prompt_says_everything() -> None:
    """What, who, where, why, held by what, until when, and by which code."""
    assert shown(approval()).splitlines() == [
        "Approval needed: shell",
        "command: make test",
        "timeout: 60",
        "asked by: Ann (testing:ann)",
        "chat: main:team",
        "does: Run a command in .",
        "why asked: not covered by a rule",
        "held by: no sandbox",
        "expires: 2026-05-01 13:00 UTC (in 60 min)",
        "code: BCD234",
    ]
    prompt = approval_prompt(approval(), Redactor(), NOW)
    assert prompt.open
    assert prompt.grantable
    assert prompt.attachment is None
    assert not approval_prompt(approval(grantable=False), Redactor(), NOW).grantable


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        (
            {"state": ApprovalState.APPROVED, "decided_by": OLGA, "decided_by_name": "Olga", "decided_at": NOW},
            "Approved by Olga (testing:olga) on 2026-05-01 12:00 UTC.",
        ),
        (
            {"state": ApprovalState.DENIED, "decided_by": OLGA, "decided_at": NOW, "reason": "too\nrisky"},
            "Denied by testing:olga on 2026-05-01 12:00 UTC. It does not run. Reason: too\\nrisky",
        ),
        ({"state": ApprovalState.EXPIRED}, "Expired on 2026-05-01 13:00 UTC: nobody decided. It does not run."),
        (
            {"state": ApprovalState.CANCELLED, "decided_at": NOW, "reason": "superseded by a new message"},
            "Closed on 2026-05-01 12:00 UTC: superseded by a new message. It does not run.",
        ),
        ({"state": ApprovalState.CANCELLED}, "Closed: withdrawn. It does not run."),
    ],
)
def test_a_settled_prompt_tells_the_outcome_and_has_no_buttons(changes: dict[str, Any], last: str) -> None:
    """Decided by whom and when, expired, superseded, withdrawn: each in its own words; the code is gone."""
    settled = approval(**changes)
    prompt = approval_prompt(settled, Redactor(), NOW)
    assert visible(prompt).splitlines()[-1] == last
    assert not prompt.open
    assert not prompt.grantable
    assert "BCD234" not in visible(prompt)
    assert "make test" in visible(prompt)


def test_lines_of_an_argument_are_numbered() -> None:
    """None of them can pass for a line of ours; long gaps are told as a count."""
    lines = shown(approval(arguments={"command": "a\ncode: ZZZZZZ\n\n\n\n\nb"})).splitlines()
    assert lines[1:5] == [
        "command line 1: a",
        "command line 2: code: ZZZZZZ",
        "command lines 3-6 (empty): ",
        "command line 7: b",
    ]


def test_what_does_not_fit_is_in_the_file() -> None:
    """The message stays short, says so, and the file has every line, escaped."""
    text = "\n".join(f"line {number} \u202e" for number in range(1_000))
    prompt = approval_prompt(approval(arguments={"path": "a", "content": text, "last": "z"}), Redactor(), NOW)
    assert prompt.attachment is not None
    assert "| line 999 \\u{202e}\n" in prompt.attachment
    assert "\u202e" not in prompt.attachment
    assert len(visible(prompt)) < MAX_SHOWN + 1_500
    assert "the attached file has all of it" in visible(prompt)
    assert "last: " in visible(prompt)


def test_an_arguments_name_cannot_pass_for_a_label() -> None:
    """Of a tool that takes what it is given: its arguments may be called anything, also in letters that look alike."""
    names = {"code": "ZZZZZZ", "Note": "harmless", "held by": "a sandbox", "c\u043ede": "YYYYYY", "path": "a", "": "b"}
    prompt = approval_prompt(approval(arguments=names), Redactor(), NOW)
    labels = [line.label for line in prompt.lines if line.kind == "argument"]
    expected = [
        "argument 'code'",
        "argument 'Note'",
        "argument 'held by'",
        "argument 'c\u043ede'",
        "path",
        "argument ''",
    ]
    assert labels == expected
    assert [line.text for line in prompt.lines if line.label == "code"] == ["BCD234"]


def test_what_a_call_may_do_is_told_to_its_end() -> None:
    """A list of places so long that one at its end is not shown stands whole in the file, and the message says so."""
    places = ", ".join(f"/srv/harmless/{number}" for number in range(40))
    does = f"Run a command in the workspace that may change {places}, /home/ann/.ssh"
    prompt = approval_prompt(approval(description=does), Redactor(), NOW)
    assert prompt.attachment is not None
    assert f"does: {does}\n" in prompt.attachment
    assert "the attached file has all of it" in visible(prompt)
    assert len(visible(prompt)) < MAX_SHOWN + 1_500


def test_runs_that_push_text_out_of_sight_are_told() -> None:
    """As a count, with what follows beside it."""
    assert "make ⟨200 times blank⟩; rm x" in shown(approval(arguments={"command": f"make {' ' * 199}; rm x"})).replace(
        "make⟨200 times blank⟩", "make ⟨200 times blank⟩"
    )


def test_confusable_text_is_pointed_at() -> None:
    """Mixed alphabets, and hosts that are not what they look like."""
    text = shown(approval(arguments={"command": "g\u0456t fetch https://\u0430pple.com/x"}))
    assert "g\\u{456}t" in text
    assert "xn--pple-43d.com" in text


def test_secrets_are_masked_in_the_prompt() -> None:
    """The operators' chat is a chat too."""
    text = shown(approval(arguments={"command": "login winter-blue-owl && ls"}), ("winter-blue-owl",))
    assert "winter" not in text
    assert "&& ls" in text
    assert "[redacted] stands for a secret" in text


def test_the_time_that_is_left_is_told() -> None:
    """In minutes, hours or days."""
    for ahead, words in ((timedelta(hours=24), "in 24 h"), (timedelta(days=7), "in 7 days"), (-timedelta(1), "now")):
        assert f"({words})" in shown(approval(expires_at=NOW + ahead))


def test_an_open_prompt_says_what_always_would_allow() -> None:
    """In which chat and for how long; nothing of it where it is not offered, or once it is decided."""
    line = "always allows: git push …; in this chat, for 30 days"
    assert line in shown(approval(covers="git push …")).splitlines()
    assert "always allows" not in shown(approval(covers="git push …", grantable=False))
    assert "always allows" not in shown(approval(covers="git push …", state=ApprovalState.EXPIRED))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("superseded", "something else was written meanwhile"),
        ("stopped", "the turn was stopped"),
        ("unreachable", "nobody can be asked"),
        ("failed", "the turn failed"),
    ],
)
def test_what_the_daemon_withdrew_is_told_in_words(reason: str, words: str) -> None:
    """Its own reasons are single words in the store."""
    assert words in shown(approval(state=ApprovalState.CANCELLED, reason=reason, decided_at=NOW))


def test_a_line_feed_at_the_end_begins_no_line() -> None:
    """It is told that it is there; a text that is cut off without one looks different."""
    ended = shown(approval(arguments={"content": "one\ntwo\n"}))
    assert "content line 2 (with a line end): two" in ended
    assert "content line 3" not in ended
    assert "content (with a line end): one" in shown(approval(arguments={"content": "one\n"}))
    assert "content line 2: two" in shown(approval(arguments={"content": "one\ntwo"}))


def test_a_prompt_says_that_a_schedule_asks() -> None:
    """V051: no person stands behind it, and the operator reads so."""
    asked = replace(approval(), asker=Identity(SCHEDULE, "morning"), asker_name="Olga")
    text = visible(approval_prompt(asked, Redactor(), NOW))
    assert "asked by: the schedule morning (no person)" in text
    assert "Olga" not in text
