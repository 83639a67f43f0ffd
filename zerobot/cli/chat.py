"""A conversation in this terminal: with the daemon that runs, else with one that lives as long as the conversation."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from zerobot.cli.terminal.kind import terminal_kind
from zerobot.cli.terminal.lines import LineAnswers, StdinLines, nobody_to_ask
from zerobot.cli.terminal.link import Link, LocalLink
from zerobot.cli.terminal.plain import Decide, Streams, ask_lines, ask_once
from zerobot.config.loader import LoadedConfig
from zerobot.core.channel import Channel, ChannelServices
from zerobot.core.errors import ZerobotError
from zerobot.core.log import EventLog
from zerobot.core.terminal import TakesTerminals
from zerobot.daemon.app import run_daemon
from zerobot.daemon.control import NoDaemonError, converse
from zerobot.daemon.logs import log_to
from zerobot.security.redact import Redactor
from zerobot.store.state_dir import StateDir

LEAVE_GRACE = 1.0
"""Seconds that a turn gets when the person leaves; what is left of it goes on at the next start."""
LOG_NAME = "chat.log"
LEAVE = frozenset({"/quit", "/exit"})
WELCOME = "Write to the bot; /help shows what it knows, Ctrl-D or /quit leaves."

Front = Callable[[Link], Coroutine[None, None, int]]
"""Holds the conversation over a link; the exit status."""


def talk_here(loaded: LoadedConfig, message: str | None) -> int:
    """Hold a conversation in this terminal; the exit status.

    Args:
        loaded: Names the state directory, and configures the bot if no daemon runs.
        message: Say only this; `-`: what stdin holds; None: converse.

    Raises:
        ZerobotError: No conversation is possible.
    """
    if message == "-":
        message = sys.stdin.read()
    if message is not None and not message.strip():
        raise ZerobotError("there is nothing to say: the message is empty")
    try:
        return asyncio.run(_talk(loaded, _front(loaded, message)))
    except KeyboardInterrupt:
        return 130


def _front(loaded: LoadedConfig, message: str | None) -> Front:
    """Choose how the conversation is held: one message, a person at a screen, or lines from a pipe."""
    streams = Streams(out=sys.stdout, err=sys.stderr)
    decide: Decide = LineAnswers().decide if sys.stdin.isatty() else nobody_to_ask
    if message is not None:
        return lambda link: ask_once(link, message, streams, decide)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return lambda link: _at_a_screen(link, loaded)
    return lambda link: ask_lines(link, StdinLines().lines(), streams, decide, LEAVE)


async def _at_a_screen(link: Link, loaded: LoadedConfig) -> int:
    from zerobot.cli.terminal.talk import Talk, open_history  # noqa: PLC0415 - loads the libraries for screens

    await Talk(link, open_history(loaded.state_dir / "chat_history")).run(WELCOME)
    return 0


async def _talk(loaded: LoadedConfig, front: Front) -> int:
    with contextlib.suppress(NoDaemonError):
        async with converse(StateDir(loaded.state_dir).socket_path, "chat.open", {}) as conversing:
            return await front(conversing)
    return await _alone(loaded, front)


async def _alone(loaded: LoadedConfig, front: Front) -> int:
    """Be the daemon, with the terminal as its only channel."""
    loaded = _for_chat(loaded)
    name, kind, settings = terminal_kind(loaded)
    stop = asyncio.Event()
    opened: asyncio.Future[Channel] = asyncio.get_running_loop().create_future()

    def open_channel(settings: BaseModel, services: ChannelServices) -> Channel:
        channel = kind.open(settings, services)
        opened.set_result(channel)
        return channel

    link = LocalLink()
    with _log_file(loaded) as log:
        daemon = asyncio.create_task(
            run_daemon(
                loaded,
                only_channels=(),
                extra_channels={name: (replace(kind, open=open_channel), settings)},
                stop=stop,
                log=log,
                command="zerobot chat",
            ),
            name="daemon",
        )
        serving = asyncio.create_task(_serve(opened, link), name="terminal")
        talking = asyncio.create_task(front(link), name="conversation")
        try:
            await asyncio.wait((daemon, talking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            talking.cancel()
            serving.cancel()
            await asyncio.wait((daemon, talking, serving))
        # What ended the daemon says more than what the conversation made of it.
        daemon.result()
        return 130 if talking.cancelled() else talking.result()


async def _serve(opened: asyncio.Future[Channel], link: LocalLink) -> None:
    channel = await opened
    assert isinstance(channel, TakesTerminals), "this kind of channel serves terminals"
    await channel.attach(link.terminal)


def _for_chat(loaded: LoadedConfig) -> LoadedConfig:
    """The settings for a bot that lives as long as the conversation; without any file it works where it was started."""
    daemon = loaded.settings.daemon
    grace = min(daemon.shutdown_grace, LEAVE_GRACE)
    settings = loaded.settings.model_copy(update={"daemon": daemon.model_copy(update={"shutdown_grace": grace})})
    here = loaded.path is None and not settings.security.workspace
    return replace(loaded, settings=settings, workspace=Path.cwd() if here else loaded.workspace)


@contextmanager
def _log_file(loaded: LoadedConfig) -> Iterator[EventLog]:
    """The events of this conversation's bot go into a file: the screen belongs to the conversation."""
    StateDir(loaded.state_dir).prepare()
    handle = os.open(loaded.state_dir / LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        daemon = loaded.settings.daemon
        yield log_to(file, daemon.log_level, Redactor(value for _, value in loaded.secrets), daemon.log_format)
