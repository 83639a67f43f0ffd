"""The supervisor: each channel by itself, tried again for ever, or parked with a word to its operator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from zerobot.core.channel import Intake
from zerobot.core.envelope import Attachment
from zerobot.core.errors import ChannelFaultError
from zerobot.core.log import Level
from zerobot.daemon.supervisor import Supervisor
from zerobot.testing.channel import PlainChannel
from zerobot.testing.clock import ManualClock
from zerobot.testing.intake import RecordingIntake

PATIENCE = 10.0


class Moody(PlainChannel):
    """A channel whose runs end as a test says, one after another; after that it stays."""

    def __init__(self, supervisor: Callable[[], Supervisor], name: str, *ends: Exception | None) -> None:
        super().__init__(ManualClock())
        self._supervisor = supervisor
        self._name = name
        self._ends = list(ends)
        self.runs = 0

    async def run(self, intake: Intake) -> None:
        """See `Channel`."""
        self.runs += 1
        if self._ends:
            end = self._ends.pop(0)
            if end is not None:
                raise end
            return
        self._supervisor().alive(self._name, None)
        await asyncio.Event().wait()

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """See `Channel`; nobody asks."""
        raise NotImplementedError


class Ward:
    """A supervisor with its channels."""

    def __init__(self, **ends: Sequence[Exception | None]) -> None:
        self.clock = ManualClock()
        self.log: list[tuple[str, dict[str, object]]] = []
        self.channels = {name: Moody(lambda: self.supervisor, name, *each) for name, each in ends.items()}
        self.supervisor = Supervisor(self.channels, self.clock, self._note)

    def _note(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        self.log.append((event, fields))

    @property
    def events(self) -> list[str]:
        """The names of what was logged."""
        return [event for event, _ in self.log]

    async def ready(self) -> None:
        """Run until all channels are connected or parked; time passes meanwhile."""
        running = asyncio.create_task(self.supervisor.run({name: RecordingIntake() for name in self.channels}))
        ready = asyncio.create_task(self.supervisor.ready())
        try:
            async with asyncio.timeout(PATIENCE):
                while not ready.done():
                    await self.clock.advance(60.0)
        finally:
            running.cancel()
            await asyncio.wait([running, ready])


async def test_a_channel_that_breaks_is_tried_again_and_again() -> None:
    """B188, B190: whatever it raises, or if it just ends, it comes back."""
    ward = Ward(one=[RuntimeError("a bug"), OSError("no network"), None])
    await ward.ready()
    assert ward.channels["one"].runs == 4
    assert ward.supervisor.health() == {"one": "connected"}
    assert ward.events.count("channel.failed") == 2


async def test_a_channel_that_cannot_work_is_parked_and_the_others_work() -> None:
    """It is not tried again; its reason and what to do are in the log, and the daemon counts as ready."""
    ward = Ward(bad=[ChannelFaultError("the token is refused", advice="mend bot_token")], good=[OSError("later")])
    await ward.ready()
    assert ward.channels["bad"].runs == 1
    assert ward.supervisor.parked == {"bad": "the token is refused"}
    assert ward.supervisor.health() == {"bad": "the token is refused", "good": "connected"}
    parked = next(fields for event, fields in ward.log if event == "channel.parked")
    assert parked["advice"] == "mend bot_token"


async def test_without_channels_it_is_ready_at_once() -> None:
    """A daemon that only serves the terminal later on starts."""
    async with asyncio.timeout(PATIENCE):
        await Ward().supervisor.ready()


@pytest.mark.parametrize("why", [None, "no network"])
def test_only_changes_of_a_connection_are_logged(why: str | None) -> None:
    """A channel that says the same again and again fills no log."""
    ward = Ward(one=[])
    if why:
        ward.supervisor.alive("one", None)
        ward.log.clear()
    for _ in range(5):
        ward.supervisor.alive("one", why)
    assert ward.events == ["channel.disconnected" if why else "channel.connected"]
