"""The guard of outgoing connections: it looks a name up once, judges every answer, and connects to what it judged.

It stands below everything that speaks HTTP, so that a redirect, a name that answers differently the second time, and
an odd notation have no other way. Imports httpcore: only what needs the network imports this.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore

from zerobot.security.addresses import IPAddress, closed

Judge = Callable[[IPAddress], str]
"""Says what an address leads to that must not be reached; "" when it may be connected to."""
Resolve = Callable[[str, int], Awaitable[Sequence[IPAddress]]]
"""Looks a host up, once a call; OSError when there is no such name."""

MAX_TRIED = 4
"""Addresses of one name that are tried, in the resolver's order."""
SECONDS_A_TRY = 5.0
"""For one address when there is another to try; many networks swallow IPv6."""


class ClosedAddressError(httpcore.ConnectError):
    """The place must not be connected to, and was not; `str(error)` says why, in a clause."""


class GuardedConnections(httpcore.AsyncNetworkBackend):
    """Opens connections for httpcore and httpx.

    Args:
        judge: Says which addresses are closed.
        resolve: Looks names up.
        trusted: (host, port) that the owner has configured: they may be private.
        sockets: Opens a connection to what was judged; None: the system does.
    """

    def __init__(
        self,
        judge: Judge = closed,
        resolve: Resolve | None = None,
        trusted: Iterable[tuple[str, int]] = (),
        sockets: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self.judge = judge
        self._resolve = resolve or look_up
        self._trusted = frozenset(trusted)
        self._sockets = sockets or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the method's shape is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to a host, if it may be connected to.

        Raises:
            ClosedAddressError: It may not; nothing was sent.
            httpcore.ConnectError: There is no such name, or nobody answers.
            httpcore.ConnectTimeout: It took too long.
        """
        options = tuple(socket_options or ())
        if (host, port) in self._trusted:
            return await self._sockets.connect_tcp(host, port, timeout, local_address, options)
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._judged(host, port)
                return await self._first(addresses, port, local_address, options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} does not answer") from error

    async def _judged(self, host: str, port: int) -> Sequence[IPAddress]:
        """The addresses of a host. One closed one closes all: an honest name does not lead to both."""
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name {host} cannot be found") from error
        if not addresses:
            raise httpcore.ConnectError(f"the name {host} cannot be found")
        for address in addresses:
            if why := self.judge(address):
                raise ClosedAddressError(f"it leads to {why}")
        return addresses[:MAX_TRIED]

    async def _first(
        self,
        addresses: Sequence[IPAddress],
        port: int,
        local_address: str | None,
        options: tuple[httpcore.SOCKET_OPTION, ...],
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that answers."""
        for address in addresses:
            last = address == addresses[-1]
            try:
                stream = await self._sockets.connect_tcp(
                    str(address), port, None if last else SECONDS_A_TRY, local_address, options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if last:
                    raise
                continue
            if _leads_home(stream, address):
                await stream.aclose()
                raise ClosedAddressError("it leads to this very machine")
            return stream
        raise AssertionError("there is at least one address")


async def look_up(host: str, port: int) -> Sequence[IPAddress]:
    """Ask the system's resolver.

    Raises:
        OSError: There is no such name, or nobody to ask.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ipaddress.ip_address(each[4][0]) for each in found))


def _leads_home(stream: httpcore.AsyncNetworkStream, address: IPAddress) -> bool:
    """Whether a public address is one of this machine's own: then both ends have it, and behind it are our services."""
    own = stream.get_extra_info("client_addr")
    return own is not None and not address.is_loopback and ipaddress.ip_address(own[0].partition("%")[0]) == address
