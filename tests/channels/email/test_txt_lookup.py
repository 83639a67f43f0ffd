"""Keys from the DNS: the real library against a name server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from dns.asyncresolver import Resolver

from channels.email.proof.dkim_check import LookupFailedError, TxtLookup, txt_lookup

ZONE = {
    "s1._domainkey.good.test.": ['"v=DKIM1; k=rsa; " "p=AAAA"'],
    "two._domainkey.good.test.": ['"first"', '"second"'],
    "none._domainkey.good.test.": [],
}


class NameServer(asyncio.DatagramProtocol):
    """Answers from the zone; a name that begins with `broken` makes it fail."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to answer."""
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer one question."""
        query = dns.message.from_wire(data)
        name = query.question[0].name.to_text()
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        records = ZONE.get(name)
        if name.startswith("broken"):
            answer.set_rcode(dns.rcode.SERVFAIL)
        elif records is None:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif records:
            answer.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *records))
        self.transport.sendto(answer.to_wire(), addr)


@asynccontextmanager
async def lookups() -> AsyncIterator[TxtLookup]:
    """A lookup that asks our name server."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    resolver = Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], transport.get_extra_info("sockname")[1]
    try:
        yield txt_lookup(lambda: resolver)
    finally:
        transport.close()


async def test_the_strings_of_a_record_are_one_text() -> None:
    """Of several records the first one that the server gives counts."""
    async with lookups() as lookup:
        assert await lookup("s1._domainkey.good.test") == b"v=DKIM1; k=rsa; p=AAAA"
        assert await lookup("two._domainkey.good.test") in {b"first", b"second"}


async def test_a_name_without_a_record_has_an_empty_one() -> None:
    """Whether the name is there or not."""
    async with lookups() as lookup:
        assert await lookup("none._domainkey.good.test") == b""
        assert await lookup("s2._domainkey.good.test") == b""


@pytest.mark.parametrize("name", ["broken._domainkey.good.test", "a..b", "x" * 64 + ".test"])
async def test_no_answer_is_told_from_an_empty_one(name: str) -> None:
    """So that the mail is not refused for good."""
    async with lookups() as lookup:
        with pytest.raises(LookupFailedError):
            await lookup(name)


async def test_a_machine_without_name_servers_gets_no_answer() -> None:
    """Which is no fault of the mail."""
    with pytest.raises(LookupFailedError):
        await txt_lookup(lambda: Resolver("/nonexistent"))("s1._domainkey.good.test")
