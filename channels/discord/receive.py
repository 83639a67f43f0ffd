"""The receiving side: events in their order, each handed over before the next, and interactions beside them at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from discord.http import Route

from channels._wire.backoff import Backoff
from channels._wire.known import KnownChats
from channels._wire.tasks import with_side_work
from channels.discord.catchup import CatchUp
from channels.discord.commands import publish_commands
from channels.discord.content import Me, Payload
from channels.discord.decode import (
    chat_of,
    decode_edit,
    decode_interaction,
    decode_message,
    direct_user,
    is_heard,
)
from channels.discord.gateway import Event, Gateway, raise_fatal
from channels.discord.interactions import Interactions
from channels.discord.position import Position
from channels.discord.rest import LinkError, Rest, RestError
from channels.discord.rooms import Rooms
from channels.discord.send import Echoes
from channels.discord.settings import DiscordSettings
from channels.discord.surroundings import Surroundings
from zerobot.core.channel import ChannelServices, Intake
from zerobot.core.envelope import Acceptance, EnvelopeEdit
from zerobot.core.errors import StorageError
from zerobot.core.places import Place

_WANTED = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "INTERACTION_CREATE")
_SPOKEN = frozenset({Acceptance.ACCEPTED, Acceptance.DUPLICATE, Acceptance.FULL, Acceptance.BLOCKED})


@dataclass(slots=True)
class Account:
    """Who the bot is; unknown before the first answer of Discord."""

    bot: str = ""
    application: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverParts:
    """What receiving works with."""

    rest: Rest
    settings: DiscordSettings
    services: ChannelServices
    rooms: Rooms
    echoes: Echoes
    interactions: Interactions
    account: Account


class Receiver:
    """Receives, hands over, and remembers how far it came."""

    def __init__(self, parts: ReceiverParts) -> None:
        self._parts = parts
        self._surroundings = Surroundings(parts.rest, parts.settings, parts.services.clock)
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        commands = frozenset(command.name for command in parts.services.commands)
        self._me = Me("", commands=commands, hears_bots=parts.settings.answer_bots)

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled.

        Raises:
            ChannelFaultError: Discord refuses the bot as it is configured.
        """
        await with_side_work(lambda side_work: self._receive(intake, side_work))

    async def _receive(self, intake: Intake, side_work: asyncio.TaskGroup) -> None:
        services = self._parts.services
        await self._introduce(intake)
        position = Position(services.state, services.clock, self._parts.account.bot)
        known = await self._known()
        self._events = asyncio.Queue()
        gateway = Gateway(self._parts.rest, services, lambda event: self._take(event, intake, side_work))
        consumer = side_work.create_task(self._consume(intake, position, known), name="discord events")
        try:
            await gateway.run(intake, await position.load(), _WANTED)
        finally:
            consumer.cancel()
            try:
                await known.store()
                await position.write()
            except StorageError as error:
                services.log("discord.not_stored", level="warning", error=error, channel=services.name)

    async def _introduce(self, intake: Intake) -> None:
        """Learn who the bot is, however long it takes."""
        rest, account = self._parts.rest, self._parts.account
        backoff = Backoff(self._parts.services.clock)
        while True:
            wait = 0.0
            try:
                account.bot = str((await rest.request(Route("GET", "/users/@me")))["id"])
                account.application = str((await rest.application_info())["id"])
            except RestError as error:
                if error.status == 401:
                    raise_fatal(4004, self._parts.services.name)
                wait = error.retry_after or 0.0
                intake.disconnected(str(error))
            except LinkError as error:
                intake.disconnected(str(error))
            else:
                break
            await backoff.wait(wait)
        self._me = replace(self._me, id=account.bot)

    async def _known(self) -> KnownChats:
        """Read which chats are known, and with them the channels of direct chats."""
        services, backoff = self._parts.services, Backoff(self._parts.services.clock)
        while True:
            try:
                known = await KnownChats.load(services.state)
            except StorageError as error:
                services.log("discord.not_stored", level="error", error=error, channel=services.name)
                await backoff.wait()
            else:
                break
        for chat, about in known.chats.items():
            user = direct_user(chat)
            if user is not None:
                self._parts.rooms.learn(user, about.about)
        return known

    def _take(self, event: Event, intake: Intake, side_work: asyncio.TaskGroup) -> None:
        """Take an event of the gateway; never waits."""
        try:
            self._sort(event, intake, side_work)
        except Exception as error:  # noqa: BLE001 -- one odd event must not make the channel deaf for all others
            services = self._parts.services
            services.log("discord.undecodable", level="error", error=error, channel=services.name)

    def _sort(self, event: Event, intake: Intake, side_work: asyncio.TaskGroup) -> None:
        account = self._parts.account
        if event.name == "INTERACTION_CREATE":
            side_work.create_task(self._interact(event.data, intake, side_work), name="discord interaction")
            return
        if event.name == "READY":
            publish = publish_commands(
                self._parts.rest, account.application, self._parts.settings, self._parts.services
            )
            side_work.create_task(publish, name="discord commands")
        elif event.name == "MESSAGE_CREATE" and str(event.data["author"]["id"]) == account.bot:
            self._parts.echoes.heard(str(event.data.get("nonce", "")), str(event.data["id"]))
            return
        self._events.put_nowait(event)

    async def _consume(self, intake: Intake, position: Position, known: KnownChats) -> None:
        services, backoff = self._parts.services, Backoff(self._parts.services.clock)
        while True:
            event = await self._events.get()
            while True:
                try:
                    await self._hand_over(event, intake, known)
                    await position.taken(event.session)
                except StorageError as error:
                    services.log("discord.not_stored", level="error", error=error, channel=services.name)
                    await backoff.wait()
                except Exception as error:  # noqa: BLE001 -- as above
                    services.log("discord.undecodable", level="error", error=error, channel=services.name)
                    break
                else:
                    break

    async def _hand_over(self, event: Event, intake: Intake, known: KnownChats) -> None:
        match event.name:
            case "READY":
                await self._catch_up(intake, known)
            case "MESSAGE_CREATE":
                await self._message(event.data, intake, known)
            case "MESSAGE_UPDATE":
                await self._edit(event.data, intake)
            case "MESSAGE_DELETE":
                await self._deleted(event.data, [event.data["id"]], intake)
            case "MESSAGE_DELETE_BULK":
                await self._deleted(event.data, event.data["ids"], intake)

    async def _message(self, message: Payload, intake: Intake, known: KnownChats) -> None:
        if not is_heard(message, self._me):
            return
        chat, guild = chat_of(message), str(message.get("guild_id") or "")
        if not guild:
            self._parts.rooms.learn(str(message["author"]["id"]), str(message["channel_id"]))
        elif not await self._surroundings.listens(guild, chat):
            return
        await self._accept(message, chat, guild or str(message["channel_id"]), intake, known)

    async def _accept(self, message: Payload, chat: str, about: str, intake: Intake, known: KnownChats) -> None:
        """Hand a message over, and remember how far its chat was read.

        Args:
            message: Of somebody who is heard.
            chat: Where.
            about: Of a direct chat its channel, of another one its server.
            intake: Takes it.
            known: Remembers.
        """
        me = self._me
        if message.get("mention_roles") and direct_user(chat) is None:
            me = replace(me, roles=await self._surroundings.roles(about, me.id))
        place = Place(self._parts.services.name, chat)
        envelope = decode_message(message, me, place, await self._surroundings.title(message))
        spoken = envelope is not None and await intake.accept(envelope) in _SPOKEN
        ident, before = str(message["id"]), known.chats.get(chat)
        if before is not None and int(ident) <= int(before.read_to):
            return
        if spoken:
            known.spoken_to(chat, ident, about)
            await known.store()
        else:
            known.read(chat, ident)

    async def _catch_up(self, intake: Intake, known: KnownChats) -> None:
        """Take over what was said while there was no session; what is known already the inbox knows."""
        catch_up = CatchUp(self._parts.rest, self._parts.rooms, self._parts.services)
        for chat, each in known.chats.items():
            if direct_user(chat) is None and not await self._surroundings.listens(each.about, chat):
                continue
            async for message in catch_up.missed(chat, each):
                if is_heard(message, self._me):
                    await self._accept(message, chat, each.about, intake, known)

    async def _edit(self, message: Payload, intake: Intake) -> None:
        me, guild = self._me, str(message.get("guild_id") or "")
        if message.get("mention_roles") and guild:
            me = replace(me, roles=await self._surroundings.roles(guild, me.id))
        edit = decode_edit(message, me, self._parts.services.name)
        if edit is not None:
            await intake.edited(edit)

    async def _deleted(self, event: Payload, messages: list[str], intake: Intake) -> None:
        channel = str(event["channel_id"])
        chat = channel if event.get("guild_id") else self._parts.rooms.chat(channel)
        if chat is None:
            return
        place = Place(self._parts.services.name, chat)
        for message in messages:
            await intake.edited(EnvelopeEdit(place=place, sender=None, message_id=str(message), text=None))

    async def _interact(self, interaction: Payload, intake: Intake, side_work: asyncio.TaskGroup) -> None:
        services = self._parts.services
        try:
            asked = decode_interaction(interaction, services.name)
            if asked is None:
                return
            guild, channel = str(interaction.get("guild_id") or ""), interaction.get("channel") or {}
            if not guild:
                user = interaction.get("user") or {}
                self._parts.rooms.learn(str(user["id"]), str(interaction["channel_id"]))
            listens = not guild or await self._surroundings.listens(
                guild, str(interaction["channel_id"]), str(channel.get("parent_id") or "")
            )
            await self._parts.interactions.answer(asked, intake, side_work, listens=listens)
        except Exception as error:  # noqa: BLE001 -- as above
            services.log("discord.undecodable", level="error", error=error, channel=services.name)
