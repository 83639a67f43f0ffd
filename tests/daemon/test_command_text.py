"""How our own texts name commands on a platform that keeps the slash for itself."""

import pytest

from tests.daemon.office import OLGA, ROOM, Offices
from zerobot.core.command_text import with_prefix
from zerobot.core.envelope import Button
from zerobot.daemon.routing import OperatorRules
from zerobot.testing.channel import PlainChannel, fake_kind
from zerobot.testing.clock import ManualClock


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Send /new to start afresh.", "Send !new to start afresh."),
        ("/pair lists; `/memory forget NUMBER`", "!pair lists; `!memory forget NUMBER`"),
        (
            "PROVIDER/MODEL, and/or, https://x.org/help, //x, 1 / 2, /",
            "PROVIDER/MODEL, and/or, https://x.org/help, //x, 1 / 2, /",
        ),
    ],
)
def test_a_slash_before_a_word_is_a_command(text: str, told: str) -> None:
    """Any other slash stays; with the usual prefix all of it does."""
    assert with_prefix(text, "!") == told
    assert with_prefix(text, "/") == text


async def test_a_request_without_buttons_names_the_commands_of_its_channel(
    offices: Offices, clock: ManualClock
) -> None:
    """What it is answered by can be typed there."""
    rules, kind = OperatorRules(users=(OLGA,), notify="here"), fake_kind(command_prefix="!")
    async with offices.open(rules, PlainChannel(clock), kind=kind) as office:
        await office.ask()
        await clock.advance(5)
        (text,) = office.channel.texts(ROOM)
    assert "Answer `!approve CODE1` or `!deny CODE1 REASON`." in text


async def test_what_ends_a_grant_is_named_by_the_commands_of_the_channel(offices: Offices) -> None:
    """Whoever presses "always" is told so."""
    async with offices.open(kind=fake_kind(command_prefix="!")) as office:
        reply = await office.press(await office.ask(), button=Button.ALWAYS)
    assert reply.text.endswith("!grants revoke 1 ends that.")
