"""People at Discord's double: what they write, press and send."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.platforms.discord_world import Channel, Json, Message

if TYPE_CHECKING:
    from tests.platforms.discord_interactions import Interaction
    from tests.platforms.discord_server import DiscordServer

_COMMAND, _COMPONENT, _FORM = 2, 3, 5
_USER, _ROLE = re.compile(r"<@!?(\d+)>"), re.compile(r"<@&(\d+)>")


class Person:
    """Somebody who uses Discord. What he does returns at once; the bot learns of it by the gateway."""

    def __init__(
        self, server: DiscordServer, ident: str, name: str, username: str, chat: Channel, *, is_bot: bool = False
    ) -> None:
        self._server = server
        self.id = ident
        self.account: Json = {"id": ident, "username": username, "global_name": name, "discriminator": "0"}
        if is_bot:
            self.account["bot"] = True
        self.chat = chat

    def says(
        self,
        text: str,
        *,
        chat: Channel | None = None,
        reply_to: Message | None = None,
        pings: bool = True,
        files: list[tuple[str, bytes]] | None = None,
        age: float = 0.0,
        **extra: Any,
    ) -> Message:
        """Write something, in the direct chat with the bot or elsewhere; `@zero` becomes a mention of the bot.

        Args:
            text: As typed.
            chat: Where; the first message of a forum's post has its id.
            reply_to: What it answers.
            pings: Whether the answer notifies the author of what it answers.
            files: (name, bytes).
            age: Seconds ago.
            extra: Further fields of the message, as the API writes them.
        """
        server, where = self._server, chat or self.chat
        text = text.replace("@zero", f"<@{server.me['id']}>")
        opens = where.parent is not None and where.parent.kind == 15 and not where.messages
        message = server.new_message(
            where,
            self.account,
            text,
            ident=where.id if opens else server.ids.next(age),
            reply_to=reply_to,
            kind=19 if reply_to else 0,
            files=[server.new_file(name, "application/octet-stream", data) for name, data in files or ()],
            mentions=self._named(text, reply_to if pings else None),
            mention_roles=_ROLE.findall(text),
            extra=extra,
        )
        message.sent_at -= age
        server.tell("MESSAGE_CREATE", message)
        return message

    def _named(self, text: str, answered: Message | None) -> list[Json]:
        accounts = {self._server.me["id"]: self._server.me}
        accounts |= {ident: person.account for ident, person in self._server.people.items()}
        found = {ident: accounts[ident] for ident in _USER.findall(text) if ident in accounts}
        if answered is not None:
            found[answered.author["id"]] = answered.author
        return list(found.values())

    def edits(self, message: Message, text: str) -> None:
        """Change what was written."""
        message.text = text.replace("@zero", f"<@{self._server.me['id']}>")
        message.history.append(message.text)
        self._server.tell("MESSAGE_UPDATE", message)

    def deletes(self, message: Message) -> None:
        """Take back what was written."""
        message.deleted = True
        self._server.tell_deleted(message)

    def presses(self, message: Message, label: str) -> Interaction:
        """Press the button with this label."""
        return self.sends_press(message, message.button(label))

    def sends_press(self, message: Message, data: str) -> Interaction:
        """Send a press with any custom id, as a changed client can."""
        data_ = {"custom_id": data, "component_type": 2}
        return self._server.interactions.begin(self, message.channel, _COMPONENT, data_, message)

    def fills_in(self, asked: Interaction, text: str) -> Interaction:
        """Send a form that the bot has opened."""
        assert asked.form is not None, "there is a form"
        field = asked.form["components"][0]["components"][0]
        row = {"type": 1, "components": [{"type": 4, "custom_id": field["custom_id"], "value": text}]}
        data = {"custom_id": asked.form["custom_id"], "components": [row]}
        return self._server.interactions.begin(self, asked.channel, _FORM, data, asked.message)

    def commands(self, name: str, words: str = "", *, chat: Channel | None = None) -> Interaction:
        """Use a slash command that the bot has registered here."""
        where = chat or self.chat
        known = [*self._server.commands, *(where.guild.commands if where.guild else ())]
        command = next((each for each in known if each["name"] == name), None)
        assert command is not None, f"there is no command /{name} among {[each['name'] for each in known]}"
        options = [{"name": command["options"][0]["name"], "type": 3, "value": words}] if words else []
        data = {"id": "1", "name": name, "type": 1, "options": options}
        return self._server.interactions.begin(self, where, _COMMAND, data)
