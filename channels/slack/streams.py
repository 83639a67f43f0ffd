"""Drafts as Slack's own streamed messages: only what can no longer change is appended, the final replaces it all.

https://docs.slack.dev/reference/methods/chat.startStream. They are used in the threads of direct chats, where an
assistant's pane shows them: in a channel only one recipient sees such a message grow, and everybody else no more than
its beginning. Slack ends a stream by itself after some minutes; then the draft goes on by edits. A stream holds plain
words; their formatting comes with the final, which is an edit like any other.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

from channels.slack.blocks import escape
from channels.slack.decode import is_direct
from channels.slack.web import LinkError, Web, WebError
from zerobot.core.channel import MessageBody, OutboundMessage, SentMessage
from zerobot.core.clock import Clock
from zerobot.core.places import Place

STARTS = 15
"""Streams begun in a minute; Slack takes 20 starts and 20 stops (tier 2), and a final must not wait for one."""
_MINUTE = 60.0
_MOST = 500
# The workspace, or this chat, has no streams; it has drafts by edits.
_NOT_HERE = frozenset(
    {"unknown_method", "channel_type_not_supported", "method_not_supported_for_channel_type", "missing_scope",
     "not_allowed_token_type", "feature_not_enabled", "team_not_allowed", "access_denied", "no_permission"}
)  # fmt: skip
OVER = frozenset({"message_not_in_streaming_state", "message_not_found", "message_not_owned_by_app"})
"""Words with which Slack says that a stream is no more."""
STILL_OPEN = "streaming_state_conflict"
"""Slack's word for an edit of a message whose stream was not stopped."""
_SIGNS = frozenset("\\`*_{}[]()#+-.!|~")


def is_stream_place(place: Place) -> bool:
    """Whether drafts in a place may be streams."""
    return place.thread is not None and is_direct(place.chat)


@dataclass(slots=True)
class _Stream:
    """A draft that grows."""

    given: str
    """The newest text."""
    appended: str
    """What of it stands there."""


class Streams:
    """Knows which drafts are streams, in this process.

    Args:
        web: Makes the calls.
        clock: How many were begun lately.
    """

    def __init__(self, web: Web, clock: Clock) -> None:
        self._web = web
        self._clock = clock
        self._open: OrderedDict[str, _Stream] = OrderedDict()
        self._begun: deque[float] = deque()
        self._not_here = False

    def fits(self, message: OutboundMessage) -> bool:
        """Whether a message should begin as a stream: the first of a draft, in a thread of a direct chat."""
        now = self._clock.monotonic()
        while self._begun and self._begun[0] <= now - _MINUTE:
            self._begun.popleft()
        here = is_stream_place(message.place) and not self._not_here
        return here and message.growing and bool(message.reply_to) and len(self._begun) < STARTS

    async def start(self, channel: str, message: OutboundMessage) -> SentMessage | None:
        """Begin one; None: there are none here.

        Raises:
            WebError, LinkError: It did not begin, or nobody knows.
        """
        self._begun.append(self._clock.monotonic())
        text = message.body.text
        first = text[: _last_blank(text)]
        try:
            started = await self._web.call(
                "chat.startStream",
                channel=channel,
                thread_ts=message.place.thread,
                markdown_text=written(first) or None,
            )
        except WebError as error:
            if error.code not in _NOT_HERE:
                raise
            self._not_here = True
            return None
        sent = SentMessage(message.place, str(started["ts"]))
        self._open[sent.id] = _Stream(text, first)
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
        return sent

    def is_open(self, sent: SentMessage) -> bool:
        """Whether a message is a stream that was not stopped."""
        return sent.id in self._open

    async def grow(self, channel: str, sent: SentMessage, body: MessageBody) -> bool | None:
        """Append what two texts in a row agree on.

        Returns:
            Whether all of the text stands there; None: it does not go on where the stream stands, or that has ended.

        Raises:
            WebError, LinkError: It was not appended, or nobody knows.
        """
        stream, text = self._open[sent.id], body.text
        agreed = _common(stream.given, text)
        settled = text if stream.given == text else agreed[: _last_blank(agreed)]
        stream.given = text
        if not text.startswith(stream.appended):
            return None
        piece = settled[len(stream.appended) :]
        if piece and not await self._append(channel, sent, piece):
            return None
        stream.appended += piece
        return stream.appended == text

    async def _append(self, channel: str, sent: SentMessage, piece: str) -> bool:
        """Append a piece; False: the stream has ended. One that may stand there is not sent again: edits follow."""
        try:
            await self._web.call("chat.appendStream", channel=channel, ts=sent.id, markdown_text=written(piece))
        except LinkError:
            self.forget(sent)
            raise
        except WebError as error:
            if error.retry_after is None:
                self.forget(sent)
            if error.code not in OVER:
                raise
            return False
        return True

    async def stop(self, channel: str, sent: SentMessage) -> None:
        """End one, so that it can be edited; that it has ended is no error.

        Raises:
            WebError, LinkError: It has not, or nobody knows.
        """
        try:
            await self._web.call("chat.stopStream", channel=channel, ts=sent.id)
        except WebError as error:
            if error.code not in OVER:
                raise
        self.forget(sent)

    def forget(self, sent: SentMessage) -> None:
        """It is none any more."""
        self._open.pop(sent.id, None)


def written(text: str) -> str:
    """A text in Slack's Markdown, in which nothing is read as a mark."""
    return "".join(f"\\{char}" if char in _SIGNS else char for char in escape(text))


def _common(one: str, two: str) -> str:
    size = 0
    for first, second in zip(one, two, strict=False):
        if first != second:
            break
        size += 1
    return two[:size]


def _last_blank(text: str) -> int:
    """Where the last whole word of a text ends."""
    return max(text.rfind(" "), text.rfind("\n")) + 1
