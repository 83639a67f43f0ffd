"""The HTTP client: made when first asked for, since many setups need none, and kept alive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from types import TracebackType

    import httpx
    from pydantic import BaseModel

_PORTS = {"http": 80, "https": 443}


class HttpClients:
    """Makes the client that providers, adapters and plug-ins share.

    It takes nothing from the environment and follows no redirects: a key stays with its host. It connects to what is
    public, and to the hosts that the owner has written into the configuration, wherever they are.

    Args:
        settings: The configuration.
    """

    def __init__(self, settings: BaseModel) -> None:
        self._settings = settings
        self._guarded: httpx.AsyncClient | None = None

    def guarded(self) -> httpx.AsyncClient:
        """The client."""
        if self._guarded is None:
            self._guarded = _client(frozenset(configured_hosts(self._settings.model_dump())))
        return self._guarded

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._guarded is not None:
            await self._guarded.aclose()


def configured_hosts(value: object) -> Iterator[tuple[str, int]]:
    """The (host, port) of every http or https URL that stands as a value in settings, as plain data."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from configured_hosts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from configured_hosts(each)
    elif isinstance(value, str) and value.startswith(("http://", "https://")):
        try:
            parts = urlsplit(value)
            host, port = parts.hostname, parts.port or _PORTS[parts.scheme]
        except ValueError:
            return
        if host:
            yield host, port


def _client(trusted: frozenset[tuple[str, int]]) -> httpx.AsyncClient:
    import httpcore  # noqa: PLC0415 - with httpx 60 ms that a daemon without any network does not need
    import httpx  # noqa: PLC0415

    from zerobot.security.connections import GuardedConnections  # noqa: PLC0415

    context = httpx.create_ssl_context(trust_env=False)
    transport = httpx.AsyncHTTPTransport(verify=context, trust_env=False)
    # httpx has no public way to hand its pool a network backend.
    transport._pool = httpcore.AsyncConnectionPool(  # noqa: SLF001
        ssl_context=context,
        max_connections=None,
        max_keepalive_connections=64,
        keepalive_expiry=60.0,
        network_backend=GuardedConnections(trusted=trusted),
    )
    return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=httpx.Timeout(30.0))
