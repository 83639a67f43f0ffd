"""Answers to interactions: the first within three seconds, whatever else is slow, the rest within a quarter of an hour.

https://discord.com/developers/docs/interactions/receiving-and-responding
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from discord.http import Route

from channels._wire.tasks import is_done_within
from channels.discord.buttons import reason_form
from channels.discord.decode import Asked
from channels.discord.rest import LinkError, Rest, RestError
from zerobot.core.channel import ChannelServices, Intake
from zerobot.core.clock import Clock
from zerobot.core.envelope import Acceptance, ButtonPress, InboundEnvelope
from zerobot.core.errors import StorageError
from zerobot.core.refusals import PRIVATE_REFUSALS

PROMPT_SECONDS = 1.2
"""How long a press may take before Discord is told that words follow; of its three seconds the way takes a part."""
TOKEN_SECONDS = 14 * 60.0
"""How long an answer can follow: a quarter of an hour, less what clocks differ."""
_MOST = 1000
_MESSAGE, _LATER, _FORM = 4, 5, 9
_NO_PREVIEWS, _EPHEMERAL = 1 << 2, 1 << 6
_NO_PINGS: Mapping[str, object] = {"parse": []}


@dataclass(slots=True)
class Reply:
    """A slash command that waits for the answer of its turn."""

    token: str
    until: float
    told: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once Discord knows that the answer comes later: before, there is nothing to be edited."""
    key: str = ""
    """Of the message that became the answer."""


