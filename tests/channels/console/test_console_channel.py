"""The terminal as a channel: what is said gets in, what is sent reaches every terminal, prompts outlive all of them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from channels.console import KIND, ConsoleSettings
from channels.console.adapter import ConsoleChannel
from zerobot.core.approvals import ApprovalPrompt, PressOutcome, PressReply, PromptLine
from zerobot.core.channel import (
    AsksApproval,
    Channel,
    ChannelServices,
    EditsMessages,
    MessageBody,
    OutboundMessage,
    ShowsTyping,
)
from zerobot.core.envelope import Acceptance, Button, ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.errors import StorageError, TryLaterError, UnreachableError
from zerobot.core.events import Outcome
from zerobot.core.ids import ApprovalId
from zerobot.core.log import silent
from zerobot.core.places import Identity, Place
from zerobot.core.terminal import FollowsTurns, TakesTerminals
from zerobot.daemon.clock import SystemClock
from zerobot.security.visible import escape
from zerobot.testing.intake import MemoryState

PLACE = Place("console", "local")


class Desk:
    """Takes in what the channel hands over."""

    def __init__(self) -> None:
        self.envelopes: list[InboundEnvelope] = []
        self.presses: list[ButtonPress] = []
        self.full = False

    async def accept(self, envelope: InboundEnvelope) -> Acceptance:
        if self.full:
            raise StorageError("the disk is full")
        self.envelopes.append(envelope)
        return Acceptance.ACCEPTED

    async def press(self, press: ButtonPress) -> PressReply:
        self.presses.append(press)
        return PressReply(PressOutcome.APPROVED, "Approved.")

    async def may_press(self, press: ButtonPress) -> PressReply | None: ...

    async def edited(self, edit: EnvelopeEdit) -> None: ...

    async def moved(self, old: Place, new_chat: str) -> None: ...

    async def alarm(self, subject: str, text: str) -> None: ...

    def connected(self) -> None: ...

    def disconnected(self, why: str) -> None: ...


class Screen:
    """A terminal whose person is the test."""

    def __init__(self) -> None:
        self.items: asyncio.Queue[Mapping[str, object]] = asyncio.Queue()
        self.typed: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()

    async def send(self, item: Mapping[str, object]) -> None:
        self.items.put_nowait(item)

    async def inputs(self) -> AsyncIterator[Mapping[str, object]]:
        while (value := await self.typed.get()) is not None:
            yield value

    async def shows(self, kind: str) -> Mapping[str, object]:
        async with asyncio.timeout(10):
            while (item := await self.items.get())["kind"] != kind:
                pass
        return item


class Broken(Screen):
    """A terminal that went away without a word."""

    async def send(self, item: Mapping[str, object]) -> None:
        raise ConnectionResetError


def services(state: MemoryState) -> ChannelServices:
    return ChannelServices(
        name="console",
        http=lambda: pytest.fail("a terminal needs no network"),
        escape=escape,
        safe_name=lambda name: name,
        clock=SystemClock(),
        log=silent,
        commands=(),
        state=state,
    )


@asynccontextmanager
async def running(desk: Desk, state: MemoryState | None = None) -> AsyncIterator[ConsoleChannel]:
    channel = KIND.open(ConsoleSettings(), services(state or MemoryState()))
    assert isinstance(channel, ConsoleChannel)
    task = asyncio.create_task(channel.run(desk))
    try:
        yield channel
    finally:
        task.cancel()
        await asyncio.wait((task,))
        await channel.close()


@asynccontextmanager
async def attached(channel: ConsoleChannel, screen: Screen) -> AsyncIterator[Screen]:
    task = asyncio.create_task(channel.attach(screen))
    try:
        yield screen
    finally:
        task.cancel()
        await asyncio.wait((task,))


def message(text: str) -> OutboundMessage:
    return OutboundMessage(place=PLACE, body=MessageBody(text), key="k1", reply_to="m1")


def prompt(*, is_open: bool = True, text: str = "ls -l") -> ApprovalPrompt:
    return ApprovalPrompt(
        approval=ApprovalId("a1"),
        code="BCDF",
        lines=(PromptLine(kind="title", text="Approval needed: shell"), PromptLine(kind="argument", text=text)),
        open=is_open,
    )


def test_it_can_do_what_the_daemon_may_ask_of_it() -> None:
    """The channel fits every seam that its kind promises."""
    channel: Channel = KIND.open(ConsoleSettings(), services(MemoryState()))
    for seam in (EditsMessages, AsksApproval, ShowsTyping, TakesTerminals, FollowsTurns):
        assert isinstance(channel, seam)


async def test_what_is_said_is_accepted_from_the_local_person() -> None:
    """A line becomes an envelope of `console:local`, directly, under the terminal's own unique id."""
    desk = Desk()
    async with running(desk) as channel, attached(channel, Screen()) as screen:
        screen.typed.put_nowait({"id": "0123456789abcdef", "text": "hello"})
        assert (await screen.shows("accepted"))["acceptance"] == "accepted"
    (envelope,) = desk.envelopes
    assert (envelope.text, envelope.sender, envelope.place) == ("hello", Identity("console", "local"), PLACE)
    assert (envelope.event_id, envelope.direct) == ("0123456789abcdef", True)


