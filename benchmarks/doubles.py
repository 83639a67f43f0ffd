"""A Bot API server and a model server in one lean process, which note when everything happens.

Run by the benchmarks as `python -m benchmarks.doubles`; it prints its URL, and is told what to do by `POST /control`.
"""

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import Mapping

from benchmarks.backstage import Backstage, question, serve
from benchmarks.stage import Turn
from benchmarks.wire import Connection, answer_json

_CHAT = re.compile(rb"(?:^|&)chat_id=(\d+)")
_MESSAGE = re.compile(rb"(?:^|&)message_id=(\d+)")
_OFFSET = re.compile(rb"(?:^|&)offset=(\d+)")
_TIMEOUT = re.compile(rb"(?:^|&)timeout=(\d+)")
_BEGIN_MARK = re.compile(rb"az(\d{6})")
_END_MARK = re.compile(rb"zz(\d{6})")
_UPDATES_A_POLL = 100
"""https://core.telegram.org/bots/api#getupdates"""
_CALL_SPACING = 1.0
"""Seconds between two messages or edits in a chat, where the platform's limit is kept."""


class Doubles:
    """Both servers."""

    def __init__(self) -> None:
        self._backstage = Backstage(self._deliver, self._keep_limits)
        self._updates: deque[tuple[int, bytes, Turn]] = deque()
        self._next_update = 1
        self._next_message = 1
        self._poll: tuple[Connection, asyncio.TimerHandle] | None = None
        self._strict = False
        self._called: dict[int, float] = {}
        self._loop = asyncio.get_running_loop()

    def handle(self, path: str, body: bytes, connection: Connection) -> bytes | None:
        """Answer a request."""
        if path in {"/control", "/v1/chat/completions"}:
            return self._backstage.handle(path, body, connection)
        method = path.rsplit("/", 1)[-1]
        match method:
            case "getUpdates":
                return self._get_updates(body, connection)
            case "sendMessage" | "editMessageText":
                return self._show(body)
            case "getMe":
                me = {"id": 1, "is_bot": True, "first_name": "Zero", "username": "zero_bot"}
                return answer_json(json.dumps({"ok": True, "result": me}).encode())
        return answer_json(b'{"ok":true,"result":true}')

    def _keep_limits(self) -> None:
        self._strict = True

    def _deliver(self, turn: Turn) -> None:
        person = {"id": turn.chat, "is_bot": False, "first_name": "Ann"}
        message = {
            "message_id": self._next_message,
            "date": int(time.time()),
            "chat": {"id": turn.chat, "type": "private", "first_name": "Ann"},
            "from": person,
            "text": question(turn),
        }
        update = json.dumps({"update_id": self._next_update, "message": message}).encode()
        self._updates.append((self._next_update, update, turn))
        self._next_update += 1
        self._next_message += 1
        if self._poll is not None:
            # After what else is said just now: a platform gives a poll all that it has.
            self._loop.call_soon(self._end_poll)

    def _get_updates(self, body: bytes, connection: Connection) -> bytes | None:
        offset = int(found[1]) if (found := _OFFSET.search(body)) else 0
        while self._updates and self._updates[0][0] < offset:
            self._updates.popleft()
        timeout = int(found[1]) if (found := _TIMEOUT.search(body)) else 0
        if self._updates or timeout == 0:
            return self._batch()
        self._poll = connection, self._loop.call_later(timeout, self._end_poll)
        return None

    def _end_poll(self) -> None:
        if self._poll is not None:
            connection, timer = self._poll
            self._poll = None
            timer.cancel()
            if connection.is_open:
                connection.answer(self._batch())

    def _batch(self) -> bytes:
        now = time.monotonic()
        batch = [self._updates[place] for place in range(min(len(self._updates), _UPDATES_A_POLL))]
        for _, _, turn in batch:
            turn.handed = turn.handed or now
        return answer_json(b'{"ok":true,"result":[%b]}' % b",".join(update for _, update, _ in batch))

    def _show(self, body: bytes) -> bytes:
        now = time.monotonic()
        mark = _BEGIN_MARK.search(body)
        chat = int(found[1]) if (found := _CHAT.search(body)) else 0
        turn = self._backstage.stage.turns[int(mark[1])] if mark else None
        if turn is not None:
            turn.calls += 1
        if self._strict and now - self._called.get(chat, 0.0) < _CALL_SPACING:
            if turn is not None:
                turn.refused += 1
            refusal = {"ok": False, "error_code": 429, "description": "Too Many Requests: retry after 1"}
            return answer_json(
                json.dumps(refusal | {"parameters": {"retry_after": 1}}).encode(), b"429 Too Many Requests"
            )
        self._called[chat] = now
        if turn is not None:
            turn.shown = turn.shown or now
            if not turn.final and _END_MARK.search(body):
                self._backstage.stage.ended(turn, now)
        edited = _MESSAGE.search(body)
        if edited is None:
            self._next_message += 1
        result = {
            "message_id": int(edited[1]) if edited else self._next_message - 1,
            "date": 1_700_000_000,
            "chat": {"id": chat, "type": "private", "first_name": "Ann"},
            "text": "shown",
        }
        return answer_json(json.dumps({"ok": True, "result": result}).encode())


async def main() -> None:
    """Serve until the benchmark closes our standard input."""
    await serve(Doubles().handle, _channel)


def _channel(url: str) -> Mapping[str, object]:
    table = {"bot_token": "1:benchmark", "api_base": url, "allowed_users": ["*"]}
    return {"name": "telegram", "table": table, "operator": "telegram:1"}


if __name__ == "__main__":
    asyncio.run(main())
