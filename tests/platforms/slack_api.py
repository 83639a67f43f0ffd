"""The Web API of Slack's double: what it does, and what it refuses in which words.

https://docs.slack.dev/reference/methods
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tests.platforms.slack_blocks import UPDATE_CHARACTERS, BlocksError, check_message, check_view
from tests.platforms.slack_text import notified
from tests.platforms.slack_world import DIRECT, Channel, Json, Message, RefusalError

if TYPE_CHECKING:
    from tests.platforms.slack_server import SlackServer

Handler = Callable[[Json], Awaitable[Json]]
SCOPES = (
    "app_mentions:read,channels:history,chat:write,commands,files:read,files:write,groups:history,im:history,im:write,"
    "mpim:history,users:read"
)
_MOST_PAGE = 999
STREAM_CHARACTERS = 12_000
# Arguments that the double knows, by method; another one is a mistake of ours.
ARGUMENTS: dict[str, str] = {
    "api.test": "",
    "apps.connections.open": "",
    "assistant.threads.setStatus": "channel_id thread_ts status",
    "auth.test": "",
    "chat.appendStream": "channel ts markdown_text",
    "chat.delete": "channel ts",
    "chat.postEphemeral": "channel user thread_ts text blocks",
    "chat.postMessage": "channel thread_ts text blocks metadata unfurl_links unfurl_media parse mrkdwn",
    "chat.startStream": "channel thread_ts markdown_text recipient_user_id recipient_team_id",
    "chat.stopStream": "channel ts markdown_text metadata",
    "chat.update": "channel ts text blocks metadata parse",
    "conversations.history": "channel oldest latest limit cursor include_all_metadata",
    "conversations.open": "users",
    "conversations.replies": "channel ts oldest latest limit cursor include_all_metadata",
    "files.completeUploadExternal": "files channel_id thread_ts initial_comment blocks",
    "files.getUploadURLExternal": "filename length",
    "files.info": "file",
    "users.info": "user",
    "views.open": "trigger_id view",
}


class Api:
    """The methods. Each gets the arguments of a call, and returns what stands beside `ok`."""

    def __init__(self, server: SlackServer) -> None:
        self._server = server
        self.scopes = SCOPES
        self.file_bytes = 1_000_000_000
        self.has_streams = True
        self._methods: dict[str, Handler] = {
            "api.test": self._nothing,
            "apps.connections.open": self._open_socket,
            "assistant.threads.setStatus": self._set_status,
            "auth.test": self._who,
            "chat.appendStream": self._append_stream,
            "chat.delete": self._delete,
            "chat.postEphemeral": self._ephemeral,
            "chat.postMessage": self._post,
            "chat.startStream": self._start_stream,
            "chat.stopStream": self._stop_stream,
            "chat.update": self._update,
            "conversations.history": self._history,
            "conversations.open": self._open_direct,
            "conversations.replies": self._replies,
            "files.completeUploadExternal": self._complete_upload,
            "files.getUploadURLExternal": self._begin_upload,
            "files.info": self._file,
            "users.info": self._user,
            "views.open": self._open_view,
        }

    def find(self, method: str, arguments: Json) -> Handler:
        """What a call does.

        Raises:
            RefusalError: There is no such method, or it has no such argument.
        """
        if method not in self._methods:
            raise RefusalError("unknown_method")
        if arguments.keys() - set(ARGUMENTS[method].split()):
            raise RefusalError("invalid_arguments")
        return self._methods[method]

    # Who and where.

    async def _nothing(self, arguments: Json) -> Json:
        return {}

    async def _who(self, arguments: Json) -> Json:
        server = self._server
        return {"user_id": server.bot, "user": "zero", "team_id": server.team, "team": "Acme", "bot_id": "B0BOT"}

    async def _open_socket(self, arguments: Json) -> Json:
        return {"url": self._server.sockets.address()}

    async def _user(self, arguments: Json) -> Json:
        person = self._server.people.get(arguments["user"])
        if person is None:
            raise RefusalError("user_not_found")
        return {"user": {"id": person.id, "name": person.id.lower(), "profile": {"display_name": person.name}}}

    async def _open_direct(self, arguments: Json) -> Json:
        person = self._server.people.get(arguments["users"])
        if person is None:
            raise RefusalError("user_not_found")
        return {"channel": {"id": person.chat.id}}

    def _channel(self, ident: str) -> Channel:
        channel = self._server.channels.get(ident)
        if channel is None:
            raise RefusalError("channel_not_found")
        if channel.refuses:
            raise RefusalError(channel.refuses)
        return channel

    # Messages.

    async def _post(self, arguments: Json) -> Json:
        channel = self._channel(arguments["channel"])
        text, blocks = arguments.get("text", ""), arguments.get("blocks", [])
        _checked(lambda: check_message(text, blocks))
        thread = arguments.get("thread_ts")
        if thread is not None and channel.message(thread) is None:
            # Slack posts it at top level, without an error.
            self._server.astray.append(f"{arguments['channel']} {thread}")
            thread = None
        message = self._server.new_message(
            channel,
            self._server.bot,
            text,
            from_bot=True,
            thread_ts=thread,
            blocks=blocks,
            metadata=arguments.get("metadata"),
            pings=notified(text, blocks),
        )
        return {"channel": channel.id, "ts": message.ts, "message": message.as_json()}

    def _own(self, arguments: Json) -> Message:
        message = self._channel(arguments["channel"]).message(arguments["ts"])
        if message is None:
            raise RefusalError("message_not_found")
        if not message.from_bot:
            raise RefusalError("cant_update_message")
        return message

    # Streams: https://docs.slack.dev/reference/methods/chat.startStream.

    async def _start_stream(self, arguments: Json) -> Json:
        channel = self._channel(arguments["channel"])
        if not self.has_streams:
            raise RefusalError("channel_type_not_supported")
        if channel.message(arguments.get("thread_ts", "")) is None:
            raise RefusalError("invalid_thread_ts")
        if channel.kind != DIRECT and not (arguments.get("recipient_user_id") and arguments.get("recipient_team_id")):
            raise RefusalError("missing_recipient_user_id")
        raw, pings = streamed(arguments)
        message = self._server.new_message(
            channel, self._server.bot, raw, from_bot=True, thread_ts=arguments["thread_ts"], pings=pings, streaming=True
        )
        return {"channel": channel.id, "ts": message.ts}

    def _stream(self, arguments: Json) -> Message:
        message = self._own(arguments)
        if not message.streaming:
            raise RefusalError("message_not_in_streaming_state")
        return message

    async def _append_stream(self, arguments: Json) -> Json:
        message = self._stream(arguments)
        raw, pings = streamed(arguments)
        message.raw += raw
        message.pings += pings
        message.history.append(message.text)
        return {"channel": message.channel.id, "ts": message.ts}

    async def _stop_stream(self, arguments: Json) -> Json:
        message = self._stream(arguments)
        message.streaming = False
        return {"channel": message.channel.id, "ts": message.ts}

    # Edits.

    async def _update(self, arguments: Json) -> Json:
        message = self._own(arguments)
        if message.streaming:
            raise RefusalError("streaming_state_conflict")
        message.updated = True
        text, blocks = arguments.get("text", ""), arguments.get("blocks", [])
        _checked(lambda: check_message(text, blocks, limit=UPDATE_CHARACTERS))
        message.raw, message.blocks = text, blocks
        message.metadata = arguments.get("metadata", message.metadata)
        message.history.append(message.text)
        message.pings += notified(text, blocks)
        self._server.tell_changed(message)
        return {"channel": message.channel.id, "ts": message.ts, "text": text}

    async def _delete(self, arguments: Json) -> Json:
        message = self._own(arguments)
        message.deleted = True
        self._server.tell_deleted(message)
        return {"channel": message.channel.id, "ts": message.ts}

    async def _ephemeral(self, arguments: Json) -> Json:
        channel = self._channel(arguments["channel"])
        if arguments["user"] not in self._server.people:
            raise RefusalError("user_not_in_channel")
        _checked(lambda: check_message(arguments.get("text", ""), arguments.get("blocks", [])))
        self._server.presses.told_privately(
            channel, arguments["user"], arguments.get("text", ""), arguments.get("thread_ts")
        )
        return {"message_ts": self._server.stamps.next()}

    async def _set_status(self, arguments: Json) -> Json:
        channel = self._channel(arguments["channel_id"])
        if channel.message(arguments["thread_ts"]) is None:
            raise RefusalError("invalid_thread_ts")
        channel.statuses.append((arguments["thread_ts"], arguments["status"]))
        return {}

    # Histories.

    async def _history(self, arguments: Json) -> Json:
        channel = self._channel(arguments["channel"])
        seen = [one for one in channel.messages if one.thread_ts is None and not one.deleted]
        return self._page(list(reversed(_since(seen, arguments))), arguments)

    async def _replies(self, arguments: Json) -> Json:
        channel = self._channel(arguments["channel"])
        root = channel.message(arguments["ts"])
        if root is None:
            raise RefusalError("thread_not_found")
        answers = _since([one for one in channel.thread(root.ts) if one is not root], arguments)
        return self._page([root, *answers], arguments)

    def _page(self, messages: list[Message], arguments: Json) -> Json:
        limit, first = int(arguments.get("limit", 100)), int(arguments.get("cursor") or 0)
        if not 1 <= limit <= _MOST_PAGE:
            raise RefusalError("invalid_limit")
        more = first + limit < len(messages)
        with_metadata = bool(arguments.get("include_all_metadata"))
        return {
            "messages": [one.as_json(with_metadata=with_metadata) for one in messages[first : first + limit]],
            "has_more": more,
            "response_metadata": {"next_cursor": str(first + limit) if more else ""},
        }

    # Files.

    async def _begin_upload(self, arguments: Json) -> Json:
        if not 0 < int(arguments["length"]) <= self.file_bytes:
            raise RefusalError("file_upload_size_restricted" if int(arguments["length"]) else "missing_argument")
        file = self._server.new_file(arguments["filename"], "application/octet-stream", b"")
        file.size = int(arguments["length"])
        return {"upload_url": self._server.upload_url(file), "file_id": file.id}

    async def _complete_upload(self, arguments: Json) -> Json:
        channel = self._channel(arguments["channel_id"])
        files = [self._server.files.get(each["id"]) for each in arguments["files"]]
        found = [file for file in files if file is not None and len(file.data) == file.size]
        if len(found) != len(files):
            raise RefusalError("file_not_found")
        blocks = arguments.get("blocks", [])
        if blocks:
            _checked(lambda: check_message("", blocks))
        self._server.new_message(
            channel,
            self._server.bot,
            "",
            from_bot=True,
            thread_ts=arguments.get("thread_ts"),
            blocks=blocks,
            files=found,
            pings=notified("", blocks),
        )
        return {"files": [{"id": file.id, "title": file.name} for file in found]}

    async def _file(self, arguments: Json) -> Json:
        file = self._server.files.get(arguments["file"])
        if file is None:
            raise RefusalError("file_not_found")
        return {"file": file.as_json() | {"url_private": file.url, "url_private_download": file.url}}

    # Forms.

    async def _open_view(self, arguments: Json) -> Json:
        _checked(lambda: check_view(arguments["view"]))
        self._server.presses.open_view(arguments["trigger_id"], arguments["view"])
        return {"view": {"id": "V1"}}


def streamed(arguments: Json) -> tuple[str, list[str]]:
    """A piece of a stream as it will be read, and whom it notifies. A sign that means something is an oversight."""
    piece = arguments.get("markdown_text", "")
    if len(piece) > STREAM_CHARACTERS:
        raise RefusalError("msg_too_long")
    if re.search(r"[`*_#~\[\]|<>]", re.sub(r"\\.", "", piece)):
        raise RefusalError("invalid_arguments")
    return re.sub(r"\\(.)", r"\1", piece), notified(piece, [])


def _since(messages: list[Message], arguments: Json) -> list[Message]:
    oldest, latest = float(arguments.get("oldest") or 0), float(arguments.get("latest") or "inf")
    return [one for one in messages if oldest < float(one.ts) < latest]


def _checked(check: Callable[[], Any]) -> None:
    try:
        check()
    except BlocksError as error:
        raise RefusalError(str(error)) from None
    except (KeyError, TypeError, AttributeError):
        raise RefusalError("invalid_blocks") from None
