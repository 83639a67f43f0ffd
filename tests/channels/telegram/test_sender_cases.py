"""Who sent it: updates with known right answers, from the platform's form to who may talk and who may decide."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from telegram import Update

from channels.telegram.content import Me
from channels.telegram.decode import Press, decode
from zerobot.config.schema import Settings
from zerobot.core.admission import Answer, Standing, judge
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.places import Identity, Place
from zerobot.daemon.door import admission_of
from zerobot.daemon.routing import OperatorRules

ME = Me(4242, "zero_bot", frozenset())
FILE = Path(__file__).resolve().parents[2] / "cases" / "security" / "senders.json"
CASES = [each for each in json.loads(FILE.read_text(encoding="utf-8"))["cases"] if each["channel"] == "telegram"]


def _settings(case: dict[str, Any]) -> Settings:
    return Settings.model_validate(
        {
            "channels": {"telegram": {"allowed_users": case["allowed_users"], "pairing": False}},
            "operators": {"users": case["operators"]},
        }
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_an_update_counts_for_who_really_sent_it(case: dict[str, Any]) -> None:
    """By the platform's id alone; nobody in particular is nobody, and only an operator's press counts."""
    settings = _settings(case)
    text = json.dumps(case["event"]).replace("{approve}", "a:0123456789abcdefghijkl")
    event = decode(Update.de_json({"update_id": 1, **json.loads(text)}, None), ME, "telegram")
    rules = OperatorRules(users=settings.operators.identities, timeout=timedelta(hours=1))
    accepted, who = False, None
    if isinstance(event, Press):
        who = event.press.presser
        accepted = rules.is_operator(who, event.press.place or Place("telegram", ""))
    elif isinstance(event, InboundEnvelope):
        who = event.sender
        admission = admission_of(settings, "telegram", "telegram", None)
        standing, handles = Standing.UNKNOWN, event.sender_handles
        said = judge(admission, who, handles, direct=event.direct, standing=standing, bound={})
        accepted = said.answer is Answer.ADMITTED
    assert ("accept" if accepted else "refuse") in case["accept"]
    if "identity" in case:
        assert who == Identity.parse(case["identity"])
    if case.get("operator") is False:
        assert who is None or not rules.is_operator(who, Place("telegram", "1"))
