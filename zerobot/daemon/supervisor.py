"""Keeps channels running: each by itself, restarted when it breaks, parked when it cannot work as configured."""

import asyncio
import random
from collections.abc import Mapping

from zerobot.core.channel import Channel, Intake
from zerobot.core.clock import Clock
from zerobot.core.errors import ChannelFaultError
from zerobot.core.log import EventLog

FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
HEALTHY = 60.0
"""Seconds of running after which the next fault waits as short as the first."""


class Supervisor:
    """Runs the channels and knows how each of them is.

    Args:
        channels: The open channels by name.
        clock: Times the waits.
        log: Gets `channel.connected`, `channel.disconnected`, `channel.parked`, and once `daemon.ready`.
    """

    def __init__(self, channels: Mapping[str, Channel], clock: Clock, log: EventLog) -> None:
        self._channels = channels
        self._clock = clock
        self._log = log
        self._connected: dict[str, bool] = dict.fromkeys(channels, False)
        self.parked: dict[str, str] = {}
        """Channels that wait for their operator, and why."""
        self._undecided = set(channels)
        self._ready = asyncio.Event()

    def alive(self, channel: str, why: str | None) -> None:
        """A channel's connection works (`why` None), or broke. Only changes are logged."""
        works = why is None
        if self._connected[channel] != works:
            self._connected[channel] = works
            if works:
                self._log("channel.connected", channel=channel)
            else:
                self._log("channel.disconnected", level="warning", channel=channel, why=why)
        if works:
            self._decided(channel)

    def health(self) -> dict[str, str]:
        """Each channel's state in a word: `connected`, `disconnected`, or why it is parked."""
        return {
            name: self.parked.get(name) or ("connected" if works else "disconnected")
            for name, works in self._connected.items()
        }

    async def ready(self) -> None:
        """Wait until every channel has connected or was parked."""
        if self._undecided:
            await self._ready.wait()

    async def run(self, intakes: Mapping[str, Intake]) -> None:
        """Run all channels until cancelled; one that is parked or breaks takes no other along."""
        async with asyncio.TaskGroup() as group:
            for name, channel in self._channels.items():
                group.create_task(self._keep(name, channel, intakes[name]), name=f"channel {name}")

    async def _keep(self, name: str, channel: Channel, intake: Intake) -> None:
        wait = FIRST_WAIT
        while True:
            began = self._clock.monotonic()
            try:
                await channel.run(intake)
            except ChannelFaultError as fault:
                self._park(name, fault)
                return
            except Exception as error:  # noqa: BLE001 - whatever breaks in an adapter, the others and the daemon go on
                self._log("channel.failed", level="error", error=error, channel=name)
                self.alive(name, type(error).__name__)
            else:
                self.alive(name, "it ended")
            if self._clock.monotonic() - began > HEALTHY:
                wait = FIRST_WAIT
            await self._clock.sleep(random.uniform(wait / 2, wait))  # noqa: S311 - no secret
            wait = min(wait * 2, LONGEST_WAIT)

    def _park(self, name: str, fault: ChannelFaultError) -> None:
        self.parked[name] = str(fault)
        self._connected[name] = False
        self._log("channel.parked", level="error", channel=name, why=str(fault), advice=fault.advice)
        self._decided(name)

    def _decided(self, name: str) -> None:
        self._undecided.discard(name)
        if not self._undecided:
            self._ready.set()
