"""Files that came with an input, and inputs that say nothing (spec K14; the stage `prepare`)."""

from dataclasses import replace

from zerobot.core.envelope import Attachment
from zerobot.core.messages import UserMessage
from zerobot.testing.house import House
from zerobot.testing.model import calls, says
from zerobot.turn.prepare import NO_TEXT


async def test_a_file_that_could_not_be_had_is_told_in_words(house: House) -> None:
    """The model learns that there was something, in words of ours that are not the person's."""
    house.model.answers(says("ok"))
    await house.user.sends(Attachment(kind="file", name="report.pdf"), text="see")
    (message,) = house.model.last_request.request.messages
    assert isinstance(message, UserMessage)
    assert (message.text, message.note) == ("see", "report.pdf could not be fetched.")


async def test_files_are_fetched_once(house: House) -> None:
    """What became of a file is on record: a turn that goes on does not fetch it again."""
    house.model.answers(calls("sup", id="c1", x="1"), says("ok"))
    await house.user.sends(Attachment(kind="file", name="report.pdf"), text="see")
    await house.operator.presses("Approve")
    first, second = (request.request.messages[0] for request in house.model.requests)
    assert first == second
    assert [fields["name"] for event, fields in house.log if event == "attachment.wanted"] == ["report.pdf"]


async def test_a_message_of_blanks_is_told_in_words(house: House) -> None:
    """V4: every request says something in each message, and the history keeps what was said."""
    house.model.answers(says("ok"))
    await house.user.says("  ")
    (message,) = house.model.last_request.request.messages
    assert message == replace((await house.messages()).messages[0], text=NO_TEXT)
