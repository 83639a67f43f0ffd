"""A Bot API server and a model server in one lean process, which note when everything happens.

Run by the benchmarks as `python -m benchmarks.doubles`; it prints its port, and is told what to do by `POST /control`.
"""

import asyncio
import json
import re
import sys
import time
from collections import deque
from functools import partial

from benchmarks.stage import Stage, Turn
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
_WORDS = "each of these words comes as a delta of its own and is shown to people while the answer grows "
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_STREAM_END = b"0\r\n\r\n"


def _event(data: object) -> bytes:
    line = b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(line), line)


def _delta(text: str) -> bytes:
    return _event({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]})


_USAGE = {"prompt_tokens": 12, "completion_tokens": 12, "total_tokens": 24}
_FINISH = (
    _event({"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    + _event({"id": "1", "choices": [], "usage": _USAGE})
    + _event(b"[DONE]")
    + _STREAM_END
)


class Doubles:
    """Both servers."""

    def __init__(self) -> None:
        self._stage = Stage(self._deliver)
        self._updates: deque[tuple[int, bytes, Turn]] = deque()
        self._next_update = 1
        self._next_message = 1
        self._poll: tuple[Connection, asyncio.TimerHandle] | None = None
        self._words = _WORDS.split()[:8]
        self._gap = 0.0
        self._strict = False
        self._called: dict[int, float] = {}
        self._loop = asyncio.get_running_loop()

    def handle(self, path: str, body: bytes, connection: Connection) -> bytes | None:
        """Answer a request."""
        if path == "/control":
            return self._control(json.loads(body))
        if path == "/v1/chat/completions":
            return self._complete(body, connection)
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

    # The Bot API.

    def _deliver(self, turn: Turn) -> None:
        person = {"id": turn.chat, "is_bot": False, "first_name": "Ann"}
        message = {
            "message_id": self._next_message,
            "date": int(time.time()),
            "chat": {"id": turn.chat, "type": "private", "first_name": "Ann"},
            "from": person,
            "text": f"qz{turn.number:06} what do you say?",
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
        turn = self._stage.turns[int(mark[1])] if mark else None
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
                self._stage.ended(turn)
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

    # The model.

    def _complete(self, body: bytes, connection: Connection) -> bytes | None:
        place = body.rfind(b"qz")
        turn = self._stage.turns[int(body[place + 2 : place + 8])]
        turn.asked = time.monotonic()
        pieces = [f"az{turn.number:06} ", *(f"{word} " for word in self._words), f"zz{turn.number:06}"]
        deltas = deque(map(_delta, pieces))
        if not self._gap:
            turn.first = turn.last = time.monotonic()
            return _STREAM_HEAD + b"".join(deltas) + _FINISH
        connection.answer(_STREAM_HEAD)
        self._stream(turn, deltas, connection, time.monotonic())
        return None

    def _stream(self, turn: Turn, deltas: deque[bytes], connection: Connection, due: float) -> None:
        """Write the next delta; the next one is due a gap after this one was, so that lateness does not add up."""
        now = time.monotonic()
        turn.first = turn.first or now
        connection.answer(deltas.popleft())
        if deltas:
            due += self._gap
            self._loop.call_at(due, partial(self._stream, turn, deltas, connection, due))
        else:
            turn.last = now
            connection.answer(_FINISH)

    # The benchmark.

    def _control(self, order: dict[str, object]) -> bytes:
        def number(key: str) -> int:
            return int(str(order[key]))

        match order["do"]:
            case "model":
                self._gap = float(str(order["gap"]))
                count = number("deltas") - 2
                self._words = (_WORDS.split() * (count // 10 + 1))[:count]
            case "strict":
                self._strict = True
            case "say":
                for place in range(number("turns")):
                    chat = number("first_chat") + place % number("chats")
                    self._loop.call_later(place * float(str(order["gap"])), self._stage.say, chat)
            case "keep_busy":
                self._stage.keep_busy(number("chats"), number("at_once"), number("turns"))
            case "ended":
                return answer_json(b"%d" % self._stage.finals)
            case "records":
                return answer_json(json.dumps(self._stage.records(number("begin"))).encode())
        return answer_json(b"{}")


async def main() -> None:
    """Serve until the benchmark closes our standard input."""
    loop = asyncio.get_running_loop()
    doubles = Doubles()
    server = await loop.create_server(lambda: Connection(doubles.handle), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
