"""Attachments: fetched with the bot's token, which goes nowhere but to Slack."""

from __future__ import annotations

import pytest

from tests.platforms.slack_house import SlackHouse
from tests.platforms.slack_server import Person
from zerobot.core.envelope import Attachment
from zerobot.core.errors import DeliveryError, GoneError, RefusedError, TryLaterError


async def received(house: SlackHouse, ann: Person, **extra: object) -> Attachment:
    """A file that somebody sent."""
    async with house.running() as intake:
        message = ann.says("look", files=[("a.txt", b"0123456789")], tell="")
        message.files[0].extra |= extra
        house.server.tell("message", message)
        await intake.until(lambda: intake.accepted)
    return intake.accepted[0].attachments[0]


async def read(house: SlackHouse, attachment: Attachment, limit: int = 1000) -> bytes:
    """Fetch it all."""
    return b"".join([piece async for piece in await house.channel.fetch(attachment, limit)])


async def test_a_file_is_fetched(house: SlackHouse, ann: Person) -> None:
    """By its private address."""
    assert await read(house, await received(house, ann)) == b"0123456789"


async def test_a_file_of_another_workspace_is_asked_for(house: SlackHouse, ann: Person) -> None:
    """Its event has no address."""
    gone: dict[str, object] = {"url_private": None, "url_private_download": None}
    attachment = await received(house, ann, file_access="check_file_info", **gone)
    assert await read(house, attachment) == b"0123456789"


async def test_the_token_goes_nowhere_else(house: SlackHouse, ann: Person) -> None:
    """What lies outside of Slack is a line of the message; an address that is not Slack's is never asked."""
    async with house.running() as intake:
        message = ann.says("look", files=[("plan", b"")], tell="")
        message.files[0].extra |= {"is_external": True, "url_private": "https://docs.example.test/plan"}
        house.server.tell("message", message)
        await intake.until(lambda: intake.accepted)
    (envelope,) = intake.accepted
    assert envelope.attachments == ()
    assert "[File elsewhere: plan, https://docs.example.test/plan]" in envelope.text
    for ref in ("https://slack.com.example.test/x", "http://[", ""):
        with pytest.raises(RefusedError):
            await house.channel.fetch(Attachment(kind="file", name="x", ref=ref), 1000)


async def test_no_byte_over_the_limit(house: SlackHouse, ann: Person) -> None:
    """Whatever the size said before."""
    attachment = await received(house, ann, size=3)
    with pytest.raises(RefusedError, match="more than 5"):
        await read(house, attachment, limit=5)
    with pytest.raises(RefusedError):
        await read(house, attachment, limit=2)


@pytest.mark.parametrize(("status", "expected"), [(404, GoneError), (403, GoneError), (503, TryLaterError)])
async def test_a_file_that_cannot_be_had(
    house: SlackHouse, ann: Person, status: int, expected: type[DeliveryError]
) -> None:
    """The person is told in plain words."""
    attachment = await received(house, ann)
    next(iter(house.server.files.values())).status = status
    with pytest.raises(expected) as raised:
        await read(house, attachment)
    assert "a.txt" in raised.value.user_text


async def test_a_page_for_logging_in_is_no_file(house: SlackHouse, ann: Person) -> None:
    """Slack shows it to an app that may not read files."""
    attachment = await received(house, ann)
    house.server.bot_token = "xoxb-another"
    with pytest.raises(RefusedError, match="files:read"):
        await read(house, attachment)