class Replies:
    """The slash commands of this process whose answers are still to come.

    Those of an earlier process are answered by messages like any other.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, Reply] = {}

    def expect(self, interaction: str, token: str) -> Reply:
        """An answer will come."""
        now = self._clock.monotonic()
        self._waiting = {ident: reply for ident, reply in self._waiting.items() if reply.until > now}
        while len(self._waiting) >= _MOST:
            del self._waiting[next(iter(self._waiting))]
        reply = self._waiting[interaction] = Reply(token, now + TOKEN_SECONDS)
        return reply

    def forget(self, interaction: str) -> None:
        """No answer will come."""
        self._waiting.pop(interaction, None)

    async def token(self, interaction: str, key: str) -> str | None:
        """What a message may answer a slash command with.

        Args:
            interaction: The slash command.
            key: Of the message. The first one becomes the answer, each time that it is tried.

        Returns:
            The token; None: it has another answer already, or it is too late.
        """
        reply = self._waiting.get(interaction)
        if reply is None or reply.until <= self._clock.monotonic() or reply.key not in {"", key}:
            return None
        await reply.told.wait()
        reply.key = key
        return reply.token if interaction in self._waiting else None


class Interactions:
    """Takes interactions to the intake and answers them.

    Args:
        rest: Makes the calls.
        services: Name, clock and log.
        replies: Knows the slash commands that wait.
        application: Gives the application's id, once it is known.
    """

    def __init__(self, rest: Rest, services: ChannelServices, replies: Replies, application: Callable[[], str]) -> None:
        self._rest = rest
        self._services = services
        self._replies = replies
        self._application = application
        self._in_order = asyncio.Lock()
        """Held while one is handed over: of two presses the first one counts, also when both wait for the store."""

    async def answer(self, asked: Asked, intake: Intake, group: asyncio.TaskGroup, *, listens: bool) -> None:
        """Do what was asked for, and tell whoever asked, and only him, what he must know of it.

        Args:
            asked: The interaction.
            intake: Where it goes.
            group: Owns the work, which goes on whatever becomes of the answer.
            listens: Whether the bot listens where it was made.
        """
        try:
            if isinstance(asked.what, InboundEnvelope):
                await self._say(asked, asked.what, intake, group, listens=listens)
            elif asked.wants_form:
                await self._open_form(asked, asked.what, intake, group)
            else:
                await self._press(asked, asked.what, intake, group)
        except (RestError, LinkError) as error:
            # Too late, or no connection: the prompt itself shows the outcome, the answer comes as a message.
            self._services.log("discord.unanswered", level="debug", error=error, channel=self._services.name)

    async def _press(self, asked: Asked, press: ButtonPress, intake: Intake, group: asyncio.TaskGroup) -> None:
        pressing = group.create_task(self._words_of(intake, press), name="discord press")
        if await self._in_time(pressing):
            await self._tell(asked, pressing.result())
            return
        await self._respond(asked, _LATER, {"flags": _EPHEMERAL})
        await self._edit_answer(asked, await pressing)

    async def _open_form(self, asked: Asked, press: ButtonPress, intake: Intake, group: asyncio.TaskGroup) -> None:
        """Ask for the reason, unless the press would not count; what the form sends is looked at again."""
        asking = group.create_task(_refusal_of(intake, press), name="discord question")
        refusal = asking.result() if await self._in_time(asking) else None
        asking.cancel()
        if refusal is not None:
            await self._tell(asked, refusal)
        elif press.approval is not None:
            await self._respond(asked, _FORM, reason_form(press.approval))

    async def _say(
        self, asked: Asked, envelope: InboundEnvelope, intake: Intake, group: asyncio.TaskGroup, *, listens: bool
    ) -> None:
        if not listens:
            await self._tell(asked, PRIVATE_REFUSALS[Acceptance.NOT_ALLOWED])
            return
        reply = self._replies.expect(asked.id, asked.token)
        # Discord brings nothing twice, so it is stored before it is acknowledged, however long that takes. After three
        # seconds Discord has shown it as failed; then its answer is a message like any other.
        refusal = await group.create_task(self._taken(intake, envelope), name="discord command")
        try:
            if refusal is None:
                await self._respond(asked, _LATER, {})
        finally:
            reply.told.set()
        if refusal is not None:
            self._replies.forget(asked.id)
            await self._tell(asked, refusal)

    async def _in_time(self, work: asyncio.Task[object]) -> bool:
        """Whether some work is done soon enough to answer with what it says."""
        return await is_done_within(work, self._services.clock, PROMPT_SECONDS)

    async def _words_of(self, intake: Intake, press: ButtonPress) -> str:
        async with self._in_order:
            return (await intake.press(press)).text

    async def _taken(self, intake: Intake, envelope: InboundEnvelope) -> str | None:
        """Hand an envelope over; returns what its sender is told when it was refused."""
        try:
            async with self._in_order:
                return PRIVATE_REFUSALS.get(await intake.accept(envelope))
        except StorageError as error:
            return error.user_text

    async def _tell(self, asked: Asked, text: str) -> None:
        await self._respond(asked, _MESSAGE, _private(text))

    async def _respond(self, asked: Asked, kind: int, data: Mapping[str, object]) -> None:
        route = Route(
            "POST",
            "/interactions/{webhook_id}/{webhook_token}/callback",
            webhook_id=asked.id,
            webhook_token=asked.token,
        )
        await self._rest.request(route, json={"type": kind, "data": dict(data)})

    async def _edit_answer(self, asked: Asked, text: str) -> None:
        await self._rest.request(original(self._application(), asked.token), json=_words(text))


def original(application: str, token: str) -> Route:
    """The call that changes the first answer to an interaction."""
    return Route(
        "PATCH",
        "/webhooks/{webhook_id}/{webhook_token}/messages/@original",
        webhook_id=application,
        webhook_token=token,
    )


def _private(text: str) -> dict[str, object]:
    return _words(text, _EPHEMERAL)


def _words(text: str, flags: int = 0) -> dict[str, object]:
    """What is said; names of people stand in it, so it pings nobody and loads nothing either."""
    return {"content": text, "flags": _NO_PREVIEWS | flags, "allowed_mentions": _NO_PINGS}


async def _refusal_of(intake: Intake, press: ButtonPress) -> str | None:
    refusal = await intake.may_press(press)
    return refusal.text if refusal is not None else None