@pytest.mark.parametrize("value", [{}, {"id": "0123456789", "text": " "}, {"id": "x\n", "text": "a"}, {"text": 1}])
async def test_what_says_nothing_is_not_accepted(value: dict[str, object]) -> None:
    """An empty line, or rubbish on the line, reaches nobody and is answered."""
    desk = Desk()
    async with running(desk) as channel, attached(channel, Screen()) as screen:
        screen.typed.put_nowait(value)
        assert (await screen.shows("accepted"))["acceptance"] == "empty"
    assert desk.envelopes == []


async def test_a_full_disk_is_told() -> None:
    """What could not be stored is said to be so, and the terminal stays usable."""
    desk = Desk()
    desk.full = True
    async with running(desk) as channel, attached(channel, Screen()) as screen:
        screen.typed.put_nowait({"id": "0123456789", "text": "a"})
        assert "disk" in str((await screen.shows("failed"))["text"])
        desk.full = False
        screen.typed.put_nowait({"id": "0123456789", "text": "a"})
        assert (await screen.shows("accepted"))["acceptance"] == "accepted"


async def test_every_terminal_sees_everything() -> None:
    """A message, its edits and the end of its turn reach each attached terminal."""
    async with running(Desk()) as channel, attached(channel, Screen()) as one, attached(channel, Screen()) as two:
        sent = await channel.send(message("hel"))
        await channel.edit(sent, MessageBody("hello"))
        await channel.turn_ended(PLACE, "m1", Outcome.REPLIED)
        for screen in (one, two):
            assert (await screen.shows("message"))["reply_to"] == "m1"
            assert (await screen.shows("edit"))["text"] == "hello"
            assert (await screen.shows("ended"))["outcome"] == "replied"


async def test_a_broken_terminal_harms_no_other() -> None:
    """One that went away is let go; the others get what they should."""
    async with running(Desk()) as channel, attached(channel, Screen()) as one, attached(channel, Broken()):
        await channel.send(message("a"))
        await channel.send(message("b"))
        assert (await one.shows("message"))["text"] == "a"
        assert (await one.shows("message"))["text"] == "b"


async def test_without_a_terminal_a_message_waits_in_the_outbox() -> None:
    """Nobody is there: the message is refused for now, and surely not taken."""
    async with running(Desk()) as channel:
        with pytest.raises(TryLaterError):
            await channel.send(message("a"))


async def test_a_prompt_is_shown_whole_and_pressed() -> None:
    """A terminal gets every line of a prompt, and a press reaches the daemon as the local person's."""
    desk = Desk()
    async with running(desk) as channel, attached(channel, Screen()) as screen:
        sent = await channel.ask(PLACE, prompt(text="\x1b[2Jls"), "p1")
        shown = (await screen.shows("ask"))["prompt"]
        assert isinstance(shown, dict)
        assert shown["lines"] == [["title", "", "Approval needed: shell"], ["argument", "", "\\u{1b}[2Jls"]]
        screen.typed.put_nowait({"approval": "a1", "button": "deny", "reason": "no"})
        assert (await screen.shows("pressed"))["outcome"] == "approved"
        await channel.settle(sent, prompt(is_open=False))
        assert (await screen.shows("settle"))["id"] == "p1"
    (press,) = desk.presses
    assert (press.button, press.reason, press.presser) == (Button.DENY, "no", Identity("console", "local"))


async def test_an_open_prompt_is_shown_to_who_comes_later() -> None:
    """A prompt outlives the terminal, and the daemon; once it is settled nobody is shown it again."""
    state = MemoryState()
    async with running(Desk(), state) as channel:
        await channel.ask(PLACE, prompt(), "p1")
    async with running(Desk(), state) as channel:
        async with attached(channel, Screen()) as screen:
            shown = await screen.shows("ask")
            assert shown["id"] == "p1"
            await channel.settle(await channel.ask(PLACE, prompt(), "p1"), prompt(is_open=False))
        async with attached(channel, Screen()) as screen:
            await channel.send(message("a"))
            assert (await screen.items.get())["kind"] == "message"


async def test_a_terminal_that_hangs_up_is_done() -> None:
    """When the person closes the terminal, serving it ends by itself."""
    async with running(Desk()) as channel:
        screen = Screen()
        screen.typed.put_nowait(None)
        async with asyncio.timeout(10):
            await channel.attach(screen)


async def test_the_local_person_is_reached_here_and_nobody_else() -> None:
    """A prompt for `console:local` goes to the terminal's chat; other people are not behind it."""
    async with running(Desk()) as channel:
        assert channel.direct_place(Identity("console", "local")) == PLACE
        assert channel.direct_place(Identity("fake", "1")) is None


async def test_where_nobody_sits_nobody_is_asked() -> None:
    """A script's terminal shows what would have been asked; with a person's beside it, that one is asked."""
    script, person = Screen(), Screen()
    async with running(Desk()) as channel, attached(channel, script):
        await script.typed.put({"answers": False})
        await script.typed.put({"id": "12345678", "text": "hello"})
        await script.shows("accepted")
        with pytest.raises(UnreachableError, match="not interactive"):
            await channel.ask(PLACE, prompt(), "k1")
        assert (await script.shows("unasked"))["prompt"]
        async with attached(channel, person):
            await person.typed.put({"id": "abcdefgh", "text": "I am here"})
            await person.shows("accepted")
            await channel.ask(PLACE, prompt(), "k2")
            assert (await person.shows("ask"))["id"] == "k2"
