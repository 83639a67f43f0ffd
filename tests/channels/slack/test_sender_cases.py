"""Who sent it: events with known right answers, from the socket's form to who may talk and who may decide."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.channels.security_cases import cases, check_sender
from tests.platforms.slack_house import slack_house

HOME = "T1"
"""The workspace of the bot, in all cases."""


@pytest.mark.parametrize("case", cases("senders", "slack"), ids=lambda case: str(case["id"]))
async def test_an_event_counts_for_who_really_sent_it(case: dict[str, Any]) -> None:
    """By workspace and id: an equal id of another workspace is another person, and no bot is anybody.

    Two may be decided either way: people of other workspaces in shared channels are let in by `*` like anybody else,
    and what a workflow does in somebody's name counts as his, since Slack says that he has started it.
    """
    text = json.dumps(case["event"]).replace('"approve"', '"zerobot:approve"')
    payload = json.loads(text.replace("{approve}", "0123456789abcdefghijkl"))
    async with slack_house() as house, house.running() as intake:
        acknowledged: list[object] = []
        kind = "events_api" if "event" in payload else "interactive"
        house.server.sockets.emit(kind, payload, acknowledged.append)
        await house.server.wait_for(lambda: acknowledged)
        assert "slack.undecodable" not in house.log.names
    check_sender(case, [*intake.accepted, *intake.presses], [HOME])
