"""People at Slack's double: what they write, press, send and command, and what they are told."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.platforms.signals import PATIENCE, Signal
from tests.platforms.slack_text import unescape
from tests.platforms.slack_world import DIRECT, Channel, Json, Message, Private, RefusalError

if TYPE_CHECKING:
    from tests.platforms.slack_server import SlackServer

TRIGGER_SECONDS = 3.0
RESPONSES = 5


@dataclass(slots=True, eq=False)
class Press:
    """Something that a person did, and what he was told."""

    ident: str
    by: Person
    channel: Channel
    signal: Signal
    message: Message | None = None
    thread_ts: str | None = None
    at: float = field(default_factory=time.monotonic)
    texts: list[str] = field(default_factory=list)
    in_public: bool = False
    form: Json | None = None
    responses: int = 0

    @property
    def text(self) -> str:
        """What he was told last."""
        return self.texts[-1] if self.texts else ""

    async def answered(self, patience: float = PATIENCE) -> Press:
        """Wait until the person has been told something: words or a form."""
        await self.signal.until(lambda: self.texts or self.form, lambda: "no answer", patience)
        return self


class Presses:
    """Gives presses out and takes their answers."""

    def __init__(self, server: SlackServer) -> None:
        self._server = server
        self._known: dict[str, Press] = {}
        self.late: list[Press] = []
        """Those for which a form was opened too late."""
        self.responded: list[Json] = []
        """What was sent to each `response_url`."""

    def begin(
        self, by: Person, channel: Channel, message: Message | None = None, thread_ts: str | None = None
    ) -> Press:
        """A person does something."""
        ident = f"press-{len(self._known) + 1}"
        press = Press(ident, by, channel, self._server.signal, message, thread_ts)
        self._known[ident] = press
        return press

    def respond(self, ident: str, value: Json) -> None:
        """Take what was sent to a `response_url`.

        Raises:
            RefusalError: There is none, or it was used up.
        """
        press = self._known.get(ident)
        if press is None or press.responses >= RESPONSES:
            raise RefusalError("used_url", 404)
        press.responses += 1
        self.responded.append(value)
        press.in_public |= value.get("response_type") != "ephemeral"
        self._tell(press, str(value.get("text", "")), value.get("thread_ts"))

    def told_privately(self, channel: Channel, user: str, text: str, thread_ts: str | None) -> None:
        """Take a `chat.postEphemeral`; it answers the form that this person has sent."""
        waiting = [each for each in self._known.values() if each.by.id == user and not each.texts and not each.form]
        if waiting:
            self._tell(waiting[0], text, thread_ts)
        else:
            channel.private.append(Private(user, unescape(text), thread_ts))
            self._server.signal.fire()

    def replied(self, press: Press, payload: Json | None) -> None:
        """Take what an acknowledgement says."""
        if payload and payload.get("text"):
            press.in_public |= payload.get("response_type", "ephemeral") != "ephemeral"
            self._tell(press, str(payload["text"]), None)

    def open_view(self, trigger: str, view: Json) -> None:
        """Open a form.

        Raises:
            RefusalError: Its time is over.
        """
        press = self._known.get(trigger)
        if press is None:
            raise RefusalError("invalid_trigger_id")
        if time.monotonic() - press.at > TRIGGER_SECONDS:
            self.late.append(press)
            raise RefusalError("expired_trigger_id")
        press.form = view
        self._server.signal.fire()

    def _tell(self, press: Press, text: str, thread_ts: str | None) -> None:
        press.texts.append(unescape(text))
        press.channel.private.append(Private(press.by.id, unescape(text), thread_ts))
        self._server.signal.fire()


class Person:
    """Somebody who uses Slack. What he does returns at once; the bot learns of it by the socket."""

    def __init__(self, server: SlackServer, ident: str, name: str, chat: Channel, team: str) -> None:
        self._server = server
        self.id = ident
        self.name = name
        self.chat = chat
        self.team = team

    def says(
        self,
        text: str,
        *,
        chat: Channel | None = None,
        reply_to: Message | None = None,
        files: list[tuple[str, bytes]] | None = None,
        age: float = 0.0,
        tell: str = "message app_mention",
    ) -> Message:
        """Write something, in the direct chat with the bot or elsewhere; `@zero` becomes a mention of the bot.

        Args:
            text: As typed. Slack keeps a slash at the beginning for itself, so people write `!status` here.
            chat: Where.
            reply_to: Whose thread it is written in.
            files: (name, bytes).
            age: Seconds ago.
            tell: The events that the bot is told it by, in this order, where they apply.
        """
        server, where = self._server, chat or self.chat
        if text.startswith("/"):
            text = "!" + text[1:]
        raw = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        raw = re.sub(r"&lt;(@[UW]\w+)&gt;", r"<\1>", raw).replace("@zero", f"<@{server.bot}>")
        message = server.new_message(
            where,
            self.id,
            raw,
            thread_ts=(reply_to.thread_ts or reply_to.ts) if reply_to else None,
            files=[server.new_file(name, "application/octet-stream", data) for name, data in files or ()],
            age=age,
        )
        if self.team != server.team:
            message.extra["user_team"] = self.team
        for kind in tell.split():
            if kind == "message" or (where.kind != DIRECT and f"<@{server.bot}>" in raw):
                server.tell(kind, message)
        return message

    def edits(self, message: Message, text: str) -> None:
        """Change what was written."""
        before = message.as_json()
        message.raw = text.replace("@zero", f"<@{self._server.bot}>")
        message.updated = True
        message.history.append(message.text)
        self._server.tell_changed(message, before)

    def deletes(self, message: Message) -> None:
        """Take back what was written."""
        message.deleted = True
        self._server.tell_deleted(message)

    def presses(self, message: Message, label: str) -> Press:
        """Press the button with this label."""
        button = message.button(label)
        return self.sends_press(message, button["action_id"], button["value"])

    def sends_press(self, message: Message, action: str, value: str) -> Press:
        """Send a press with any data, as a changed client can."""
        server, channel = self._server, message.channel
        press = server.presses.begin(self, channel, message, message.thread_ts)
        container: Json = {"type": "message", "message_ts": message.ts, "channel_id": channel.id}
        if message.thread_ts:
            container["thread_ts"] = message.thread_ts
        payload: Json = {
            "type": "block_actions",
            "user": self.as_json(),
            "team": {"id": server.team},
            "container": container,
            "trigger_id": press.ident,
            "channel": {"id": channel.id, "name": channel.name},
            "message": message.as_json(),
            "response_url": server.response_url(press),
            "actions": [{"type": "button", "action_id": action, "block_id": "b1", "value": value}],
        }
        server.sockets.emit("interactive", payload)
        return press

    def fills_in(self, asked: Press, text: str) -> Press:
        """Send a form that the bot has opened."""
        assert asked.form is not None, "there is a form"
        block = asked.form["blocks"][0]
        state = {"values": {block["block_id"]: {block["element"]["action_id"]: {"value": text}}}}
        press = self._server.presses.begin(self, asked.channel, asked.message)
        payload: Json = {
            "type": "view_submission",
            "user": self.as_json(),
            "team": {"id": self._server.team},
            "trigger_id": press.ident,
            "view": {**asked.form, "id": "V1", "state": state},
            "response_urls": [],
        }
        self._server.sockets.emit("interactive", payload, lambda reply: self._server.presses.replied(press, reply))
        return press

    def commands(self, words: str, *, chat: Channel | None = None) -> Press:
        """Use the app's slash command."""
        where = chat or self.chat
        press = self._server.presses.begin(self, where)
        payload: Json = {
            "command": "/zerobot",
            "text": words,
            "user_id": self.id,
            "user_name": self.name.lower(),
            "team_id": self.team,
            "channel_id": where.id,
            "channel_name": "directmessage" if where.kind == DIRECT else where.name,
            "trigger_id": press.ident,
            "response_url": self._server.response_url(press),
        }
        self._server.sockets.emit("slash_commands", payload, lambda reply: self._server.presses.replied(press, reply))
        return press

    def as_json(self) -> Json:
        """The person as an interaction names him."""
        return {"id": self.id, "username": self.name.lower(), "name": self.name, "team_id": self.team}
