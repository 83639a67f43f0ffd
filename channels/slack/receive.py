"""The receiving side: events in their order, each handed over before the next, and interactions beside them at once."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace

from channels._wire.backoff import Backoff
from channels._wire.tasks import with_side_work
from channels.slack.catchup import MOST_CHATS, CatchUp
from channels.slack.content import Me, Payload, named_in
from channels.slack.decode import decode_change, decode_message, is_direct, is_from_person, place_of
from channels.slack.faults import BAD_TOKEN
from channels.slack.interactions import Interactions
from channels.slack.people import People
from channels.slack.position import Position, Unread
from channels.slack.rooms import Rooms
from channels.slack.roots import quote_of, root_of
from channels.slack.settings import SlackSettings
from channels.slack.socket import Envelope, Sockets, refused_bot_token
from channels.slack.web import LinkError, Web, WebError
from zerobot.core.channel import ChannelServices, Intake
from zerobot.core.envelope import Acceptance, Quote
from zerobot.core.errors import StorageError
from zerobot.core.places import Place

_SPOKEN = frozenset({Acceptance.ACCEPTED, Acceptance.DUPLICATE, Acceptance.FULL, Acceptance.BLOCKED})
_CHANGES = frozenset({"message_changed", "message_deleted"})


@dataclass(slots=True)
class Account:
    """Who the bot is; unknown before the first answer of Slack."""

    me: Me


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverParts:
    """What receiving works with."""

    web: Web
    settings: SlackSettings
    services: ChannelServices
    rooms: Rooms
    interactions: Interactions
    account: Account


class Receiver:
    """Receives, hands over, and remembers how far it came."""

    def __init__(self, parts: ReceiverParts) -> None:
        self._parts = parts
        self._listed = frozenset(parts.settings.allowed_channels)
        self._people = People(parts.web, parts.services.clock)
        self._events: asyncio.Queue[Envelope | None] = asyncio.Queue()

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled.

        Raises:
            ChannelFaultError: Slack refuses the app as it is configured.
        """
        await with_side_work(lambda side_work: self._receive(intake, side_work))

    async def _receive(self, intake: Intake, side_work: asyncio.TaskGroup) -> None:
        services = self._parts.services
        await self._introduce(intake)
        position = await self._position()
        self._events = asyncio.Queue()
        sockets = Sockets(
            self._parts.web,
            services,
            lambda envelope: self._take(envelope, intake, side_work),
            self._greeted,
        )
        consumer = side_work.create_task(self._consume(intake, position), name="slack events")
        try:
            await sockets.run(intake)
        finally:
            consumer.cancel()
            try:
                await position.store()
            except StorageError as error:
                services.log("slack.not_stored", level="warning", error=error, channel=services.name)

    async def _introduce(self, intake: Intake) -> None:
        """Learn who the bot is, however long it takes."""
        services, account = self._parts.services, self._parts.account
        backoff = Backoff(services.clock)
        while not account.me.user:
            wait = 0.0
            try:
                found = await self._parts.web.call("auth.test")
                account.me = replace(account.me, user=str(found["user_id"]), team=str(found["team_id"]))
            except WebError as error:
                if error.code in BAD_TOKEN:
                    raise refused_bot_token(services.name) from None
                wait = error.retry_after or 0.0
                intake.disconnected(str(error))
            except LinkError as error:
                intake.disconnected(str(error))
            else:
                break
            await backoff.wait(wait)

    async def _position(self) -> Position:
        """Read how far we are, and with it the channels of direct chats."""
        services, backoff = self._parts.services, Backoff(self._parts.services.clock)
        while True:
            try:
                position = await Position.load(services.state)
            except StorageError as error:
                services.log("slack.not_stored", level="error", error=error, channel=services.name)
                await backoff.wait()
            else:
                break
        for user, channel in position.direct_channels():
            self._parts.rooms.learn(user, channel)
        return position

    def _greeted(self, gap: bool) -> None:  # noqa: FBT001 -- called by position
        if gap:
            self._events.put_nowait(None)

    def _take(self, envelope: Envelope, intake: Intake, side_work: asyncio.TaskGroup) -> None:
        """Take what Slack delivers; never waits."""
        if envelope.kind == "events_api":
            self._events.put_nowait(envelope)
        else:
            side_work.create_task(self._interact(envelope, intake, side_work), name="slack interaction")

    async def _interact(self, envelope: Envelope, intake: Intake, side_work: asyncio.TaskGroup) -> None:
        try:
            await self._parts.interactions.answer(envelope, self._parts.account.me, intake, side_work)
        except Exception as error:  # noqa: BLE001 -- one odd event must not make the channel deaf for all others
            self._undecodable(error)

    def _undecodable(self, error: Exception) -> None:
        services = self._parts.services
        services.log("slack.undecodable", level="error", error=error, channel=services.name)

    async def _consume(self, intake: Intake, position: Position) -> None:
        """Hand over one event after another; what cannot be stored now is not acknowledged, and tried again."""
        services, backoff = self._parts.services, Backoff(self._parts.services.clock)
        while True:
            envelope = await self._events.get()
            while True:
                try:
                    if envelope is None:
                        await self._catch_up(intake, position)
                    else:
                        await self._event(envelope.payload, intake, position)
                except StorageError as error:
                    services.log("slack.not_stored", level="error", error=error, channel=services.name)
                    await backoff.wait()
                    continue
                except Exception as error:  # noqa: BLE001 -- as above
                    self._undecodable(error)
                break
            if envelope is not None:
                await envelope.acknowledge()

    async def _event(self, payload: Payload, intake: Intake, position: Position) -> None:
        event = payload.get("event") or {}
        if event.get("type") not in {"message", "app_mention"} or not event.get("channel"):
            return
        team = str(payload.get("team_id") or self._parts.account.me.team)
        channel = str(event["channel"])
        if event.get("subtype") in _CHANGES:
            await self._change(event, channel, team, intake)
        elif is_from_person(event):
            if channel.startswith("D"):
                self._parts.rooms.learn(str(event["user"]), channel)
            await self._accept(event, self._parts.rooms.chat(channel), team, intake, position)

    def _listens(self, chat: str) -> bool:
        return is_direct(chat) or not self._listed or chat in self._listed

    async def _change(self, event: Payload, channel: str, team: str, intake: Intake) -> None:
        now = event.get("message") or {}
        names = await self._people.names(named_in(str(now.get("text") or "")))
        place = Place(self._parts.services.name, self._parts.rooms.chat(channel))
        edit = decode_change(event, self._parts.account.me, place, names, team=team)
        if edit is not None and self._listens(place.chat):
            await intake.edited(edit)

    async def _accept(self, message: Payload, chat: str, team: str, intake: Intake, position: Position) -> bool:
        """Hand a message over, and remember how far its chat, or its thread, was read.

        Args:
            message: Of a person.
            chat: Where.
            team: The workspace that it is of.
            intake: Takes it.
            position: Remembers.

        Returns:
            Whether it was said to the bot.
        """
        if not self._listens(chat):
            return False
        me = self._parts.account.me
        place = place_of(message, self._parts.services.name, chat)
        opens = not message.get("thread_ts") or message["thread_ts"] == message["ts"]
        own = position.owns(place) or message.get("parent_user_id") == me.user
        names = await self._people.names({str(message["user"]), *named_in(str(message.get("text") or ""))} - {me.user})
        envelope = decode_message(message, me, place, names, team=team, in_own_thread=own)
        if envelope is not None and envelope.addressed and not (opens or own or envelope.direct):
            envelope = replace(envelope, quote=await self._quote(chat, str(place.thread)))
        spoken = envelope is not None and await intake.accept(envelope) in _SPOKEN
        own = own or (opens and envelope is not None and envelope.addressed)
        channel = await self._parts.rooms.channel(chat) if is_direct(chat) else ""
        position.read(place, str(message["ts"]), channel, opens=opens, spoken=spoken, own=own)
        if spoken:
            await position.store()
        return spoken

    async def _quote(self, chat: str, thread: str) -> Quote | None:
        """What the thread of others is about that the bot is called into."""
        root = await root_of(self._parts.web, chat, thread)
        names = await self._people.names(named_in(f"<@{root.get('user')}> {root.get('text')}"))
        return quote_of(root, self._parts.account.me, names)

    async def _catch_up(self, intake: Intake, position: Position) -> None:
        """Take over what was said while there was no socket; what is known already the inbox knows."""
        catch_up = CatchUp(self._parts.web, self._parts.rooms, self._parts.services)
        todo = deque(position.unread(MOST_CHATS))
        while todo:
            each = todo.popleft()
            async for message in catch_up.missed(each.chat, each.thread, each.read_to):
                if not is_from_person(message):
                    continue
                spoken = await self._accept(message, each.chat, self._parts.account.me.team, intake, position)
                if spoken and message.get("reply_count") and not each.thread:
                    # A missed post has opened a thread, which was not known either.
                    ts = str(message["ts"])
                    todo.append(Unread(each.chat, ts, ts))
