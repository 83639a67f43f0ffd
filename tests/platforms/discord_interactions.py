"""Interactions at Discord's double: pressed buttons, sent forms, slash commands, and the time that an answer may take.

https://discord.com/developers/docs/interactions/receiving-and-responding
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.platforms.discord_checks import change, checked_message, pings
from tests.platforms.discord_world import Channel, Json, Message, RefusalError, bad_form
from tests.platforms.signals import PATIENCE, Signal

if TYPE_CHECKING:
    from tests.platforms.discord_api import Body
    from tests.platforms.discord_limits import Call
    from tests.platforms.discord_server import DiscordServer, Person

FIRST_SECONDS = 3.0
TOKEN_SECONDS = 15 * 60.0
_EPHEMERAL, _LOADING = 1 << 6, 1 << 7
_MESSAGE, _LATER, _LATER_UPDATE, _UPDATE, _FORM = 4, 5, 6, 7, 9


@dataclass(slots=True, eq=False)
class Interaction:
    """Something that a person did, and what he was told."""

    id: str
    token: str
    by: Person
    channel: Channel
    signal: Signal
    message: Message | None = None
    at: float = field(default_factory=time.monotonic)
    answered_at: float | None = None
    kind: int = 0
    """Of the first answer."""
    answer: Message | None = None
    """What the presser sees: his own, or everybody's."""
    form: Json | None = None

    @property
    def text(self) -> str:
        """What the presser was told."""
        return self.answer.text if self.answer is not None else ""

    @property
    def is_private(self) -> bool:
        """Whether only he was told."""
        return self.answer is not None and self.answer.is_ephemeral

    @property
    def seconds(self) -> float:
        """How long the first answer took."""
        assert self.answered_at is not None, "it was answered"
        return self.answered_at - self.at

    async def answered(self, patience: float = PATIENCE) -> Interaction:
        """Wait until the person has been told something: words or a form."""

        def told() -> bool:
            return self.form is not None or bool(self.text)

        await self.signal.until(told, lambda: f"no answer but {self.kind}", patience)
        return self


class Interactions:
    """Gives interactions out and takes their answers."""

    def __init__(self, server: DiscordServer) -> None:
        self._server = server
        self._by_token: dict[str, Interaction] = {}
        self.late: list[Interaction] = []
        """Those whose first answer came too late: Discord showed that they failed."""

    def begin(self, by: Person, channel: Channel, kind: int, data: Json, message: Message | None = None) -> Interaction:
        """A person does something; the bot is told."""
        ident = self._server.ids.next()
        interaction = Interaction(ident, f"token-{ident}", by, channel, self._server.signal, message)
        self._by_token[interaction.token] = interaction
        event: Json = {
            "id": ident,
            "application_id": self._server.application,
            "type": kind,
            "token": interaction.token,
            "version": 1,
            "data": data,
            "channel_id": channel.id,
            "channel": channel.as_json(),
            "context": 0 if channel.guild else 1,
        }
        if message is not None:
            event["message"] = message.as_json()
        if channel.guild is not None:
            event |= {"guild_id": channel.guild.id, "member": {"user": by.account, "nick": None, "roles": []}}
        else:
            event["user"] = by.account
        self._server.emit("INTERACTION_CREATE", event)
        return interaction

    def _known(self, token: str) -> Interaction:
        found = self._by_token.get(token)
        if found is None or time.monotonic() - found.at > TOKEN_SECONDS:
            raise RefusalError(404, 10062, "Unknown interaction")
        return found

    def _answered(self, token: str) -> Interaction:
        found = self._by_token.get(token)
        if found is None or found.answered_at is None or time.monotonic() - found.at > TOKEN_SECONDS:
            raise RefusalError(404, 10015, "Unknown Webhook")
        return found

    async def callback(self, call: Call, body: Body) -> None:
        """Take the first answer."""
        interaction = self._known(call.params["token"])
        if interaction.answered_at is not None:
            raise RefusalError(400, 40060, "Interaction has already been acknowledged.")
        if time.monotonic() - interaction.at > FIRST_SECONDS:
            self.late.append(interaction)
            raise RefusalError(404, 10062, "Unknown interaction")
        kind, data = body.payload.get("type"), body.payload.get("data") or {}
        if kind == _FORM:
            interaction.form = _checked_form(data)
        elif kind in {_MESSAGE, _LATER}:
            interaction.answer = self._message(interaction, data, loading=kind == _LATER)
        elif kind in {_LATER_UPDATE, _UPDATE} and interaction.message is not None:
            interaction.answer = interaction.message
        else:
            raise bad_form("type")
        interaction.kind, interaction.answered_at = kind, time.monotonic()

    def _message(self, interaction: Interaction, data: Json, *, loading: bool) -> Message:
        if not loading:
            checked_message(data, [], allowed_flags=_EPHEMERAL | 1 << 2)
        flags = data.get("flags", 0) | (_LOADING if loading else 0)
        message = self._server.new_message(
            interaction.channel, self._server.me, data.get("content", ""), flags=flags, pings=pings(data)
        )
        message.answers = interaction.id
        if not message.is_ephemeral:
            self._server.tell("MESSAGE_CREATE", message)
        return message

    async def edit_original(self, call: Call, body: Body) -> Json:
        """Change the first answer."""
        interaction = self._answered(call.params["token"])
        if interaction.answer is None or interaction.answer.deleted:
            raise RefusalError(404, 10008, "Unknown Message")
        checked_message(body.payload, body.files, allowed_flags=1 << 2, is_edit=True)
        change(interaction.answer, body.payload)
        if not interaction.answer.is_ephemeral:
            self._server.tell("MESSAGE_UPDATE", interaction.answer)
        return interaction.answer.as_json()

    async def delete_original(self, call: Call, body: Body) -> None:
        """Take the first answer back."""
        interaction = self._answered(call.params["token"])
        if interaction.answer is None or interaction.answer.deleted:
            raise RefusalError(404, 10008, "Unknown Message")
        interaction.answer.deleted = True

    async def followup(self, call: Call, body: Body) -> Any:
        """Say something more."""
        interaction = self._answered(call.params["token"])
        interaction.answer = self._message(interaction, body.payload, loading=False)
        return interaction.answer.as_json()


def _checked_form(form: Json) -> Json:
    rows = form.get("components", [])
    if not 1 <= len(form.get("title", "")) <= 45 or not 1 <= len(form.get("custom_id", "")) <= 100:
        raise bad_form("title or custom_id")
    if not 1 <= len(rows) <= 5:
        raise bad_form("components")
    for row in rows:
        (field_,) = row["components"]
        if row["type"] != 1 or field_["type"] != 4 or not 1 <= len(field_.get("label", "")) <= 45:
            raise bad_form("components: no text input")
        if not 1 <= field_.get("max_length", 1) <= 4000 or len(field_.get("placeholder", "")) > 100:
            raise bad_form("components: max_length or placeholder")
    return form
