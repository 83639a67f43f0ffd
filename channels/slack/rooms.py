"""Which channel of Slack a chat of ours is: a direct chat is named by its person, and has an id once it is opened."""

from __future__ import annotations

from channels.slack.decode import is_direct
from channels.slack.web import Web


class Rooms:
    """Knows the channels of direct chats, and asks for those it does not know.

    Args:
        web: Opens direct chats.
    """

    def __init__(self, web: Web) -> None:
        self._web = web
        self._channels: dict[str, str] = {}
        self._users: dict[str, str] = {}

    def learn(self, user: str, channel: str) -> None:
        """A person's direct chat has this channel."""
        self._channels[user] = channel
        self._users[channel] = user

    def chat(self, channel: str) -> str:
        """The chat that a channel is."""
        return self._users.get(channel, channel)

    async def channel(self, chat: str) -> str:
        """The channel of a chat; a direct chat is opened, which its person does not notice.

        Raises:
            WebError, LinkError: It cannot be opened.
        """
        if not is_direct(chat):
            return chat
        if chat not in self._channels:
            opened = await self._web.call("conversations.open", users=chat)
            self.learn(chat, str(opened["channel"]["id"]))
        return self._channels[chat]
