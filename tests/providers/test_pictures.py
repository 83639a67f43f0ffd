"""Pictures that people attached: which of them a model is shown, and in which form."""

import asyncio
import base64
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.platforms.model_asking import KINDS, ask, assistant, attached, called, provider_on, question, tool, user
from tests.platforms.model_images import GIF, REJECTIONS, TOO_LARGE, picture
from tests.platforms.model_script import Refuses, says
from tests.platforms.model_seen import SeenRequest
from tests.platforms.model_server import ModelServer
from zerobot.core.errors import BodyTooLargeError, PictureRejectedError
from zerobot.core.messages import Message, StoredFile
from zerobot.core.model import Picture
from zerobot.providers.address import host_of
from zerobot.providers.picture_limits import UNKNOWN, PictureLimits, limits_at
from zerobot.providers.pictures import SeeingModel, chosen

every_kind = pytest.mark.parametrize("kind", KINDS)
CAT, DOG = picture(1), picture(2)


class Shelf:
    """Has the bytes of some files."""

    def __init__(self, **files: bytes) -> None:
        self._files = {f"in/{name}": data for name, data in files.items()}
        self.read: list[str] = []

    async def __call__(self, file: StoredFile) -> Picture | None:
        """See `ReadPicture`."""
        self.read.append(file.path)
        data = self._files.get(file.path)
        return None if data is None else Picture(mime=file.mime, base64=base64.b64encode(data).decode())


async def seen(kind: str, shelf: Shelf, *messages: Message) -> SeenRequest:
    """What the strict server of a kind sees of some messages."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(says("A cat."))
        asked = await ask(SeeingModel(provider, UNKNOWN, shelf), question(*messages))
        assert asked.shown == "A cat."
        return server.last_request


@every_kind
async def test_a_model_sees_a_picture_behind_the_words_about_it(kind: str) -> None:
    """Its bytes are those of the file; the text says which file it is, so that tools can be told of it."""
    request = await seen(kind, Shelf(cat=CAT, dog=DOG), user("which?", attached("cat", CAT), attached("dog", DOG)))
    assert request.pictures == [CAT, DOG]
    (content,) = [each["content"] for each in (*request.body.get("messages", ()), *request.body.get("input", ()))][-1:]
    texts = [part.get("text", "PICTURE").splitlines() for part in content]
    line = "[attached image: {}, image/png, " + f"{len(CAT)} bytes, saved as in/" + "{}]"
    first, second = line.format("cat", "cat"), line.format("dog", "dog")
    assert texts == [["which?", "", first], ["PICTURE"], [second], ["PICTURE"]]


@every_kind
async def test_a_model_without_eyes_reads_about_it(kind: str) -> None:
    """Without pictures a request is what it always was."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(says("Fine."))
        await ask(provider, question(user("look", attached("cat"))))
    assert server.last_request.pictures == []
    assert server.last_request.newest_text.endswith("saved as in/cat]")


@every_kind
async def test_pictures_stand_in_any_place_of_a_conversation(kind: str) -> None:
    """Alone, at the begin, between rounds and after results; each type as its bytes say."""
    request = await seen(
        kind,
        Shelf(cat=CAT, gif=GIF, dog=DOG),
        user("", attached("cat")),
        assistant("", called("a", "c1")),
        user("and this", attached("gif", GIF, "image/gif")),
        assistant("Hm."),
        user("yes"),
        user("", attached("dog")),
    )
    assert request.pictures == [CAT, GIF, DOG]


@every_kind
async def test_the_same_conversation_is_the_same_request(kind: str) -> None:
    """Byte for byte, so that a provider's cache has it; a picture is read for each request anew."""
    shelf = Shelf(cat=CAT)
    message = user("look", attached("cat"))
    first, second = [await seen(kind, shelf, message) for _ in range(2)]
    assert first.body == second.body
    assert shelf.read == ["in/cat", "in/cat"]


@every_kind
async def test_a_picture_that_cannot_be_read_is_text(kind: str) -> None:
    """A file that is gone, or another one now, costs nobody the answer."""
    request = await seen(kind, Shelf(dog=DOG), user("which?", attached("cat"), attached("dog")))
    assert request.pictures == [DOG]
    assert "saved as in/cat]" in request.newest_text


async def test_a_model_that_calls_tools_in_text_sees_too() -> None:
    """Its calls and results become text, the pictures stay."""
    messages = (user("look", attached("cat", CAT)), assistant("", called("a", "c1")), user("and?"))
    async with ModelServer() as server, provider_on(server, "openai", text_tools=True) as provider:
        server.answers(says("A cat."))
        await ask(SeeingModel(provider, UNKNOWN, Shelf(cat=CAT)), question(*messages, tools=[tool("a")]))
    assert server.last_request.pictures == [CAT]


