"""The Bot API's methods, as strict as the real ones where zerobot touches them."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from tests.platforms.signals import Signal
from tests.platforms.telegram_faults import Call
from tests.platforms.telegram_text import (
    CAPTION_UNITS,
    MESSAGE_UNITS,
    ApiError,
    Formatted,
    bad_request,
    take,
    units,
)
from tests.platforms.telegram_wire import Upload
from tests.platforms.telegram_world import Chat, Message, StoredFile

DOWNLOAD_BYTES = 20_000_000
DEFAULT_UPDATES = frozenset({"message", "edited_message", "channel_post", "callback_query", "my_chat_member"})
_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"
_ACTIONS = frozenset({"typing", "upload_photo", "upload_document", "record_voice", "find_location"})


class World(Protocol):
    """What the methods need to know about; `TelegramServer` is it."""

    me: dict[str, Any]
    webhook: str
    chats: dict[str, Chat]
    files: dict[str, StoredFile]
    queries: dict[str, Any]
    commands: list[dict[str, str]]
    signal: Signal

    def new_message(self, chat: Chat, sender: dict[str, Any], content: Formatted, **more: Any) -> Message: ...
    def new_file(self, name: str, mime: str, data: bytes, size: int | None = None) -> StoredFile: ...
    def path_of(self, file: StoredFile) -> str: ...


class BotApi:
    """Carries calls out on a world, or refuses them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.pending: list[dict[str, Any]] = []
        """Updates that nobody has confirmed."""
        self.confirmed = 0
        """The highest update id that was confirmed."""
        self.allowed = DEFAULT_UPDATES
        self.conflicts = 0
        """How many pollers were sent away by a newer one."""
        self._poller = 0
        self.methods: dict[str, Callable[[Call, dict[str, Upload]], Awaitable[Any]]] = {
            "getMe": self._get_me,
            "getUpdates": self._get_updates,
            "sendMessage": self._send_message,
            "sendDocument": self._send_file,
            "sendPhoto": self._send_file,
            "editMessageText": self._edit_message_text,
            "editMessageReplyMarkup": self._edit_message_reply_markup,
            "deleteMessage": self._delete_message,
            "sendChatAction": self._send_chat_action,
            "setMessageReaction": self._set_message_reaction,
            "answerCallbackQuery": self._answer_callback_query,
            "setMyCommands": self._set_my_commands,
            "getMyCommands": self._get_my_commands,
            "getWebhookInfo": self._get_webhook_info,
            "deleteWebhook": self._delete_webhook,
            "getFile": self._get_file,
        }

    async def _get_me(self, call: Call, files: dict[str, Upload]) -> Any:
        return self._world.me

    async def _get_updates(self, call: Call, files: dict[str, Upload]) -> Any:
        """Confirm what is before the offset, and wait for something after it; the newest poller wins."""
        if self._world.webhook:
            raise ApiError(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook")
        allowed = value_of(call, "allowed_updates")
        if allowed is not None:
            self.allowed = frozenset(allowed) or DEFAULT_UPDATES
        self._confirm(int(call.params.get("offset", 0)))
        self._poller += 1
        mine = self._poller
        self._world.signal.fire()
        await self._world.signal.within(
            lambda: self.pending or mine != self._poller, min(float(call.params.get("timeout", 0)), 50.0)
        )
        if mine != self._poller:
            self.conflicts += 1
            raise ApiError(
                409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
            )
        return self.pending[: max(1, min(int(call.params.get("limit", 100)), 100))]

    def _confirm(self, offset: int) -> None:
        if offset < 0:
            self.pending = self.pending[offset:]
        elif offset > 0:
            known = [update["update_id"] for update in self.pending if update["update_id"] < offset]
            self.pending = [update for update in self.pending if update["update_id"] >= offset]
            self.confirmed = max([self.confirmed, *known])

    async def _send_message(self, call: Call, files: dict[str, Upload]) -> Any:
        chat = self._open_chat(call)
        content = self._text(call, "text", "entities")
        if not content.text:
            raise bad_request("message text is empty")
        if units(content.text) > MESSAGE_UNITS:
            raise bad_request("message is too long")
        return self._sent(call, chat, content).as_json()

    async def _send_file(self, call: Call, files: dict[str, Upload]) -> Any:
        chat = self._open_chat(call)
        kind = "photo" if call.method == "sendPhoto" else "document"
        content = self._text(call, "caption", "caption_entities")
        if units(content.text) > CAPTION_UNITS:
            raise bad_request("message caption is too long")
        upload = files.get(str(call.params.get(kind, "")).removeprefix("attach://")) or files.get(kind)
        if upload is None:
            raise bad_request(f"there is no {kind} in the request")
        if not upload.data:
            raise bad_request("file must be non-empty")
        if kind == "photo" and not upload.data.startswith((b"\x89PNG", b"\xff\xd8", b"RIFF")):
            raise bad_request("IMAGE_PROCESS_FAILED")
        call.params[kind] = upload.name
        file = self._world.new_file(upload.name, upload.mime, upload.data)
        return self._sent(call, chat, content, file=file, kind=kind).as_json()

    def _sent(self, call: Call, chat: Chat, content: Formatted, **more: Any) -> Message:
        message = self._world.new_message(
            chat,
            self._world.me,
            content,
            thread=self._thread(call, chat),
            reply_to=_answered(call, chat),
            keyboard=_keyboard(call),
            **more,
        )
        message.preview_off = bool((value_of(call, "link_preview_options") or {}).get("is_disabled"))
        return message

    async def _edit_message_text(self, call: Call, files: dict[str, Upload]) -> Any:
        message = self._own_message(call, "edit")
        content = self._text(call, "text", "entities")
        if not content.text:
            raise bad_request("message text is empty")
        if units(content.text) > MESSAGE_UNITS:
            raise bad_request("MESSAGE_TOO_LONG")
        keyboard = _keyboard(call)
        if (content, keyboard) == (message.content, message.keyboard):
            raise bad_request(
                "message is not modified: specified new message content and reply markup are exactly the same as a "
                "current content and reply markup of the message"
            )
        message.content, message.keyboard = content, keyboard
        message.history.append(content.text)
        message.preview_off = bool((value_of(call, "link_preview_options") or {}).get("is_disabled"))
        return message.as_json()

    async def _edit_message_reply_markup(self, call: Call, files: dict[str, Upload]) -> Any:
        message = self._own_message(call, "edit")
        keyboard = _keyboard(call)
        if keyboard == message.keyboard:
            raise bad_request("message is not modified")
        message.keyboard = keyboard
        return message.as_json()

    async def _delete_message(self, call: Call, files: dict[str, Upload]) -> Any:
        self._own_message(call, "delete").deleted = True
        return True

    async def _send_chat_action(self, call: Call, files: dict[str, Upload]) -> Any:
        chat = self._open_chat(call)
        action = call.params.get("action")
        if action not in _ACTIONS:
            raise bad_request("wrong parameter action in request")
        chat.actions.append((action, self._thread(call, chat), call.at))
        return True

    async def _set_message_reaction(self, call: Call, files: dict[str, Upload]) -> Any:
        chat = self._open_chat(call)
        if chat.message(int(call.params.get("message_id", 0))) is None:
            raise bad_request("message to react not found")
        return True

    async def _answer_callback_query(self, call: Call, files: dict[str, Upload]) -> Any:
        press = self._world.queries.pop(str(call.params.get("callback_query_id")), None)
        if press is None:
            raise bad_request(_TOO_OLD)
        text = str(call.params.get("text", ""))
        if len(text) > 200:
            raise bad_request("MESSAGE_TOO_LONG")
        press.text = text
        press.alert = bool(value_of(call, "show_alert"))
        press.is_answered = True
        return True

    async def _set_my_commands(self, call: Call, files: dict[str, Upload]) -> Any:
        commands = value_of(call, "commands") or []
        for command in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", command.get("command", "")):
                raise bad_request("BOT_COMMAND_INVALID")
            if not 1 <= len(command.get("description", "")) <= 256:
                raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        if len(commands) > 100:
            raise bad_request("BOT_COMMANDS_TOO_MUCH")
        self._world.commands = commands
        return True

    async def _get_my_commands(self, call: Call, files: dict[str, Upload]) -> Any:
        return self._world.commands

    async def _get_webhook_info(self, call: Call, files: dict[str, Upload]) -> Any:
        return {
            "url": self._world.webhook,
            "has_custom_certificate": False,
            "pending_update_count": len(self.pending),
        }

    async def _delete_webhook(self, call: Call, files: dict[str, Upload]) -> Any:
        self._world.webhook = ""
        if value_of(call, "drop_pending_updates"):
            self.pending.clear()
        return True

    async def _get_file(self, call: Call, files: dict[str, Upload]) -> Any:
        file = self._world.files.get(str(call.params.get("file_id")))
        if file is None:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        if file.size > DOWNLOAD_BYTES:
            raise bad_request("file is too big")
        return {
            "file_id": file.id,
            "file_unique_id": f"u{file.id}",
            "file_size": file.size,
            "file_path": self._world.path_of(file),
        }

    def _open_chat(self, call: Call) -> Chat:
        """The chat that is named, if the bot may write in it."""
        chat = self._world.chats.get(call.chat)
        if chat is None:
            raise bad_request("chat not found")
        if chat.moved_to:
            raise ApiError(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                {"migrate_to_chat_id": int(chat.moved_to)},
            )
        if chat.closed:
            raise ApiError(403, f"Forbidden: {chat.closed}")
        return chat

    def _own_message(self, call: Call, doing: str) -> Message:
        message = self._open_chat(call).message(int(call.params.get("message_id", 0)))
        if message is None:
            raise bad_request(f"message to {doing} not found")
        if not message.from_bot:
            raise bad_request(f"message can't be {doing}ed")
        return message

    def _text(self, call: Call, text: str, entities: str) -> Formatted:
        return take(str(call.params.get(text, "")), value_of(call, entities), call.params.get("parse_mode"))

    def _thread(self, call: Call, chat: Chat) -> int | None:
        thread = call.params.get("message_thread_id")
        if thread is None:
            return None
        if int(thread) not in chat.topics:
            raise bad_request("message thread not found")
        return int(thread)


def _answered(call: Call, chat: Chat) -> int | None:
    reply = value_of(call, "reply_parameters")
    if not reply:
        return None
    if chat.message(int(reply["message_id"])) is not None:
        return int(reply["message_id"])
    if not reply.get("allow_sending_without_reply"):
        raise bad_request("message to be replied not found")
    return None


def _keyboard(call: Call) -> list[list[dict[str, Any]]]:
    rows: list[list[dict[str, Any]]] = (value_of(call, "reply_markup") or {}).get("inline_keyboard", [])
    for button in (button for row in rows for button in row):
        if not button.get("text"):
            raise bad_request("can't parse inline keyboard button: text is empty")
        if "callback_data" in button and not 1 <= len(button["callback_data"].encode()) <= 64:
            raise bad_request("BUTTON_DATA_INVALID")
    return rows


def value_of(call: Call, name: str) -> Any:
    """A parameter that is JSON, whether it came as text or as a value; None when it is not there."""
    value = call.params.get(name)
    return json.loads(value) if isinstance(value, str) else value
