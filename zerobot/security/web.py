"""One GET from the Web, within bounds: which addresses, how many redirects, how much, how long."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ssl import SSLContext
from typing import TYPE_CHECKING

from zerobot.security.addresses import AddressRefusedError, WebAddress, follow, ip_of, read_url

if TYPE_CHECKING:
    import httpcore

    from zerobot.security.connections import GuardedConnections

REDIRECTS = frozenset({301, 302, 303, 307, 308})
ENCODINGS = {"": 0, "identity": 0, "gzip": 31, "x-gzip": 31, "deflate": 15}
"""Of a body, and what zlib calls their format."""


class WebError(Exception):
    """The page could not be had; `str(error)` is a sentence for the model.

    Attributes:
        quotes: Whether words of the server's own are in it.
    """

    def __init__(self, text: str, *, quotes: bool = False) -> None:
        super().__init__(text)
        self.quotes = quotes


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLimits:
    """What one fetch may take."""

    seconds: float = 30.0
    """In all, redirects included."""
    idle_seconds: float = 10.0
    """For one read, and for a connection."""
    bytes: int = 5_000_000
    """Of the body, as it came and as it is after decompression; what comes later is not read."""
    redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAnswer:
    """What a server said in the end."""

    address: WebAddress
    """Where it came from, after all redirects."""
    status: int
    content_type: str
    """The header as it came."""
    data: bytes
    complete: bool
    """Whether `data` is all of the body."""


class WebReader:
    """Fetches. Keeps no connection, no cookie and nothing else from one fetch to the next.

    Args:
        limits: Of each fetch.
        connections: Connects where it may; None: to all that is public.
        tls: Whom to trust; None: whom the daemon's other connections do.
    """

    def __init__(
        self,
        limits: WebLimits | None = None,
        connections: "GuardedConnections | None" = None,
        tls: SSLContext | None = None,
    ) -> None:
        self._limits = limits or WebLimits()
        self._connections = connections
        self._tls = tls

    @property
    def seconds(self) -> float:
        """How long a fetch can take."""
        return self._limits.seconds

    def address(self, url: str) -> WebAddress:
        """Read a URL; nothing is looked up.

        Raises:
            AddressRefusedError: It is no URL that may be fetched, as far as it can be told from its text.
        """
        return self._checked(read_url(url))

    async def get(self, address: WebAddress) -> WebAnswer:
        """Fetch what an address leads to.

        Raises:
            WebError: It cannot be had, or leads to where nobody may go.
        """
        import httpcore  # noqa: PLC0415 - a daemon that fetches nothing does not need it

        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._follow(address)
        except TimeoutError as error:
            raise WebError(f"It took longer than {self._limits.seconds:g} seconds and was given up.") from error
        except httpcore.TimeoutException as error:
            raise WebError("The server does not answer in time.") from error
        except httpcore.ConnectError as error:
            raise WebError(f"It cannot be connected to: {error}.") from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            text = f"The server broke off or answers with something that is not HTTP ({error})."
            raise WebError(text, quotes=True) from error

    async def _follow(self, address: WebAddress) -> WebAnswer:
        for _ in range(self._limits.redirects + 1):
            async with self._response(address) as response:
                headers = dict(reversed([(name.lower(), value) for name, value in response.headers]))
                location = headers.get(b"location")
                if response.status not in REDIRECTS or location is None:
                    return await self._answer(address, response, headers)
            address = self._redirected(address, location)
        raise WebError(f"It redirects more than {self._limits.redirects} times.")

    def _redirected(self, address: WebAddress, location: bytes) -> WebAddress:
        shown = location.decode("utf-8", "replace")
        try:
            return self._checked(follow(address, shown.strip(" \t")))
        except AddressRefusedError as error:
            text = f"It redirects to {shown!r:.500}, and there nothing may be fetched: {error}."
            raise WebError(text, quotes=True) from error

    def _checked(self, address: WebAddress) -> WebAddress:
        ip = ip_of(address.host)
        if ip is not None and (why := self._guard().judge(ip)):
            raise AddressRefusedError(f"it leads to {why}")
        return address

    def _guard(self) -> "GuardedConnections":
        if self._connections is None:
            from zerobot.security.connections import GuardedConnections  # noqa: PLC0415 - brings httpcore

            self._connections = GuardedConnections()
        return self._connections

    @asynccontextmanager
    async def _response(self, address: WebAddress) -> AsyncIterator["httpcore.Response"]:
        """The beginning of an answer, on a connection of its own; the same few headers for every host."""
        import httpcore  # noqa: PLC0415

        if self._tls is None and address.scheme == "https":
            import httpx  # noqa: PLC0415 - for the certificates that it trusts

            self._tls = await asyncio.to_thread(httpx.create_ssl_context, trust_env=False)
        url = httpcore.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode(),
            port=address.port,
            target=address.target.encode(),
        )
        headers = [
            ("Host", address.authority),
            ("User-Agent", "zerobot"),
            ("Accept", "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.1"),
            ("Accept-Encoding", "gzip"),
        ]
        waits = dict.fromkeys(("connect", "read", "write", "pool"), self._limits.idle_seconds)
        async with (
            httpcore.AsyncConnectionPool(
                ssl_context=self._tls,
                max_keepalive_connections=0,
                network_backend=self._guard(),
            ) as pool,
            pool.stream("GET", url, headers=headers, extensions={"timeout": waits}) as response,
        ):
            yield response

    async def _answer(
        self, address: WebAddress, response: "httpcore.Response", headers: dict[bytes, bytes]
    ) -> WebAnswer:
        encoding = headers.get(b"content-encoding", b"").decode("latin-1").strip().lower()
        if encoding not in ENCODINGS:
            raise WebError(f"The server packs its answer as {encoding!r:.40}, which was not asked for.", quotes=True)
        body = _Body(self._limits.bytes, ENCODINGS[encoding])
        async for piece in response.aiter_stream():
            if not body.take(piece):
                break
        return WebAnswer(
            address=address,
            status=response.status,
            content_type=headers.get(b"content-type", b"").decode("latin-1"),
            data=bytes(body.data),
            complete=body.complete,
        )


class _Body:
    """Collects a body, unpacked, up to a limit; no piece is unpacked further than that."""

    def __init__(self, limit: int, wbits: int) -> None:
        self.data = bytearray()
        self.complete = True
        self._limit = limit
        self._came = 0
        self._unpack = zlib.decompressobj(wbits) if wbits else None

    def take(self, piece: bytes) -> bool:
        """Take a piece; False when no more is wanted."""
        self._came += len(piece)
        room = self._limit - len(self.data)
        # One byte more than there is room for tells whether something is left out.
        unpacked = self._unpacked(piece, room + 1)
        self.data += unpacked[:room]
        if len(unpacked) > room or self._came > self._limit:
            self.complete = False
        return self.complete

    def _unpacked(self, piece: bytes, at_most: int) -> bytes:
        if self._unpack is None:
            return piece[:at_most]
        try:
            return self._unpack.decompress(piece, at_most)
        except zlib.error as error:
            raise WebError("The server's answer is packed, but it cannot be unpacked.") from error
