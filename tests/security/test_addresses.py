"""URLs and addresses: one strict reading, and nothing but the public Internet is open."""

import ipaddress
import socket
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zerobot.security.addresses import AddressRefusedError, WebAddress, closed, follow, ip_of, read_url

PRIVATE = st.sampled_from(
    ["127.0.0.1", "127.9.8.7", "10.1.2.3", "192.168.1.1", "172.16.5.4", "169.254.169.254", "100.100.100.200", "0.0.0.0"]
).map(ipaddress.IPv4Address)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("HTTPS://Example.TEST:443", "https://example.test/"),
        ("http://example.test.:8080/a?b#c", "http://example.test:8080/a?b"),
        ("https://müller.test/größe?q=ü", "https://xn--mller-kva.test/gr%C3%B6%C3%9Fe?q=%C3%BC"),
        ("https://[2606:2800:0:0::1]/", "https://[2606:2800::1]/"),
        ("https://example.test?x=1", "https://example.test/?x=1"),
        ("https://example.test/a%20b%zz", "https://example.test/a%20b%zz"),
        ('https://example.test/<">', "https://example.test/%3C%22%3E"),
    ],
)
def test_a_url_has_one_form(text: str, meant: str) -> None:
    """What is fetched, and what the operator sees in the description, is the plain form; it reads as itself."""
    assert str(read_url(text)) == meant
    assert read_url(meant) == read_url(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ftp://example.test/", "only URLs that begin with"),
        ("https://a@example.test/", "user name"),
        ("https://example.test:22/", "port 22"),
        ("https://localhost/", "without a dot"),
        ("https://127.1/", "not written plainly"),
        ("https://example.test\\@127.0.0.1/", "back-slashes"),
        ("https://ⓛocalhost.test/", "stand for others"),
        ("https://" + "a" * 5_000, "longer than"),
    ],
)
def test_a_refusal_says_why(text: str, why: str) -> None:
    """The model and the operator read what is wrong with a URL, in a clause."""
    with pytest.raises(AddressRefusedError, match=why):
        read_url(text)


# -- no form of a private address gets through ------------------------------------------------------------------------


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A private IPv4 address in one of the ways in which some program would read it."""
    address = draw(PRIVATE)
    parts = draw(st.integers(1, 4))
    octets = list(address.packed)
    values = [*octets[: parts - 1], int.from_bytes(bytes(octets[parts - 1 :]), "big")]
    write = st.sampled_from(["{}", "0{:o}", "{:#x}", "0X{:X}", "0x{:08x}"])
    host = ".".join(draw(write).format(value) for value in values)
    dots = draw(st.sampled_from([".", "。", "．", "｡"]))
    shifted = draw(st.sampled_from([0, 0xFEE0]))
    digits = "".join(chr(ord(ch) + shifted) if ch.isdigit() else ch for ch in host)
    return digits.replace(".", dots) + draw(st.sampled_from(["", "."]))


@st.composite
def carried(draw: st.DrawFn) -> str:
    """An IPv6 address that carries a private IPv4 one."""
    four = draw(PRIVATE)
    number = int(four)
    forms = [
        number,
        0xFFFF << 32 | number,
        0xFFFF << 48 | number,
        0x64FF9B << 96 | number,
        0x2002 << 112 | number << 80,
        0x2001 << 112 | 0x4136E378 << 64 | number ^ 0xFFFFFFFF,
        0x2606_2800 << 96 | 0x5EFE << 32 | number,
    ]
    six = ipaddress.IPv6Address(draw(st.sampled_from(forms)))
    return f"[{draw(st.sampled_from([six.compressed, six.exploded, six.compressed.upper()]))}]"


@given(host=spellings() | carried(), before=st.sampled_from(["", "example.test@", "a:b@", "example.test\\@"]))
@example(host="0", before="")
@example(host="[::ffff:127.0.0.1]", before="")
def test_no_spelling_of_a_private_address_is_fetched(host: str, before: str) -> None:
    """Decimal, octal, hexadecimal, in fewer parts, in other digits, carried by IPv6: refused or seen through."""
    try:
        address = read_url(f"http://{before}{host}/")
    except AddressRefusedError:
        return
    ip = ip_of(address.host)
    assert ip is not None
    assert closed(ip)


@given(st.text(alphabet="01279xXabf.:[]%@/\\?#。①\u00ad\n -", max_size=24))
@example("1.1.1.1 &@2.2.2.2# @127.0.0.1")
@example("127.0.0.1:80:80")
@example("a.b:8080?@c.d")
def test_other_programs_read_the_same_in_what_is_taken(text: str) -> None:
    """Host and port of what is taken are the same to urllib and httpx, and no name is a number to the system."""
    try:
        address = read_url(f"http://{text}")
    except AddressRefusedError:
        return
    stdlib, client = urlsplit(f"http://{text}"), httpx.URL(str(address))
    assert (stdlib.hostname or "").removesuffix(".") == address.host or ":" in address.host
    assert (stdlib.port or 80) == address.port
    assert client.host == address.host
    assert (client.port or 80) == address.port
    if ip_of(address.host) is None:
        with pytest.raises(OSError, match="illegal IP address"):
            socket.inet_aton(address.host)


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_what_is_not_globally_reachable_is_closed(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """The table is at least as strict as the standard library's, which says nothing of use about NAT64."""
    if address in ipaddress.ip_network("64:ff9b::/96"):
        assert closed(address) == closed(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    elif not address.is_global or address.is_multicast or address.is_reserved:
        assert closed(address)


@pytest.mark.parametrize("text", ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_the_public_internet_is_open(text: str) -> None:
    """No false alarm, beside closed ranges too."""
    assert closed(ipaddress.ip_address(text)) == ""


def test_a_link_of_this_machine_is_closed() -> None:
    """A zone makes any IPv6 address a local matter."""
    assert closed(ipaddress.ip_address("2606:4700::1%eth0"))


# -- redirects --------------------------------------------------------------------------------------------------------

BASE = WebAddress("https", "example.test", 443, "/dir/page?x=1")


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/a", "https://example.test/a"),
        ("a", "https://example.test/dir/a"),
        ("?y", "https://example.test/dir/page?y"),
        ("//other.test/z", "https://other.test/z"),
        ("https://other.test:8443/z#f", "https://other.test:8443/z"),
        ("/größe", "https://example.test/gr%C3%B6%C3%9Fe"),
    ],
)
def test_a_redirect_is_read_from_where_it_was_said(location: str, leads_to: str) -> None:
    """Relative and whole locations lead where a browser would go."""
    assert str(follow(BASE, location)) == leads_to


@pytest.mark.parametrize(
    "location", ["http://example.test/", "file:///x", "//a@b.test/", "\\\\b.test", "//[x", "//[::1"]
)
def test_a_redirect_is_read_as_strictly(location: str) -> None:
    """A server cannot lead where a model could not; and nothing goes from https to plain http."""
    with pytest.raises(AddressRefusedError):
        follow(BASE, location)
