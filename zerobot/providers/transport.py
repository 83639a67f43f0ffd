"""A question over HTTP: one request, one stream of answers, and an end in every case."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from typing import Protocol, cast

import httpx

from zerobot.core.clock import Clock
from zerobot.core.errors import CredentialError, ProviderError
from zerobot.core.model import Alive, ModelEvent
from zerobot.core.provider_kind import ProviderServices, ProviderSettings
from zerobot.providers.faults import broken, from_response, malformed
from zerobot.providers.sse import SseEvent, SseLimitError, SseParser
from zerobot.providers.visible import joined

BODY_LIMIT = 16 * 1024 * 1024
"""Bytes of an answer that does not come as a stream."""
STREAM_LIMIT = 64 * 1024 * 1024
"""Bytes of a stream: far more than any model writes, so that a server that never ends cannot fill our memory."""
ERROR_BODY_LIMIT = 64 * 1024
"""Bytes of a refusal that are read."""
TAIL = 2.0
"""Seconds to wait for a server's last words (usage) once the model has said why it stopped."""
LINGER = 0.02
"""Seconds to wait for the end of the HTTP answer behind the protocol's end, so that the connection can be kept."""


class Decoder(Protocol):
    """What a protocol makes of the events of one stream."""

    done: bool
    """The protocol's own end came; whatever follows is not read."""
    nearly_done: bool
    """The model has stopped; only the protocol's end is missing, or it is one that may be."""

    def feed(self, event: SseEvent) -> list[ModelEvent]:
        """Take one event.

        Raises:
            ProviderError: It tells of an error, or makes no sense.
        """
        ...

    def end(self) -> list[ModelEvent]:
        """Take the end of the stream; the last event returned is the answer.

        Raises:
            ProviderError: The answer is not whole.
        """
        ...


