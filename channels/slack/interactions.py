"""Answers to what people press, send and command: the acknowledgement within three seconds, whatever else is slow.

https://docs.slack.dev/interactivity/handling-user-interaction
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from channels._wire.tasks import is_done_within
from channels.slack.blocks import escape
from channels.slack.buttons import FormOrigin, reason_form
from channels.slack.content import Me
from channels.slack.decode import Press, command_ref, decode_command, decode_form, decode_press
from channels.slack.rooms import Rooms
from channels.slack.socket import Envelope
from channels.slack.web import LinkError, Payload, Web, WebError
from zerobot.core.channel import ChannelServices, Intake
from zerobot.core.clock import Clock
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.errors import StorageError
from zerobot.core.refusals import PRIVATE_REFUSALS

PROMPT_SECONDS = 1.5
"""How long the work may take before it is acknowledged without; of Slack's three seconds the way takes a part."""
ANSWER_SECONDS = 29 * 60.0
"""How long an answer can follow: half an hour, less what clocks differ."""
_ANSWERS = 5
"""Answers to one address: https://docs.slack.dev/interactivity/handling-user-interaction#message_responses"""
_MOST = 1000
_INTERACTIVE, _COMMANDS = "interactive", "slash_commands"


@dataclass(slots=True)
class _Waiting:
    address: str
    until: float
    left: int = _ANSWERS


class Replies:
    """The slash commands of this process whose answers are still to come: they are told privately in the chat.

    Those of an earlier process are answered in the direct chat of whoever used them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def expect(self, ref: str, address: str) -> None:
        """An answer will come."""
        now = self._clock.monotonic()
        self._waiting = {each: waiting for each, waiting in self._waiting.items() if waiting.until > now}
        while len(self._waiting) >= _MOST:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[ref] = _Waiting(address, now + ANSWER_SECONDS)

    def address(self, ref: str) -> str | None:
        """Where an answer goes; None: it is no command, or it is too late."""
        waiting = self._waiting.get(ref)
        if waiting is None or waiting.until <= self._clock.monotonic() or waiting.left <= 0:
            return None
        waiting.left -= 1
        return waiting.address


class Interactions:
    """Takes interactions to the intake and answers them.

    Args:
        web: Makes the calls.
        services: Name, clock and log.
        rooms: Knows the direct chats.
        replies: Knows the commands that wait.
    """

    def __init__(self, web: Web, services: ChannelServices, rooms: Rooms, replies: Replies) -> None:
        self._web = web
        self._services = services
        self._rooms = rooms
        self._replies = replies
        self._deciding = asyncio.Lock()

    async def answer(self, envelope: Envelope, me: Me, intake: Intake, group: asyncio.TaskGroup) -> None:
        """Do what was asked for, and tell whoever asked, and only him, what he must know of it.

        Args:
            envelope: Of kind `interactive` or `slash_commands`.
            me: Who the bot is.
            intake: Where it goes.
            group: Owns the work, which goes on whatever becomes of the answer.
        """
        try:
            if envelope.kind == _COMMANDS:
                await self._command(envelope, me, intake, group)
            elif envelope.kind == _INTERACTIVE:
                await self._interact(envelope, intake, group)
            else:
                await envelope.acknowledge()
        except (WebError, LinkError) as error:
            # Too late, or no connection: the prompt itself shows the outcome.
            self._services.log("slack.unanswered", level="debug", error=error, channel=self._services.name)

    async def _interact(self, envelope: Envelope, intake: Intake, group: asyncio.TaskGroup) -> None:
        payload = envelope.payload
        if payload.get("type") == "view_submission":
            press = decode_form(payload, self._services.name, self._rooms.chat)
        elif payload.get("type") == "block_actions":
            press = decode_press(payload, self._services.name, self._chat(payload))
        else:
            press = None
        if press is None:
            await envelope.acknowledge()
        elif press.opens_form:
            await self._open_form(envelope, press, intake, group)
        else:
            await self._press(envelope, press, intake, group)

    def _chat(self, payload: Payload) -> str:
        channel = str((payload.get("channel") or {}).get("id") or payload.get("channel_id") or "")
        if channel.startswith("D"):
            user = (payload.get("user") or {}).get("id") or payload.get("user_id")
            self._rooms.learn(str(user), channel)
        return self._rooms.chat(channel)

    async def _press(self, envelope: Envelope, press: Press, intake: Intake, group: asyncio.TaskGroup) -> None:
        pressing = group.create_task(self._words_of(intake, press), name="slack press")
        await self._in_time(pressing)
        await envelope.acknowledge()
        await self._tell(press, await pressing)

    async def _words_of(self, intake: Intake, press: Press) -> str:
        """Let a press count; of several the one that came first does."""
        async with self._deciding:
            try:
                return (await intake.press(press.press)).text
            except StorageError as error:
                return error.user_text

    async def _open_form(self, envelope: Envelope, press: Press, intake: Intake, group: asyncio.TaskGroup) -> None:
        """Ask for the reason, unless the press would not count; what the form sends is looked at again."""
        asking = group.create_task(_refusal_of(intake, press), name="slack question")
        refusal = asking.result() if await self._in_time(asking) else None
        asking.cancel()
        await envelope.acknowledge()
        if refusal is not None:
            await self._tell(press, refusal)
        else:
            await self._web.call("views.open", trigger_id=press.trigger, view=reason_form(press.origin))

    async def _tell(self, press: Press, text: str) -> None:
        origin: FormOrigin = press.origin
        if press.respond_to:
            value: dict[str, object] = {
                "response_type": "ephemeral",
                "replace_original": False,
                "text": escape(text),
            }
            if origin.thread:
                value["thread_ts"] = origin.thread
            await self._web.post(press.respond_to, value)
            return
        await self._web.call(
            "chat.postEphemeral",
            channel=origin.channel,
            user=press.press.presser.id.rpartition("/")[2],
            thread_ts=origin.thread or None,
            text=escape(text),
        )

    async def _command(self, envelope: Envelope, me: Me, intake: Intake, group: asyncio.TaskGroup) -> None:
        payload = envelope.payload
        ref = command_ref(str(payload["user_id"]), str(payload.get("trigger_id") or envelope.id))
        command = decode_command(payload, me, self._services.name, self._chat(payload), ref)
        if payload.get("response_url"):
            self._replies.expect(ref, str(payload["response_url"]))
        # Slack brings no command twice, so it is stored before it is acknowledged, however long that takes. After three
        # seconds Slack has shown it as failed, and what the acknowledgement says is lost.
        taking = group.create_task(_taken(intake, command), name="slack command")
        in_time = await self._in_time(taking)
        refusal = await taking
        await envelope.acknowledge(_private(refusal) if refusal and in_time else None)
        if refusal and not in_time:
            await self._web.post(str(payload.get("response_url") or ""), _private(refusal))

    async def _in_time(self, work: asyncio.Task[object]) -> bool:
        """Whether some work is done soon enough to answer with what it says."""
        return await is_done_within(work, self._services.clock, PROMPT_SECONDS)


def _private(text: str) -> dict[str, object]:
    return {"response_type": "ephemeral", "text": escape(text)}


async def _refusal_of(intake: Intake, press: Press) -> str | None:
    try:
        refusal = await intake.may_press(press.press)
    except StorageError as error:
        return error.user_text
    return refusal.text if refusal is not None else None


async def _taken(intake: Intake, envelope: InboundEnvelope) -> str | None:
    """Hand an envelope over; returns what its sender is told when it was refused."""
    try:
        return PRIVATE_REFUSALS.get(await intake.accept(envelope))
    except StorageError as error:
        return error.user_text
