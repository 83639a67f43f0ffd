"""Pictures in a turn: what is sent instead of those that a provider did not take (spec K9, K10)."""

from dataclasses import replace

import pytest

from zerobot.core.envelope import Attachment
from zerobot.core.errors import BodyTooLargeError, ContextOverflowError, PictureRejectedError, ProviderError
from zerobot.core.events import StatusChanged
from zerobot.core.messages import StoredFile, UserMessage
from zerobot.testing.house import House
from zerobot.testing.model import ScriptedModel, SeenRequest, calls, fails, says
from zerobot.turn import notices
from zerobot.turn.estimate import PICTURE_TOKENS, estimate
from zerobot.turn.shrink import shrink
from zerobot.turn.summary import SYSTEM
from zerobot.turn.window import BY_HAND

TOO_LARGE = BodyTooLargeError("Request exceeds the maximum size", code="body_too_large", status=413)
REJECTED = PictureRejectedError("Could not process image", code="picture_rejected", status=400)
TOO_LONG = ContextOverflowError("too long", code="context_overflow", status=400)


def picture(name: str, digest: str = "") -> StoredFile:
    """A picture that was fetched."""
    return StoredFile(
        kind="image", name=name, mime="image/png", size=9, path=f"in/{name}", digest=digest or f"digest of {name}"
    )


async def sends(house: House, *names: str, text: str = "look") -> None:
    """The user sends pictures, and the house comes to rest."""
    house.settings.files |= {name: picture(name) for name in names}
    await house.user.sends(*(Attachment(kind="image", name=name) for name in names), text=text)


def shown(seen: SeenRequest) -> list[str]:
    """The names of the pictures that a request asks to show."""
    messages = [each for each in seen.request.messages if isinstance(each, UserMessage)]
    return [file.name for message in messages for file in message.files if file.digest]


def told(seen: SeenRequest) -> int:
    """How many messages say that a picture was left out."""
    messages = [each for each in seen.request.messages if isinstance(each, UserMessage)]
    return sum(notices.PICTURE_LEFT_OUT in message.note for message in messages)


async def test_a_body_that_is_too_large_keeps_the_newest_two_then_none(house: House) -> None:
    """K9: 413 leaves the two newest pictures, another 413 leaves text; people and the model are told."""
    house.model.answers(says("one"))
    await sends(house, "a", "b")
    house.model.answers(fails(TOO_LARGE), fails(TOO_LARGE), says("ok"))
    await sends(house, "c", "d")
    assert [shown(request) for request in house.model.requests[1:]] == [["a", "b", "c", "d"], ["c", "d"], []]
    assert [told(request) for request in house.model.requests[1:]] == [0, 1, 2]
    assert house.finals[-1].text == "ok"
    assert StatusChanged(notices.WITHOUT_PICTURES) in house.events


async def test_two_pictures_that_are_too_large_go_at_once(house: House) -> None:
    """K9: the same request is never sent again."""
    house.model.answers(fails(TOO_LARGE), says("ok"))
    await sends(house, "a", "b")
    assert [shown(request) for request in house.model.requests] == [["a", "b"], []]


@pytest.mark.parametrize("first", [REJECTED, TOO_LARGE])
async def test_rejected_pictures_are_all_left_out(house: House, first: ProviderError) -> None:
    """K9: an image rejection, at once or after a 413, leaves text only."""
    house.model.answers(fails(first), *([fails(REJECTED)] if first is TOO_LARGE else []), says("ok"))
    await sends(house, "a", "b", "c")
    assert shown(house.model.last_request) == []
    assert house.finals[0].text == "ok"
    assert len(house.model.requests) == (3 if first is TOO_LARGE else 2)


async def test_a_bad_picture_does_not_hide_those_that_come_later(house: House) -> None:
    """K9: it may be an old one that is rejected, so the newest message's are tried once without the others."""
    house.model.answers(fails(REJECTED), says("one"))
    await sends(house, "bad")
    house.model.answers(fails(REJECTED), says("two"))
    await sends(house, "good")
    assert [shown(request) for request in house.model.requests[2:]] == [["bad", "good"], ["good"]]
    house.model.answers(fails(REJECTED), fails(REJECTED), says("three"))
    await sends(house, "bad too")
    assert [shown(request) for request in house.model.requests[4:]] == [["bad", "good", "bad too"], ["bad too"], []]


