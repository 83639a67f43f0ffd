"""What `doctor` says about an app, and the manifest that makes one."""

from __future__ import annotations

import re
from pathlib import Path

from channels.slack import KIND
from channels.slack.check import SCOPES
from tests.platforms.slack_api import SCOPES as GRANTED
from tests.platforms.slack_house import SlackHouse
from zerobot.core.channel import Finding

MANIFEST = (Path(__file__).parents[3] / "deploy" / "slack-manifest.yaml").read_text(encoding="utf-8")


async def findings(house: SlackHouse, **settings: object) -> list[Finding]:
    """What is found."""
    table = {
        "bot_token": house.server.bot_token,
        "app_token": house.server.app_token,
        "api_base": house.server.api_base,
        **settings,
    }
    return [one async for one in KIND.check(KIND.settings.model_validate(table), house.services)]


async def test_all_is_well(house: SlackHouse) -> None:
    """A line for the bot's token, one for its scopes, one for the app's token."""
    found = await findings(house)
    assert [one.level for one in found] == ["ok", "ok", "ok"]
    assert "Acme" in found[0].text


async def test_wrong_tokens(house: SlackHouse) -> None:
    """Each is named; no line has a token."""
    (found,) = await findings(house, bot_token="xoxb-wrong")
    assert (found.level, "[channels.slack] bot_token" in found.advice) == ("fail", True)
    *_, last = await findings(house, app_token="xapp-wrong")
    assert (last.level, "[channels.slack] app_token" in last.advice) == ("fail", True)
    assert "wrong" not in f"{found} {last}"


async def test_missing_scopes(house: SlackHouse) -> None:
    """They are named, with what to do."""
    house.server.api.scopes = "chat:write"
    found = await findings(house)
    assert found[1].level == "fail"
    assert "files:read" in found[1].text
    assert "chat:write" not in found[1].text


async def test_no_server(house: SlackHouse) -> None:
    """A server that is not there is named."""
    (found,) = await findings(house, api_base="http://127.0.0.1:9/api/")
    assert found.level == "fail"
    assert "http://127.0.0.1:9" in found.text


def listed(key: str) -> set[str]:
    """The items of a list in the manifest."""
    block = re.search(rf"^( *){key}:\n((?:\1  - .*\n)+)", MANIFEST, re.MULTILINE)
    assert block is not None, f"there is no list {key}"
    return set(re.findall(r"- (.+)", block[2]))


def test_the_manifest_has_what_the_code_needs() -> None:
    """The scopes and the events, no more of either; sockets, buttons, the command, and messages to the bot."""
    assert listed("bot") == SCOPES == set(GRANTED.split(","))
    assert listed("bot_events") == {
        "app_mention",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
    }
    for line in ("socket_mode_enabled: true", "is_enabled: true", "messages_tab_enabled: true", "command: /zerobot"):
        assert line in MANIFEST
    assert "messages_tab_read_only_enabled: false" in MANIFEST
