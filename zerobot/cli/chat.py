"""A conversation in this terminal: with the daemon that runs, else with one that lives as long as the conversation."""

import asyncio
import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from zerobot.cli.terminal.kind import terminal_kind
from zerobot.cli.terminal.lines import LineAnswers, StdinLines
from zerobot.cli.terminal.link import Link, LocalLink
from zerobot.cli.terminal.plain import Decide, Streams, ask_lines, ask_once
from zerobot.config.loader import LoadedConfig
from zerobot.config.schema import DEMO
from zerobot.core.channel import Channel, ChannelServices
from zerobot.core.errors import StateLockedError, ZerobotError
from zerobot.core.log import EventLog
from zerobot.core.terminal import TakesTerminals
from zerobot.daemon.app import run_daemon
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.control_client import NoDaemonError, call, converse
from zerobot.daemon.logs import log_to
from zerobot.security.redact import Redactor
from zerobot.security.visible import one_line
from zerobot.store.state_dir import StateDir

LEAVE_GRACE = 1.0
"""Seconds that a turn gets when the person leaves; what is left of it goes on at the next start."""
LOG_NAME = "chat.log"
CHAT = "zerobot chat"
ONE_MESSAGE = "zerobot chat -m"
"""What holds the state directory while one message is answered."""
LOCKED_WAIT = 0.1
LOCKED_TRIES = 100
"""How often, and how many seconds apart, a state directory that is held by a bot that does not listen is looked at."""
LEAVE = frozenset({"/quit", "/exit"})
ATTACHED = (
    "You are talking to the bot that runs; its workspace is {}.\n/help shows what it knows; Ctrl-D or /quit leaves."
)
TRY = "Try: list the files · read README.md · run touch new.txt (it asks you first)."

Front = Callable[[Link, str], Coroutine[None, None, int]]
"""Holds the conversation over a link, after a welcome where a person reads it; the exit status."""


def talk_here(state: LoadedConfig, message: str | None, config: Callable[[], LoadedConfig]) -> int:
    """Hold a conversation in this terminal; the exit status.

    Args:
        state: Names the state directory; beside a daemon nothing else matters.
        message: Say only this; `-`: what stdin holds; None: converse.
        config: Loads the whole configuration: for when no daemon runs.

    Raises:
        ZerobotError: No conversation is possible.
    """
    if message == "-":
        message = sys.stdin.read()
    if message is not None and not message.strip():
        raise ZerobotError("there is nothing to say: the message is empty")
    command = CHAT if message is None else ONE_MESSAGE
    try:
        return asyncio.run(_talk(StateDir(state.state_dir), _front(state, message), command, config))
    except KeyboardInterrupt:
        return 130


def _front(loaded: LoadedConfig, message: str | None) -> Front:
    """Choose how the conversation is held: one message, a person at a screen, or lines from a pipe."""
    streams = Streams(out=sys.stdout, err=sys.stderr)
    lines = StdinLines()
    decide: Decide | None = LineAnswers(lines).decide if sys.stdin.isatty() else None
    if message is not None:
        return lambda link, _: ask_once(link, message, streams, decide)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return lambda link, welcome: _at_a_screen(link, loaded, welcome)
    return lambda link, _: ask_lines(link, lines.lines(), streams, decide, LEAVE)


async def _at_a_screen(link: Link, loaded: LoadedConfig, welcome: str) -> int:
    from zerobot.cli.terminal.talk import Talk, open_history  # noqa: PLC0415 - loads the libraries for screens

    await Talk(link, open_history(loaded.state_dir / "chat_history")).run(welcome)
    return 0


async def _talk(state: StateDir, front: Front, command: str, config: Callable[[], LoadedConfig]) -> int:
    """Hold the conversation with the bot that runs, else with one of our own."""
    tries = 0
    while True:
        if not _runs_for_one_message(state):
            with contextlib.suppress(NoDaemonError):
                async with converse(state.socket_path, "chat.open", {}) as conversing:
                    return await front(conversing, "" if command == ONE_MESSAGE else await _greeting(state))
        try:
            with state.lock(now=SystemClock().now(), command=command):
                pass
            return await _alone(config(), front, command)
        except StateLockedError:
            # It is about to listen, or to end; one that runs for a single message ends with that.
            tries += 0 if _runs_for_one_message(state) else 1
            if tries > LOCKED_TRIES:
                raise
            await asyncio.sleep(LOCKED_WAIT)


async def _greeting(state: StateDir) -> str:
    """The welcome beside a bot that runs; where it works may be another place than here."""
    health = await asyncio.to_thread(call, state.socket_path, "health", {}, timeout=5.0)
    return ATTACHED.format(one_line(str(health.get("workspace", "unknown"))))


def _runs_for_one_message(state: StateDir) -> bool:
    """Whether whoever holds the state does so for one message: he ends with it, and is nobody to talk to."""
    try:
        return ONE_MESSAGE in state.lock_path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


async def _alone(loaded: LoadedConfig, front: Front, command: str) -> int:
    """Be the daemon, with the terminal as its only channel.

    Raises:
        StateLockedError: Somebody else was quicker; `front` was not called.
    """
    here = Path.cwd() if loaded.path is None and not loaded.settings.security.workspace else None
    loaded = _for_chat(loaded, here)
    name, kind, settings = terminal_kind(loaded)
    if here is not None:
        name = name_in(here, name)
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
                command=command,
            ),
            name="daemon",
        )
        await asyncio.wait((daemon, opened), return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            # It could not even open its channel: what it raises says why.
            daemon.result()
        serving = asyncio.create_task(_serve(opened, link), name="terminal")
        talking = asyncio.create_task(front(link, _welcome(loaded)), name="conversation")
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


def _welcome(loaded: LoadedConfig) -> str:
    """Who answers, where it works, and what to try."""
    model = loaded.settings.agent.model
    demo = model.partition("/")[0] == DEMO
    who = "The built-in demo model answers: no account, no key, no understanding" if demo else f"{model} answers"
    lines = [f"{who}; its workspace is {one_line(str(loaded.workspace))}.", *([TRY] if demo else [])]
    return "\n".join([*lines, "/help shows what it knows; Ctrl-D or /quit leaves."])


def name_in(folder: Path, kind: str) -> str:
    """The terminal's channel in a folder that is the workspace because nothing is configured.

    Each folder has its own: what was said, asked and granted in one of them means nothing in another.
    """
    mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:6]
    return "-".join(filter(None, (kind, re.sub(r"[^A-Za-z0-9_]+", "-", folder.name).strip("-")[:24], mark)))


def _for_chat(loaded: LoadedConfig, here: Path | None) -> LoadedConfig:
    """The settings for a bot that lives as long as the conversation.

    Args:
        loaded: What is configured.
        here: Where it was started, if that is the workspace: nothing is configured.
    """
    daemon = loaded.settings.daemon
    grace = min(daemon.shutdown_grace, LEAVE_GRACE)
    settings = loaded.settings.model_copy(update={"daemon": daemon.model_copy(update={"shutdown_grace": grace})})
    return replace(loaded, settings=settings, workspace=here or loaded.workspace)


@contextmanager
def _log_file(loaded: LoadedConfig) -> Iterator[EventLog]:
    """The events of this conversation's bot go into a file: the screen belongs to the conversation."""
    StateDir(loaded.state_dir).prepare()
    handle = os.open(loaded.state_dir / LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        daemon = loaded.settings.daemon
        yield log_to(file, daemon.log_level, Redactor(value for _, value in loaded.secrets), daemon.log_format)
