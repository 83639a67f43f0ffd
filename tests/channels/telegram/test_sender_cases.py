"""Who sent it: updates with known right answers, from the platform's form to who may talk and who may decide."""

from __future__ import annotations

import json
from typing import Any

import pytest
from telegram import Update

from channels.telegram.content import Me
from channels.telegram.decode import Press, decode
from tests.channels.security_cases import cases, check_sender
from zerobot.core.envelope import InboundEnvelope

ME = Me(4242, "zero_bot", frozenset())


@pytest.mark.parametrize("case", cases("senders", "telegram"), ids=lambda case: str(case["id"]))
def test_an_update_counts_for_who_really_sent_it(case: dict[str, Any]) -> None:
    """By the platform's id alone; nobody in particular is nobody, and only an operator's press counts."""
    text = json.dumps(case["event"]).replace("{approve}", "a:0123456789abcdefghijkl")
    event = decode(Update.de_json({"update_id": 1, **json.loads(text)}, None), ME, "telegram")
    if isinstance(event, Press):
        check_sender(case, [event.press])
    else:
        check_sender(case, [event] if isinstance(event, InboundEnvelope) else [])
