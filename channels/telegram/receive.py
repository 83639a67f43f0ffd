"""The receiving side: our own loop over getUpdates, which confirms nothing that is not stored yet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from telegram import Bot, Update
from telegram.error import Conflict, InvalidToken, TelegramError

from channels._wire.backoff import Backoff
from channels._wire.tasks import with_side_work
from channels.telegram.content import Me
from channels.telegram.decode import Decoded, Moved, Press, decode
from channels.telegram.menu import publish_menu
from channels.telegram.position import Position
from channels.telegram.request import BotRequest, FloodError
from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.channel import ChannelServices, Intake
from zerobot.core.envelope import EnvelopeEdit, InboundEnvelope
from zerobot.core.errors import ChannelFaultError, StorageError

POLL_SECONDS = 30
"""How long Telegram holds a poll open when there is nothing."""
POLL_ANSWER_SECONDS = 10.0
"""How much longer than that a poll may take before its connection counts as dead."""
_WANTED = ("message", "edited_message", "callback_query")
_ANSWER_CHARACTERS = 200  # https://core.telegram.org/bots/api#answercallbackquery
_DECISIONS = frozenset({PressOutcome.APPROVED, PressOutcome.DENIED})

Numbered = tuple[int, Update | None]
"""An update's id, and the update unless it cannot be read."""


class Receiver:
    """Polls, hands over, and asks for more only when everything before is stored."""

    def __init__(self, bot: Bot, polling: BotRequest, services: ChannelServices) -> None:
        """Take what receiving needs.

        Args:
            bot: The bot whose updates are wanted; it polls by way of `polling`.
            polling: Keeps its last answer, which tells an unreadable update from the others.
            services: Name, clock, log, commands and state.
        """
        self._bot = bot
        self._polling = polling
        self._services = services
        self._pressed: set[int] = set()

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled.

        Raises:
            ChannelFaultError: Telegram refuses the token.
        """
        await with_side_work(lambda side_work: self._receive(intake, side_work))

    async def _receive(self, intake: Intake, side_work: asyncio.TaskGroup) -> None:
        backoff = Backoff(self._services.clock)
        me: Me | None = None
        position: Position | None = None
        fresh = True
        while True:
            try:
                if me is None or position is None:
                    me = await self._who_am_i()
                    position = await Position.load(self._services.state, self._services.clock, me.id)
                # The first poll after a fault does not wait: it shows at once that all is well.
                updates = await self._poll(position.offset, 0 if fresh else POLL_SECONDS)
                intake.connected()
                if fresh:
                    side_work.create_task(publish_menu(self._bot, self._services), name="telegram menu")
                fresh = False
                await self._take(updates, me, position, intake, side_work)
            except StorageError as error:
                self._services.log("telegram.not_stored", level="error", error=error, channel=self._services.name)
                await backoff.wait()
            except TelegramError as error:
                fresh = True
                await self._recover(error, backoff, intake)

    async def _who_am_i(self) -> Me:
        user = await self._bot.get_me()
        return Me(user.id, user.username or "", frozenset(command.name for command in self._services.commands))

    async def _recover(self, error: TelegramError, backoff: Backoff, intake: Intake) -> None:
        """Do what a failed call asks for, and wait."""
        if isinstance(error, InvalidToken):
            raise ChannelFaultError(
                "Telegram refuses the bot's token",
                advice=f"put the token that @BotFather gave you into [channels.{self._services.name}] bot_token",
            ) from None
        if isinstance(error, Conflict) and "webhook" in error.message.lower():
            self._services.log("telegram.webhook_removed", level="warning", channel=self._services.name)
            await self._remove_webhook(intake, backoff)
            return
        intake.disconnected(_why(error))
        await backoff.wait(error.retry_after if isinstance(error, FloodError) else 0.0)

    async def _remove_webhook(self, intake: Intake, backoff: Backoff) -> None:
        try:
            await self._bot.delete_webhook(drop_pending_updates=False)
        except TelegramError as error:
            intake.disconnected(_why(error))
            await backoff.wait()

    async def _poll(self, offset: int | None, seconds: int) -> Sequence[Numbered]:
        try:
            updates = await self._bot.get_updates(offset=offset, timeout=seconds, allowed_updates=_WANTED)
        except TelegramError:
            raise
        except Exception as error:  # noqa: BLE001 -- the library fails in many ways at one update it cannot read
            self._services.log("telegram.unreadable", level="warning", error=error, channel=self._services.name)
            return _one_by_one(self._polling.last_payload)
        return [(update.update_id, update) for update in updates]

    async def _take(
        self,
        updates: Sequence[Numbered],
        me: Me,
        position: Position,
        intake: Intake,
        side_work: asyncio.TaskGroup,
    ) -> None:
        """Hand a batch over, decisions first, and move the position behind it."""
        decoded = [(number, self._decode(update, me)) for number, update in updates if update is not None]
        for number, event in decoded:
            if isinstance(event, Press) and number not in self._pressed:
                reply = await intake.press(event.press)
                self._pressed.add(number)
                side_work.create_task(self._answer(event.query, reply), name="telegram press")
        for _, event in decoded:
            await self._hand_over(event, intake)
        if updates:
            await position.move(max(number for number, _ in updates) + 1)
            self._pressed.clear()

    def _decode(self, update: Update, me: Me) -> Decoded | None:
        try:
            return decode(update, me, self._services.name)
        except Exception as error:  # noqa: BLE001 -- one odd update must not make the channel deaf for all others
            self._services.log("telegram.undecodable", level="error", error=error, channel=self._services.name)
            return None

    async def _hand_over(self, event: Decoded | None, intake: Intake) -> None:
        match event:
            case InboundEnvelope():
                await intake.accept(event)
            case EnvelopeEdit():
                await intake.edited(event)
            case Moved():
                await intake.moved(event.old, event.new_chat)

    async def _answer(self, query: str, reply: PressReply) -> None:
        """Tell the presser, and only him, what became of it; a refusal needs a click to go away."""
        try:
            await self._bot.answer_callback_query(
                query, reply.text[:_ANSWER_CHARACTERS], show_alert=reply.outcome not in _DECISIONS
            )
        except TelegramError as error:
            # Too late (Telegram forgets a press after a while), or no connection: the prompt itself shows the outcome.
            self._services.log("telegram.press_unanswered", level="debug", error=error, channel=self._services.name)


def _one_by_one(payload: bytes) -> list[Numbered]:
    """Read the updates of an answer apart from each other, so that one that is broken stands alone."""
    numbered: list[Numbered] = []
    for item in json.loads(payload).get("result", ()):
        try:
            update: Update | None = Update.de_json(item, None)
        except Exception:  # noqa: BLE001 -- see `Receiver._poll`, which has logged it
            update = None
        if isinstance(item, dict) and isinstance(item.get("update_id"), int):
            numbered.append((item["update_id"], update))
    return numbered


def _why(error: TelegramError) -> str:
    if isinstance(error, Conflict):
        return "another program receives with this bot's token"
    cause = type(error.__cause__).__name__ if error.__cause__ is not None else ""
    return f"{type(error).__name__} {cause}".strip()