async def test_what_waits_for_a_file_can_be_cancelled() -> None:
    """A stop need not wait for a slow disk."""
    reading = asyncio.Event()

    async def never(_: StoredFile) -> Picture | None:
        reading.set()
        await asyncio.Event().wait()
        return None

    async with ModelServer() as server, provider_on(server, "openai") as provider:
        asking = asyncio.create_task(ask(SeeingModel(provider, UNKNOWN, never), question(user("", attached("cat")))))
        await reading.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert server.requests == []


SMALL = PictureLimits(count=4, each=100, total=200)


def names(files: Sequence[StoredFile]) -> list[str]:
    """The names of files."""
    return [file.name for file in files]


def sized(name: str, size: int = 10, mime: str = "image/png") -> StoredFile:
    """A picture of so many bytes."""
    return attached(name, bytes(size), mime)


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        ([[sized("a")], [sized("b", 101)], [sized("c", 100)]], ["a", "c"]),
        ([[sized("a", 10, "image/bmp")], [sized("b")]], ["b"]),
        ([[attached("a", digest="")], [sized("b")]], ["b"]),
        ([[sized(n)] for n in "abcd"], ["a", "b", "c", "d"]),
        ([[sized(n)] for n in "abcde"], ["d", "e"]),
        ([[sized(n)] for n in "abcdefg"], ["d", "e", "f", "g"]),
        ([[sized("a", 90)], [sized("b", 90)], [sized("c", 90)]], ["c"]),
        ([[sized("a")], [sized(n) for n in "bcde"]], ["b", "c", "d", "e"]),
        ([[sized(n) for n in "abcdef"]], ["c", "d", "e", "f"]),
    ],
)
def test_the_newest_pictures_that_fit_are_shown(files: list[list[StoredFile]], shown: list[str]) -> None:
    """Over a limit older ones go until half is free; those of the newest message only as far as they must."""
    assert names(chosen([user("", *each) for each in files], SMALL)) == shown


@given(st.lists(st.lists(st.integers(1, 120), max_size=6), max_size=30))
def test_the_choice_fits_and_moves_in_jumps(sizes: list[list[int]]) -> None:
    """Never over the limits; the newest is shown if it can be; a choice begins like the last one or drops a half."""
    conversation: list[Message] = []
    before: list[str] = []
    for number, own in enumerate(sizes):
        files = [sized(f"{number}.{place}", size) for place, size in enumerate(own)]
        conversation.append(user("x", *files))
        now = chosen(conversation, SMALL)
        assert SMALL.hold(now)
        takable = [file.name for file in files if SMALL.takes(file)]
        assert not takable or names(now)[-1] == takable[-1]
        kept = [name for name in names(now) if name in before]
        if kept != before:
            assert len(kept) <= SMALL.count / 2
        before = names(now)


def test_every_server_gets_what_it_takes() -> None:
    """In base64 a file is a third longer; what is not known gets what nearly all others take."""
    anthropic = limits_at("https://api.anthropic.com")
    assert anthropic.each * 4 / 3 < 5 * 1024 * 1024
    assert anthropic.total * 4 / 3 < 32_000_000
    assert limits_at("http://127.0.0.1:8080/v1") is UNKNOWN
    assert "image/gif" not in limits_at("https://api.x.ai/v1").types
    assert host_of("https://api.groq.com/openai/v1") == "api.groq.com"
    assert limits_at("https://api.groq.com/openai/v1").total * 4 / 3 < 4_000_000


@pytest.mark.parametrize(("kind", "refusal"), [(kind, each) for kind in KINDS for each in REJECTIONS[kind]])
async def test_a_refused_picture_is_known_as_such(kind: str, refusal: Refuses) -> None:
    """Whatever the vendor calls it: without the picture the question can be asked."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(refusal)
        asked = await ask(provider, question("look"))
    assert type(asked.error) is PictureRejectedError
    assert not asked.error.retryable


@pytest.mark.parametrize(("kind", "refusal"), [(kind, each) for kind in KINDS for each in TOO_LARGE[kind]])
async def test_too_many_bytes_are_known_as_such(kind: str, refusal: Refuses) -> None:
    """Too many bytes, pixels or pictures: with fewer pictures the question can be asked."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(refusal)
        asked = await ask(provider, question("look"))
    assert type(asked.error) is BodyTooLargeError
