"""The whole thing on a stage: the real daemon process between the strict doubles of a platform and a model."""

import resource
from pathlib import Path
from typing import Any

from tests.e2e.daemon_stage import DaemonStage
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_script import calls
from tests.platforms.model_server import ModelServer
from tests.platforms.telegram_faults import Call
from tests.platforms.telegram_server import Person, Press, TelegramServer
from tests.platforms.telegram_world import Chat, Message

PATIENCE = 30.0


class Stage(DaemonStage):
    """One test's world. Olga is the operator, Uma and Vic may talk to the bot, Xen is a stranger.

    Args:
        folder: The test's own; the configuration and the state directory lie in it.
        model: Answers from its script.
        telegram: Holds the chats.
    """

    def __init__(self, folder: Path, model: ModelServer, telegram: TelegramServer) -> None:
        super().__init__(folder, model)
        self.telegram = telegram
        self.olga = telegram.user("1001", name="Olga", username="olga")
        self.uma = telegram.user("2001", name="Uma", username="uma")
        self.vic = telegram.user("2002", name="Vic")
        self.xen = telegram.user("9001", name="Xen", username="xen")
        self.team = telegram.group("Team")
        self.tables |= {
            "channels.telegram": {
                "bot_token": telegram.token,
                "api_base": telegram.api_base,
                "allowed_users": ["2001", "2002"],
            },
            "operators": {"users": ["telegram:1001"]},
            # What is asked must not depend on what this machine can do.
            "security": {"sandbox": "off"},
        }

    # What a test waits for.

    async def prompt(self, chat: Chat) -> Message:
        """Wait for an approval prompt that is open in a chat."""
        await chat.wait_for(lambda chat: chat.prompt)
        assert chat.prompt is not None
        return chat.prompt

    async def press(self, person: Person, message: Message, label: str) -> Press:
        """Press a button and wait for what the presser is told."""
        return await person.presses(message, label).answered()

    def code_of(self, prompt: Message) -> str:
        """The code that a prompt shows."""
        return next(line for line in prompt.text.splitlines() if line.startswith("code: ")).removeprefix("code: ")

    def shown(self, chat: Chat) -> list[str]:
        """What of the bot's is visible in a chat, prompts left out."""
        return [one.text for one in chat.replies if "asked by: " not in one.text]

    async def says(self, person: Person, text: str, **where: Any) -> Message:
        """Say something and wait until a turn's reply is delivered; returns the newest message of the bot's there."""
        daemon = self.runs[-1]
        before = len([each for each in daemon.named("delivery.sent") if each.get("turn")])
        person.says(text, **where)
        await daemon.until("delivery.sent", count=before + 1, where=lambda each: bool(each.get("turn")))
        chat: Chat = where.get("chat") or person.chat
        return chat.replies[-1]

    async def asks(
        self, person: Person | None = None, *, command: str = "touch made", chat: Chat | None = None
    ) -> Message:
        """Let somebody (Olga) ask in a chat (the team's) for a command that needs an approval, call id `c1`.

        Returns:
            The prompt.
        """
        where = chat or self.team
        self.model.answers(calls("shell", id="c1", command=command))
        (person or self.olga).says("@zero_bot do it", chat=where)
        return await self.prompt(where)

    def sends(self, chat: Chat) -> list[Call]:
        """Calls that put a new text into a chat."""
        return self.telegram.of("sendMessage", chat=chat)


class FullDisk:
    """The daemon's files cannot grow, as on a full disk: a limit of the kernel, set and lifted from outside."""

    def __init__(self, daemon: DaemonProcess, size: int = 0) -> None:
        self._pid = daemon.pid
        self._size = size

    def __enter__(self) -> None:
        _, hard = resource.prlimit(self._pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (self._size, hard))

    def __exit__(self, *exc: object) -> None:
        _, hard = resource.prlimit(self._pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (hard, hard))
