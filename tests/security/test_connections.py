"""The guard of outgoing connections, over an Internet of paper and over real sockets."""

import asyncio
import ipaddress
import socket

import httpcore
import httpx
import pytest

from tests.tools.internet import Internet
from tests.tools.loopback import answers, served
from zerobot.config.schema import Settings
from zerobot.daemon.http import HttpClients, configured_hosts
from zerobot.security.connections import ClosedAddressError, GuardedConnections, look_up

PUBLIC = "93.184.216.34"


async def test_a_name_is_looked_up_once_and_connected_to_as_judged() -> None:
    """DNS that answers differently the second time gets no second time."""
    internet = Internet({"a.test": [[PUBLIC], ["127.0.0.1"]]})
    await internet.guard.connect_tcp("a.test", 80)
    assert internet.looked_up == ["a.test"]
    assert internet.connected == [(PUBLIC, 80)]
    with pytest.raises(ClosedAddressError, match="this very machine"):
        await internet.guard.connect_tcp("a.test", 80)
    assert internet.connected == [(PUBLIC, 80)]


async def test_one_closed_answer_closes_the_name() -> None:
    """A name that leads to a public and to a private address is refused, whichever comes first."""
    internet = Internet({"a.test": [[PUBLIC, "10.0.0.1"]], "b.test": [["fd00::1", PUBLIC]]})
    for name in ("a.test", "b.test"):
        with pytest.raises(ClosedAddressError, match="a private network"):
            await internet.guard.connect_tcp(name, 443)
    assert internet.connected == []


async def test_the_next_address_is_tried() -> None:
    """One dead address of a name does not make it unreachable; all dead ones do."""
    internet = Internet({"a.test": [["2606:2800::1", PUBLIC]]})
    internet.dead.add("2606:2800::1")
    await internet.guard.connect_tcp("a.test", 80)
    assert internet.connected == [("2606:2800::1", 80), (PUBLIC, 80)]
    internet.dead.add(PUBLIC)
    with pytest.raises(httpcore.ConnectError, match="nobody there"):
        await internet.guard.connect_tcp("a.test", 80)


async def test_no_such_name_is_an_ordinary_error() -> None:
    """It says which name."""
    with pytest.raises(httpcore.ConnectError, match=r"the name nothere\.test cannot be found"):
        await Internet().guard.connect_tcp("nothere.test", 80)


async def test_a_name_service_that_hangs_is_given_up() -> None:
    """The time to connect includes the look-up."""

    async def never(_host: str, _port: int) -> list[ipaddress.IPv4Address]:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(httpcore.ConnectTimeout):
        await GuardedConnections(resolve=never).connect_tcp("a.test", 80, timeout=0.01)


async def test_the_system_resolver_reads_odd_numbers_and_its_answer_is_judged() -> None:
    """What no parser of ours takes for an address is one to the system; the guard judges the answer."""
    assert await look_up("2130706433", 80) == (ipaddress.IPv4Address("127.0.0.1"),)
    with pytest.raises(ClosedAddressError):
        await GuardedConnections().connect_tcp("0x7f.1", 80)


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing; it only chooses the address that would be sent from.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


async def test_a_public_address_of_this_very_machine_is_closed() -> None:
    """Services that listen on all addresses are behind the machine's own public address too."""
    own = _own_address()
    if own.startswith("127."):
        pytest.skip("this machine has loopback only")

    async def here(_host: str, _port: int) -> list[ipaddress.IPv4Address]:
        return [ipaddress.IPv4Address(own)]

    listening = await asyncio.start_server(lambda _reader, writer: writer.close(), own, 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(ClosedAddressError, match="this very machine"):
            await GuardedConnections(lambda _address: "", here).connect_tcp("a.test", port)


# -- the daemon's client ----------------------------------------------------------------------------------------------


def _settings(base_url: str) -> Settings:
    return Settings.model_validate({"providers": {"main": {"kind": "openai", "base_url": base_url}}})


async def test_the_client_reaches_private_hosts_only_where_the_owner_wrote_them() -> None:
    """A model server on loopback works by its configured address, and by no other port or name."""
    async with served(answers(b"hello")) as configured, served(answers(b"inside")) as other:
        async with HttpClients(_settings(f"http://127.0.0.1:{configured.port}/v1")) as http:
            answer = await http.guarded().get(f"http://127.0.0.1:{configured.port}/v1/models")
            assert answer.text == "hello"
            for place in (f"127.0.0.1:{other.port}", f"localhost:{configured.port}", f"[::1]:{configured.port}"):
                with pytest.raises(httpx.ConnectError, match="this very machine"):
                    await http.guarded().get(f"http://{place}/v1/models")
        assert len(configured.requests) == 1
        assert other.requests == []


async def test_the_client_takes_nothing_from_the_environment_and_follows_no_redirect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy of the environment gets nothing, and a key stays with its host."""
    async with served(answers(b"", "", "302 Found", "Location: http://169.254.169.254/")) as server:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        async with HttpClients(_settings(server.url(host="127.0.0.1"))) as http:
            assert (await http.guarded().get(server.url("/x", "127.0.0.1"))).status_code == 302


def test_the_configured_hosts_are_all_urls_of_the_settings() -> None:
    """Whatever table they stand in; what is no URL is none."""
    values = {
        "a": {"base_url": "http://Box:8080/v1", "odd": "http://[", "none": "https://"},
        "b": [{"api": "https://x.test"}, ("http://[::1]:9/",)],
        "c": "text with http://in.it",
    }
    assert set(configured_hosts(values)) == {("box", 8080), ("x.test", 443), ("::1", 9)}
