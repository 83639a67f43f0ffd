"""A strict, scripted model server on the loopback interface: Chat Completions, Responses and Messages, streaming.

    async with ModelServer() as server:
        server.answers(calls("shell", id="c1", command="ls"), says("Done."))
        ...                                  # something asks server.openai_url or server.anthropic_url
        assert server.last_request.result_of("c1").code == "DENIED"

It answers from its script, in order: one answer a request. `when("weather", ...)` has a script of its own for
requests whose newest words contain a text (for conversations that run at once), `always(...)` answers when no script
has anything left. A request that the real APIs would refuse is refused with status 400; that, and a request nobody
wrote an answer for, fails the test at the end of the `async with` (or at `check()`).
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tests.platforms import model_wire as wire
from tests.platforms import model_wire_responses as wire_responses
from tests.platforms.model_script import Answer, Plays, Refuses, Step
from tests.platforms.model_seen import SeenRequest
from tests.platforms.model_strict import complaint_about_chat, complaint_about_messages
from tests.platforms.model_strict_responses import complaint_about_responses

KEY = "test-key-0123456789"
"""The key that the server takes unless it was given another one."""

_CHAT, _MESSAGES, _RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Protocol:
    """What differs between the protocols."""

    complaint: Callable[[Mapping[str, Any]], str | None]
    frames: Callable[[Step, str, Callable[[], str]], Iterator[wire.Frame]]
    late: Callable[[str], bytes]
    error: Callable[[int, str, str], dict[str, object]]
    id_prefix: str


_PROTOCOLS = {
    _CHAT: _Protocol(
        complaint=complaint_about_chat,
        frames=wire.chat_frames,
        late=wire.chat_late,
        error=wire.chat_error,
        id_prefix="call",
    ),
    _MESSAGES: _Protocol(
        complaint=complaint_about_messages,
        frames=wire.messages_frames,
        late=wire.messages_late,
        error=wire.messages_error,
        id_prefix="toolu",
    ),
    _RESPONSES: _Protocol(
        complaint=complaint_about_responses,
        frames=wire_responses.responses_frames,
        late=wire_responses.responses_late,
        error=wire.chat_error,
        id_prefix="call",
    ),
}


@dataclass(eq=False)
class _Script:
    """The answers, and who gets them."""

    queue: deque[Answer] = field(default_factory=deque)
    by_text: dict[str, deque[Answer]] = field(default_factory=dict)
    fallback: Answer | None = None

    def next_for(self, request: SeenRequest) -> Answer | None:
        """Take the answer for a request; None when there is none."""
        for text, queue in self.by_text.items():
            if queue and text in request.newest_text:
                return queue.popleft()
        return self.queue.popleft() if self.queue else self.fallback


class ModelServer:
    """The server; see the module. All of it runs in the test's event loop."""

    def __init__(
        self,
        *,
        key: str = KEY,
        models: tuple[str, ...] = ("m-1",),
        aliases: tuple[str, ...] = (),
        refusals_fail: bool = True,
    ) -> None:
        self.key = key
        self.requests: list[SeenRequest] = []
        """Every question for an answer, refused ones too; lists of models are not among them."""
        self.refusals: list[str] = []
        """Why requests were refused."""
        self.failures: list[str] = []
        """What makes `check()` fail."""
        self.connections = 0
        """How many connections were made."""
        self._models = {**dict.fromkeys(models, True), **dict.fromkeys(aliases, False)}
        self._refusals_fail = refusals_fail
        self._script = _Script()
        self._holding: deque[asyncio.Event] = deque()
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if error is None:
            self.check()

    @property
    def anthropic_url(self) -> str:
        """What `base_url` of kind anthropic should be."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def openai_url(self) -> str:
        """What `base_url` of kind openai or openai_responses should be."""
        return f"{self.anthropic_url}/v1"

    @property
    def last_request(self) -> SeenRequest:
        """The newest question."""
        return self.requests[-1]

    def answers(self, *answers: Answer) -> None:
        """Add answers to the script."""
        self._script.queue.extend(answers)

    def when(self, text: str, *answers: Answer) -> None:
        """Add answers for requests whose newest words (of a person, or of results) contain a text."""
        self._script.by_text.setdefault(text, deque()).extend(answers)

    def always(self, answer: Answer) -> None:
        """Give this answer whenever the scripts have none."""
        self._script.fallback = answer

    def check(self) -> None:
        """Raise AssertionError when a request was refused, or came without an answer in the script."""
        assert not self.failures, "\n".join(self.failures)

    async def until_requests(self, count: int) -> SeenRequest:
        """Wait until so many questions came; returns that last one."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    async def until_holding(self, count: int = 1) -> None:
        """Wait until so many answers are held back."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._holding) >= count)

    async def until_hung_up(self, request: SeenRequest) -> None:
        """Wait until the asker of a held answer has closed its connection."""
        async with self._changed:
            await self._changed.wait_for(lambda: request.hung_up)

    def release(self) -> None:
        """Let the answer that is held back longest go on."""
        self._holding.popleft().set()

    # Connections

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        except asyncio.CancelledError:
            # The test is over. Nobody awaits this task but us, and the stream machinery reports a cancelled one.
            return
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; whether another may follow on this connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = _parse_head(head)
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        path = target.partition("?")[0]
        if method == "GET" and path == "/v1/models":
            return await self._list_models(writer, headers)
        if method != "POST" or path not in _PROTOCOLS:
            return await _respond(writer, 404, {"error": {"message": f"Unknown request URL: {method} {target}"}})
        request, complaint = self._read(path, headers, raw)
        if complaint:
            await self._note(request, refusal=complaint[1])
            return await _respond(writer, complaint[0], self._error(path, *complaint))
        answer = self._script.next_for(request)
        await self._note(request)
        if answer is None:
            self.failures.append(f"no answer in the script for: {request.newest_text[:200]!r}")
            return await _respond(writer, 500, self._error(path, 500, "The script of the test is at its end."))
        return await self._answer(answer, request, reader, writer)

    async def _note(self, request: SeenRequest, refusal: str = "") -> None:
        async with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        if refusal:
            self.refusals.append(refusal)
            if self._refusals_fail:
                self.failures.append(f"a request was refused: {refusal}")

    def _read(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[SeenRequest, tuple[int, str] | None]:
        try:
            body: dict[str, Any] = json.loads(raw)
        except ValueError:
            return SeenRequest(path=path, headers=headers, body={}), (400, "We could not parse the JSON body.")
        request = SeenRequest(path=path, headers=headers, body=body)
        if refusal := self._refuse_credentials(path, headers):
            return request, refusal
        if headers.get("content-type", "").partition(";")[0] != "application/json":
            return request, (415, "Unsupported content type: use application/json")
        if words := _PROTOCOLS[path].complaint(body):
            return request, (400, words)
        if body["model"] not in self._models:
            return request, (404, f"The model `{body['model']}` does not exist or you do not have access to it.")
        return request, None

    def _refuse_credentials(self, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        if path == _MESSAGES:
            if headers.get("x-api-key") != self.key:
                return 401, "invalid x-api-key"
            if not headers.get("anthropic-version"):
                return 400, "anthropic-version: header is required"
        elif headers.get("authorization") != f"Bearer {self.key}":
            given = headers.get("authorization", "").removeprefix("Bearer ")
            return 401, f"Incorrect API key provided: {given}."
        return None

    async def _list_models(self, writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> bool:
        path = _MESSAGES if "x-api-key" in headers else _CHAT
        if refusal := self._refuse_credentials(path, headers):
            return await _respond(writer, refusal[0], self._error(path, *refusal))
        return await _respond(
            writer, 200, {"object": "list", "data": [{"id": name} for name, listed in self._models.items() if listed]}
        )

    def _error(self, path: str, status: int, message: str, kind: str = "") -> dict[str, object]:
        return _PROTOCOLS[path].error(status, message, kind)

    # Answers

    async def _answer(
        self, answer: Answer, request: SeenRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if isinstance(answer, Refuses):
            error = self._error(request.path, answer.status, answer.message or "refused by the script", answer.kind)
            body = answer.body if answer.body is not None else error
            return await _respond(writer, answer.status, body, headers=answer.headers)
        if isinstance(answer, Plays):
            return await self._play(answer, request, reader, writer)
        await _begin(writer, 200, "text/event-stream", {})
        return await self._stream(answer, request, reader, writer)

    async def _stream(
        self, step: Step, request: SeenRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        texts = 0
        held = False
        for number, frame in enumerate(self._frames(step, request)):
            # The first frame opens the message and shows nothing yet.
            if number and texts == step.drop_after:
                return False
            if number and texts == step.hold_after and not held:
                held = True
                await self._hold(request, reader)
            texts += frame.is_text
            await _chunk(writer, frame.data)
        if step.drop_after is not None:
            return False
        if step.stay_open:
            await _chunk(writer, _PROTOCOLS[request.path].late(request.model))
            await self._hold(request, reader)
        await _end(writer)
        return True

    def _frames(self, step: Step, request: SeenRequest) -> Iterator[wire.Frame]:
        protocol = _PROTOCOLS[request.path]
        number = len(self.requests)
        minted = iter(range(1000))
        return protocol.frames(step, request.model, lambda: f"{protocol.id_prefix}_{number}_{next(minted)}")

    async def _play(
        self, plays: Plays, request: SeenRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Write recorded bytes; the end of the connection is the end of the body, so a cut needs no pretence."""
        if plays.hold_before_headers:
            await self._hold(request, reader)
        head = {"content-type": plays.content_type, **plays.headers, "connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"HTTP/1.1 {plays.status} X\r\n{lines}\r\n".encode())
        for number, piece in enumerate(plays.pieces):
            if number == plays.hold_after:
                await self._hold(request, reader)
            await asyncio.sleep(plays.pause)
            writer.write(piece)
            await writer.drain()
        if plays.hold_after == len(plays.pieces):
            await self._hold(request, reader)
        return False

    async def _hold(self, request: SeenRequest, reader: asyncio.StreamReader) -> None:
        """Wait for `release()`, or for the asker to hang up."""
        gate = asyncio.Event()
        async with self._changed:
            self._holding.append(gate)
            self._changed.notify_all()
        waits = asyncio.create_task(gate.wait())
        hangs_up = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({waits, hangs_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waits.cancel()
            hangs_up.cancel()
            await asyncio.gather(waits, hangs_up, return_exceptions=True)
        if not gate.is_set():
            self._holding.remove(gate)
            async with self._changed:
                request.hung_up = True
                self._changed.notify_all()
            raise ConnectionResetError


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    return method, target, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _begin(writer: asyncio.StreamWriter, status: int, content_type: str, headers: Mapping[str, str]) -> None:
    extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(
        f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\n{extra}transfer-encoding: chunked\r\n\r\n".encode()
    )
    await writer.drain()


async def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _respond(
    writer: asyncio.StreamWriter,
    status: int,
    body: Mapping[str, object] | str,
    *,
    headers: Mapping[str, str] | None = None,
) -> bool:
    content_type = "text/html" if isinstance(body, str) and body.startswith("<") else "application/json"
    await _begin(writer, status, content_type, headers or {})
    text = body if isinstance(body, str) else json.dumps(body)
    if text:
        await _chunk(writer, text.encode())
    await _end(writer)
    return True