async def test_what_was_not_taken_is_not_sent_again_in_the_turn_but_in_the_next(house: House) -> None:
    """K9: sticky for the rest of the turn, over its steps; the store keeps the pictures."""
    house.model.answers(fails(REJECTED), calls("echo", id="c1", text="x"), says("ok"))
    await sends(house, "a")
    assert [shown(request) for request in house.model.requests] == [["a"], [], []]
    assert house.model.requests[2].request.messages[0] == house.model.requests[1].request.messages[0]
    house.model.answers(says("again"))
    await house.user.says("and now?")
    assert shown(house.model.last_request) == ["a"]


async def test_the_same_picture_stays_out_whatever_message_it_is_in(house: House) -> None:
    """K9: pictures are known by their bytes."""
    house.settings.files["b"] = picture("b", "digest of a")
    house.model.answers(says("one"))
    await sends(house, "a")
    house.model.answers(fails(REJECTED), says("ok"))
    await house.user.sends(Attachment(kind="image", name="b"), text="the same")
    assert shown(house.model.last_request) == []
    assert told(house.model.last_request) == 2


async def test_a_rejection_without_any_picture_ends_the_turn(house: House) -> None:
    """K9: where there is nothing to leave out, a recovery does not loop."""
    house.model.answers(fails(REJECTED))
    await house.user.says("hi")
    assert house.finals[0].error is not None
    assert house.finals[0].error.code == "picture_rejected"
    assert len(house.model.requests) == 1


async def test_a_body_that_is_too_large_without_pictures_is_shortened(house: House) -> None:
    """K9: then it is the text, as with an overflow, and the user is not asked to send again."""
    house.model.answers(calls("echo", id="c1", text="x" * 9_000), fails(TOO_LARGE), says("ok"))
    await house.user.says("hi")
    assert house.finals[0].text == "ok"
    assert len(house.model.last_request.result_of("c1").text) < 2_500


async def test_a_refused_picture_stays_out_for_the_next_model(house: House) -> None:
    """K9: a mended request stays mended over a failover."""
    second = ScriptedModel("backup")
    house.settings.fallbacks, house.settings.max_retries = [second], 0
    house.model.answers(fails(REJECTED), fails(ProviderError("busy", code="overloaded", retryable=True)))
    second.answers(says("ok"))
    await sends(house, "a")
    assert shown(second.last_request) == []


async def test_without_eyes_there_are_no_pictures(house: House) -> None:
    """No model of the route sees: nothing asks to show a picture, and none counts for the window."""
    house.settings.sees = False
    house.model.answers(says("ok"))
    await sends(house, "a")
    (message,) = house.model.last_request.request.messages
    assert shown(house.model.last_request) == []
    assert isinstance(message, UserMessage)
    assert (message.note, [file.name for file in message.files]) == ("", ["a"])
    assert estimate([message]) < PICTURE_TOKENS


async def test_a_picture_counts_for_the_window(house: House) -> None:
    """K10: 2000 tokens each, so that a conversation of pictures is summed up in time."""
    house.settings.window = 10_000
    house.settings.compaction = replace(BY_HAND, head=1)
    house.model.improvise = lambda request: says("Words." if request.system == SYSTEM else "ok")
    for number in range(4):
        await sends(house, f"p{number}", text=f"question {number}")
    assert all(request.request.system != SYSTEM for request in house.model.requests)
    await sends(house, "p4")
    assert sum(request.request.system == SYSTEM for request in house.model.requests) == 1


async def test_old_pictures_go_before_old_turns(house: House) -> None:
    """K9: what was too long loses its oldest pictures first, so that all words stay."""
    house.model.answers(says("one"))
    await sends(house, "a", "b", text="first")
    house.model.answers(says("two"))
    await sends(house, "c", text="second")
    house.model.answers(fails(TOO_LONG), says("ok"))
    await house.user.says("third")
    assert shown(house.model.last_request) == ["b", "c"]
    assert house.model.last_request.lines == ["U:first", "A:one", "U:second", "A:two", "U:third"]
    messages = house.model.requests[2].request.messages
    assert estimate(shrink(messages, 100)) < PICTURE_TOKENS