class Exchange:
    """Talks HTTP for one configured provider; retries nothing."""

    def __init__(self, provider: str, settings: ProviderSettings, services: ProviderServices) -> None:
        self._provider = provider
        self._secret = settings.key
        self._http = services.http()
        self._clock: Clock = services.clock
        # No limit on the whole: an active answer may take as long as it likes. `read` is the longest time without a
        # single byte, before the headers as well as between two pieces.
        self._timeout = httpx.Timeout(settings.idle_timeout, connect=settings.connect_timeout)

    async def stream(
        self, url: str, headers: Mapping[str, str], body: Mapping[str, object], decoder: Decoder
    ) -> AsyncGenerator[ModelEvent, None]:
        """Post a question and pass on what the decoder makes of the answer; closing this closes the connection.

        Raises:
            ProviderError: No whole answer came.
        """
        # Compressed pieces would come late: a compressor waits until it has enough.
        headers = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
            **headers,
        }
        async with self._open("POST", url, headers, body) as response:
            await self._demand_success(response)
            async with contextlib.aclosing(self._decoded(response, decoder)) as events:
                async for event in events:
                    yield event
            for event in decoder.end():
                yield event

    async def get_json(self, url: str, headers: Mapping[str, str]) -> bytes:
        """Fetch a small JSON document.

        Raises:
            ProviderError: The server refused or was not reached.
        """
        async with self._open("GET", url, headers, None) as response:
            await self._demand_success(response)
            return await _read(response.aiter_bytes(), BODY_LIMIT)

    @contextlib.asynccontextmanager
    async def _open(
        self, method: str, url: str, headers: Mapping[str, str], body: Mapping[str, object] | None
    ) -> AsyncIterator[httpx.Response]:
        """Open a request, and translate what the network does to it."""
        content = None if body is None else _json(body)
        try:
            async with self._http.stream(
                method,
                url,
                headers=dict(headers),
                content=content,
                timeout=self._timeout,
                follow_redirects=False,
            ) as response:
                yield response
        except (UnicodeEncodeError, httpx.LocalProtocolError) as error:
            # The only part of our requests that is not our own writing is the key. The error quotes it, so no `from`.
            setting = f"[providers.{self._provider}] api_key"
            words = f"{self._provider}: {setting} has characters that no key has ({type(error).__name__})"
            raise CredentialError(words, code="auth") from None
        except httpx.HTTPError as error:
            raise self._network_fault(error) from error
        except httpx.InvalidURL as error:
            raise self._bad_url("is no URL") from error

    async def _demand_success(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        if response.is_redirect:
            # Followed, the question would arrive without its body, or the key at a stranger's.
            raise self._bad_url("redirects to another address")
        body = await _read(response.aiter_bytes(), ERROR_BODY_LIMIT)
        raise from_response(
            self._provider,
            response.status_code,
            response.headers,
            body,
            now=self._clock.now(),
            secret=self._secret,
        )

    async def _next_piece(self, pieces: AsyncIterator[bytes], decoder: Decoder) -> bytes | None:
        """Wait for the next bytes; None at the end of the HTTP answer."""
        try:
            async with asyncio.timeout(TAIL if decoder.nearly_done else None):
                return await anext(pieces, None)
        except (TimeoutError, httpx.HTTPError):
            if decoder.nearly_done:
                # The model had stopped by itself; what is lost is a courtesy.
                return None
            raise

    async def _decoded(self, response: httpx.Response, decoder: Decoder) -> AsyncGenerator[ModelEvent, None]:
        """Decode the body up to the protocol's end, or to its own."""
        parser = SseParser()
        begun = False
        size = 0
        async with contextlib.aclosing(_pieces(response)) as pieces:
            while not decoder.done:
                piece = await self._next_piece(pieces, decoder)
                size += len(piece or b"")
                if size > STREAM_LIMIT:
                    raise ProviderError(
                        f"{self._provider}: a stream of more than {STREAM_LIMIT} bytes", code="stream_limit"
                    )
                if not begun and piece and (begin := piece.lstrip()):
                    begun = True
                    # The first byte tells more than the content type, which proxies get wrong in both directions.
                    if begin.startswith(b"<"):
                        raise malformed(self._provider, "a web page; check base_url")
                    if begin.startswith((b"{", b"[")):
                        whole = await _read(pieces, BODY_LIMIT, piece)
                        for event in decoder.feed(SseEvent("message", whole.decode("utf-8", "replace"))):
                            yield event
                        return
                for event in self._decode(parser, piece, decoder):
                    yield event
                if piece is None:
                    return
            await self._linger(pieces)

    def _decode(self, parser: SseParser, piece: bytes | None, decoder: Decoder) -> Iterator[ModelEvent]:
        """Decode one piece; bytes that show nothing still say that the server lives."""
        try:
            events = parser.end() if piece is None else parser.feed(piece)
        except SseLimitError as error:
            raise ProviderError(f"{self._provider}: {error}", code="stream_limit") from error
        quiet = True
        for event in events:
            try:
                made = decoder.feed(event)
            except ProviderError as error:
                if piece is None and error.code == "malformed":
                    if decoder.nearly_done:
                        # Only the protocol's end was cut; the model had stopped by itself.
                        return
                    raise broken(self._provider, "in the middle of an event") from error
                raise
            quiet = quiet and not made
            yield from made
            if decoder.done:
                return
        if quiet:
            yield Alive()

    async def _linger(self, pieces: AsyncIterator[bytes]) -> None:
        """Read past the end, if the server ends too: only then can the connection be used again."""
        try:
            async with asyncio.timeout(LINGER):
                async for _ in pieces:
                    pass
        except (TimeoutError, httpx.HTTPError):
            # A server that keeps its stream open, or breaks it after the end, costs us the connection and no more.
            return

    def _bad_url(self, what: str) -> ProviderError:
        return ProviderError(f"{self._provider}: [providers.{self._provider}] base_url {what}", code="bad_url")

    def _network_fault(self, error: httpx.HTTPError) -> ProviderError:
        """Translate a fault of the network; all may pass, so all may be tried again."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            what, code = "cannot be reached", "connect_failed"
        elif isinstance(error, httpx.TimeoutException):
            what, code = f"sent nothing for {self._timeout.read:g} seconds", "idle_timeout"
        elif isinstance(error, httpx.UnsupportedProtocol):
            return self._bad_url("is no http or https URL")
        else:
            what, code = f"broke the connection ({type(error).__name__})", "stream_broken"
        return ProviderError(f"{self._provider}: the server {what}", code=code, retryable=True)


def _json(body: Mapping[str, object]) -> bytes:
    """Write a body; a lone surrogate (from a file's name, say) must not make the whole history unsendable."""
    return joined(json.dumps(body, ensure_ascii=False, separators=(",", ":"))).encode()


async def _read(pieces: AsyncIterator[bytes], limit: int, begin: bytes = b"") -> bytes:
    """Gather a body, `begin` included, up to a limit in bytes."""
    body = bytearray(begin)
    async for piece in pieces:
        body += piece
        if len(body) > limit:
            break
    return bytes(body[:limit])


def _pieces(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    # httpx promises less than it gives: its iterator is a generator, which wants to be closed.
    return cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
