"""The whole daemon in this process, without a network: a scripted model, and a channel that takes everything at once.

For what cannot be seen from outside: its tasks, its store, its own time without that of any library for HTTP.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from zerobot.config.kinds import Kinds
from zerobot.config.loader import load_config
from zerobot.core.channel import Capabilities, Channel, ChannelKind, ChannelServices, Finding, Pace
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.model import ModelProvider
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.core.provider_kind import ProviderKind, ProviderServices, ProviderSettings
from zerobot.daemon.app import run_daemon
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.parts import Parts
from zerobot.testing.channel import FakeChannel
from zerobot.testing.model import ScriptedModel

NAME = "inside"
PATIENCE = 60.0
"""Seconds for whatever is waited for."""
AT_ONCE = 20
"""Chats that write before the first of them is answered."""
_NO_LIMIT = Pace(draft_interval=1.0, chat_calls=(1000, 0.001), bot_calls=(1000, 0.001))
_CONFIG = """
[daemon]
state_dir = {state}
[agent]
model = "main/m-1"
history_messages = {history}
[providers.main]
kind = "inside"
[channels.inside]
allowed_users = ["*"]
[operators]
users = ["inside:boss"]
notify = "direct"
"""
_event_numbers = count(1)


class Inside:
    """A daemon that runs, and the chats with it.

    Args:
        model: Answers it.
        channel: Where people write.
    """

    def __init__(self, model: ScriptedModel, channel: FakeChannel) -> None:
        self.model = model
        self.channel = channel
        self.tasks = 0
        """How many there are while nothing happens; see `settle`."""
        self.parts: asyncio.Future[Parts] = asyncio.get_running_loop().create_future()
        """The daemon's, once it is ready."""
        self._logged: dict[str, int] = {}
        self._news = asyncio.Event()

    def log(self, event: str, /, **_: object) -> None:
        """Take a line of the daemon's log."""
        self._logged[event] = self.logged(event) + 1
        self._news.set()

    def logged(self, event: str) -> int:
        """How often an event was logged."""
        return self._logged.get(event, 0)

    async def say(self, text: str, *, chats: int = 1, first_chat: int = 0, ends: str = "turn.finished") -> None:
        """Write the same in some chats, each somebody's own, and wait until all of these turns have ended.

        Args:
            text: What is written.
            chats: How many.
            first_chat: The number of the first.
            ends: The event with which these turns end; `turn.paused` for those that ask an operator.
        """
        before = self.logged(ends)
        async with self.ends(ends, chats):
            for number in range(chats):
                await self._until(ends, before + number + 1 - AT_ONCE)
                await self._write(text, str(first_chat + number))

    @asynccontextmanager
    async def ends(self, event: str, turns: int = 1) -> AsyncIterator[None]:
        """Whatever happens in the body, wait afterwards until so many turns have ended with this event."""
        before = self.logged(event)
        yield
        await self._until(event, before + turns)

    async def settle(self) -> None:
        """Take note of how many tasks there are while nothing happens: now, as soon as their number stays the same."""
        self.tasks = 0
        while self.tasks != len(asyncio.all_tasks()):
            self.tasks = len(asyncio.all_tasks())
            await asyncio.sleep(0.2)

    async def quiet(self) -> None:
        """Wait until nothing happens any more, and `forget`."""
        async with asyncio.timeout(PATIENCE):
            while len(asyncio.all_tasks()) > self.tasks:  # noqa: ASYNC110 - a task's end sets no event
                await asyncio.sleep(0.01)
        self.forget()

    def forget(self) -> None:
        """Drop what the doubles have noted, so that it is neither measured nor in the way."""
        self.model.requests.clear()
        self.channel.calls.clear()
        self.channel.messages.clear()

    async def _write(self, text: str, chat: str) -> None:
        number = str(next(_event_numbers))
        envelope = InboundEnvelope(
            conversation=ConversationKey(Place(NAME, chat)),
            sender=Identity(NAME, chat),
            event_id=number,
            message_id=number,
            text=text,
            direct=True,
        )
        await self.channel.receive(envelope)

    async def _until(self, event: str, times: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.logged(event) < times:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def daemon(folder: Path, model: ScriptedModel, *, history: int = 200) -> AsyncIterator[Inside]:
    """Run a daemon on the state in a folder, from when it is ready; in the end it stops gracefully.

    Args:
        folder: Keeps its settings and its state.
        model: Answers it.
        history: The daemon's `history_messages`.
    """
    clock = SystemClock()
    inside = Inside(model, FakeChannel(clock, name=NAME, platform=NAME))
    file = folder / "zerobot.toml"
    file.write_text(_CONFIG.format(state=json.dumps(str(folder / "state")), history=history))
    file.chmod(0o600)
    config = load_config(file, {}, _kinds(inside.channel, model))
    stop = asyncio.Event()
    running = asyncio.create_task(run_daemon(config, stop=stop, started=inside.parts, log=inside.log))
    try:
        either: tuple[asyncio.Future[Any], ...] = (running, inside.parts)
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        await inside.settle()
        yield inside
    finally:
        stop.set()
        await running


def _kinds(channel: Channel, model: ModelProvider) -> Kinds:
    """What is installed: these two."""

    def open_channel(settings: BaseModel, services: ChannelServices) -> Channel:  # noqa: ARG001 -- the seam's signature
        return channel

    async def check(settings: BaseModel, services: ChannelServices) -> AsyncIterator[Finding]:  # noqa: ARG001
        yield Finding("ok", services.name, "it is a double")

    def open_provider(
        name: str,  # noqa: ARG001
        settings: ProviderSettings,  # noqa: ARG001
        services: ProviderServices,  # noqa: ARG001
    ) -> ModelProvider:
        return model

    channel_kind = ChannelKind(
        name=NAME,
        title="Inside",
        settings=ChannelSettings,
        capabilities=Capabilities(edits=True, buttons=True, groups=True),
        pace=_NO_LIMIT,
        open=open_channel,
        check=check,
    )
    provider_kind = ProviderKind(name=NAME, default_base_url="", needs_key=False, open=open_provider)
    return Kinds(channels={NAME: lambda: channel_kind}, providers={NAME: lambda: provider_kind})
