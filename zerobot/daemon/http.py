"""The HTTP clients: made when first asked for, since many setups need none, and kept alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    import httpx


class HttpClients:
    """Makes clients that take nothing from the environment and follow no redirects: a key stays with its host."""

    def __init__(self) -> None:
        self._guarded: httpx.AsyncClient | None = None

    def guarded(self) -> httpx.AsyncClient:
        """The client for providers and adapters."""
        if self._guarded is None:
            import httpx  # noqa: PLC0415 - 60 ms that a daemon without any network does not need

            limits = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=60.0)
            self._guarded = httpx.AsyncClient(
                trust_env=False, follow_redirects=False, limits=limits, timeout=httpx.Timeout(30.0)
            )
        return self._guarded

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._guarded is not None:
            await self._guarded.aclose()
