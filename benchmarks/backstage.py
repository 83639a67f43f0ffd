"""What every process of doubles has: a model that streams at a pace, and the orders of the benchmark."""

import asyncio
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.stage import Stage, Turn
from benchmarks.wire import Connection, Handler, answer_json

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


class Backstage:
    """The model server and the benchmark's own entrance.

    Args:
        deliver: Brings a new message to the bot; it has the words of `question`.
        keep_limits: Makes the platform refuse what is above its rates.
    """

    def __init__(self, deliver: Callable[[Turn], None], keep_limits: Callable[[], None]) -> None:
        self.stage = Stage(deliver)
        self.refused: Counter[str] = Counter()
        """Calls that were refused by rate, by what was called, whether or not people were to see anything by them."""
        self._keep_limits = keep_limits
        self._words = _WORDS.split()[:8]
        self._gap = 0.0
        self._loop = asyncio.get_running_loop()

    def handle(self, path: str, body: bytes, connection: Connection) -> bytes | None:
        """Answer a request of the model's asker or of the benchmark."""
        return self._control(json.loads(body)) if path == "/control" else self._complete(body, connection)

    def pieces(self, turn: Turn) -> list[str]:
        """The answer of a turn, in the deltas in which it comes."""
        return [f"az{turn.number:06} ", *(f"{word} " for word in self._words), f"zz{turn.number:06}"]

    def _complete(self, body: bytes, connection: Connection) -> bytes | None:
        place = body.rfind(b"qz")
        turn = self.stage.turns[int(body[place + 2 : place + 8])]
        turn.asked = time.monotonic()
        deltas = deque(map(_delta, self.pieces(turn)))
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

    def _control(self, order: dict[str, object]) -> bytes:
        def number(key: str) -> int:
            return int(str(order[key]))

        match order["do"]:
            case "model":
                self._gap = float(str(order["gap"]))
                count = number("deltas") - 2
                self._words = (_WORDS.split() * (count // 10 + 1))[:count]
            case "strict":
                self._keep_limits()
            case "say":
                for place in range(number("turns")):
                    chat = number("first_chat") + place % number("chats")
                    self._loop.call_later(place * float(str(order["gap"])), self.stage.say, chat)
            case "keep_busy":
                self.stage.keep_busy(number("chats"), number("at_once"), number("turns"))
            case "ended":
                return answer_json(b"%d" % self.stage.finals)
            case "refused":
                return answer_json(json.dumps(self.refused).encode())
            case "records":
                return answer_json(json.dumps(self.stage.records(number("begin"))).encode())
        return answer_json(b"{}")


def question(turn: Turn) -> str:
    """What somebody writes; by it the model knows whom it answers."""
    return f"qz{turn.number:06} what do you say?"


async def serve(handler: Handler, channel: Callable[[str], Mapping[str, object]]) -> None:
    """Serve until the benchmark closes our standard input, after telling it where, in one line of JSON.

    Args:
        handler: Answers.
        channel: Of our URL: the name of the kind, its table, the operator, for the daemon's configuration.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(handler), "127.0.0.1", 0, backlog=512)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    print(json.dumps({"url": url, "channel": channel(url)}), flush=True)
    try:
        await loop.run_in_executor(None, sys.stdin.read)
    finally:
        server.close()
