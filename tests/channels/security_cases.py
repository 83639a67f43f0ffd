"""What the tests of several adapters do with the security cases: who sent something, and texts that act on nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from zerobot.config.kinds import installed_kinds
from zerobot.config.schema import Settings
from zerobot.core.admission import Answer, Standing, judge
from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.envelope import ButtonPress, InboundEnvelope
from zerobot.core.ids import ApprovalId
from zerobot.core.places import Identity, Place
from zerobot.daemon.door import admission_of
from zerobot.daemon.routing import OperatorRules

FOLDER = Path(__file__).resolve().parents[1] / "cases" / "security"


def cases(name: str, channel: str) -> list[dict[str, Any]]:
    """The cases of a file that are about a channel."""
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]
    return [case for case in found if case["channel"] == channel]


def by_each_way(texts: Sequence[dict[str, Any]], ways: Iterable[str]) -> pytest.MarkDecorator:
    """Try each text by each call that carries texts, whatever call it is about: a test gets `case` and `way`.

    Quick are those by their own call, and for each way one; all others are slow.
    """
    pairs = [
        pytest.param(case, way, id=f"{case['id']}-{way}", marks=() if is_quick else pytest.mark.slow)
        for way in ways
        for case in texts
        for is_quick in [way == case["call"] or case is texts[0]]
    ]
    return pytest.mark.parametrize(("case", "way"), pairs)


def check_sender(
    case: dict[str, Any], taken: Sequence[InboundEnvelope | ButtonPress], homes: Sequence[str] = ()
) -> None:
    """Judge what an adapter made of an event, as the daemon does, and compare it with the right answer.

    Args:
        case: One of `senders.json`.
        taken: At most one thing; nothing: the event is nobody's.
        homes: The bot's own scope, where ids have one.
    """
    platform = case["channel"]
    settings = Settings.model_validate(
        {
            "channels": {platform: {"allowed_users": case["allowed_users"], "pairing": False}},
            "operators": {"users": case["operators"]},
        }
    )
    operators = settings.operators.identities
    rules = OperatorRules(users=operators, timeout=timedelta(hours=1), homes=lambda _: homes)
    admission = admission_of(settings, platform, installed_kinds().channels[platform](), None).at_home(
        homes, lambda _: homes
    )
    accepted, who = False, None
    assert len(taken) <= 1
    for each in taken:
        if isinstance(each, ButtonPress):
            who = each.presser
            accepted = rules.is_operator(who, each.place or Place(platform, ""))
        else:
            who, handles, standing = each.sender, each.sender_handles, Standing.UNKNOWN
            said = judge(admission, who, handles, direct=each.direct, standing=standing, bound={})
            accepted = said.answer is Answer.ADMITTED
    assert ("accept" if accepted else "refuse") in case["accept"]
    if "identity" in case:
        assert who == Identity.parse(case["identity"])
    if "operator" in case:
        assert (who is not None and rules.is_operator(who, Place(platform, "1"))) is case["operator"]


def prompt_about(text: str, *, is_open: bool = True) -> ApprovalPrompt:
    """An approval prompt that has a text wherever a model's, or a person's, may stand."""
    lines = (
        PromptLine(kind="title", text=text),
        PromptLine(kind="field", label="Tool", text=text),
        PromptLine(kind="argument", label="command", text=text),
    )
    return ApprovalPrompt(approval=ApprovalId("A" * 22), code="BCDF23", lines=lines, open=is_open)
