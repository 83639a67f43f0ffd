"""Which channel of Discord a chat of ours is: a direct chat is named by its person, and has an id once it is opened."""

from __future__ import annotations

from channels.discord.decode import direct_chat, direct_user
from channels.discord.rest import Rest


class Rooms:
    """Knows the channels of direct chats, and asks for those it does not know.

    Args:
        rest: Opens direct chats.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._channels: dict[str, str] = {}
        self._users: dict[str, str] = {}

    def learn(self, user: str, channel: str) -> None:
        """A person's direct chat has this channel."""
        self._channels[user] = channel
        self._users[channel] = user

    def chat(self, channel: str) -> str | None:
        """The direct chat that a channel is; None: it is none that we know."""
        user = self._users.get(channel)
        return direct_chat(user) if user else None

    async def channel(self, chat: str) -> str:
        """The channel of a chat; a direct chat is opened, which its person does not notice.

        Raises:
            RestError, LinkError: It cannot be opened.
        """
        user = direct_user(chat)
        if user is None:
            return chat
        if user not in self._channels:
            self.learn(user, str((await self._rest.start_private_message(user))["id"]))
        return self._channels[user]
