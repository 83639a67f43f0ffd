"""Where the daemon may connect to for a model: URLs read by one strict parser, and the addresses behind them. Pure.

A name proves nothing: whoever owns it lets it point anywhere, and another place a second later. So `read_url` only
says what a URL means, and `closed` judges what a resolver answered; who connects must do so to what was judged
(`connections.py`).
"""

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from zerobot.security.visible import has_hidden

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL = 4_000
"""Characters."""
PORTS = {"http": 80, "https": 443}

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[1-9][0-9]{0,4}))?")
_NAME = re.compile(r"(?!.{254})(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

# What may stand in a path and a query besides letters and digits; all else is percent-encoded.
_PATH_SIGNS = "!$%&'()*+,-./:;=@_~[]|"

# Ports of other protocols, that a browser does not connect to either (Fetch standard, "port blocking"). Those below
# 1024 need no list: none but the two of the Web is allowed.
_OTHER_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)

_THIS_MACHINE = "this very machine"
_PRIVATE = "a private network"
_METADATA = "a cloud's own services"
_RESERVED = "a range that is no place on the Internet"

# IANA's registries of special-purpose addresses, all that is not globally reachable, and two services of clouds
# on addresses that look public. `ipaddress.is_global` knows neither these nor all ways to carry an IPv4 address.
_CLOSED_4 = tuple(
    (ipaddress.IPv4Network(network), why)
    for network, why in (
        ("0.0.0.0/8", _THIS_MACHINE),
        ("10.0.0.0/8", _PRIVATE),
        ("100.100.100.200/32", _METADATA),
        ("100.64.0.0/10", _PRIVATE),
        ("127.0.0.0/8", _THIS_MACHINE),
        ("168.63.129.16/32", _METADATA),
        ("169.254.0.0/16", "a link-local address, where clouds keep credentials"),
        ("172.16.0.0/12", _PRIVATE),
        ("192.0.0.0/24", _RESERVED),
        ("192.0.2.0/24", _RESERVED),
        ("192.31.196.0/24", _RESERVED),
        ("192.52.193.0/24", _RESERVED),
        ("192.88.99.0/24", _RESERVED),
        ("192.168.0.0/16", _PRIVATE),
        ("192.175.48.0/24", _RESERVED),
        ("198.18.0.0/15", _PRIVATE),
        ("198.51.100.0/24", _RESERVED),
        ("203.0.113.0/24", _RESERVED),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", _RESERVED),
    )
)

# Only global unicast is open; within it IETF protocols (Teredo among them), documentation, 6to4.
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_CLOSED_6 = tuple(
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"))
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


class AddressRefusedError(Exception):
    """The address may not be used; `str(error)` says why, in a clause that follows the address and a colon."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """What an http or https URL means, in the one form in which it is used."""

    scheme: str
    host: str
    """A name in ASCII and lower case without a dot at its end, or an IP address without brackets."""
    port: int
    target: str
    """Path and query, ASCII; begins with a slash. The fragment is nobody's business but the reader's."""

    @property
    def authority(self) -> str:
        """Host and port as they are written in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def site(self) -> str:
        """The URL without path and query."""
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return f"{self.site}{self.target}"


def read_url(text: str) -> WebAddress:
    """Read a URL.

    There is one reading or none: whatever other programs take in different ways (back-slashes, blanks, a name before
    the host, numbers that stand for an address) is refused, not mended.

    Raises:
        AddressRefusedError: It is no http or https URL, or not written plainly.
    """
    _refuse_odd(text)
    found = _URL.fullmatch(text)
    scheme = found["scheme"].lower() if found else ""
    if found is None or scheme not in PORTS:
        raise AddressRefusedError("only URLs that begin with http:// or https:// can be fetched")
    authority = found["authority"]
    if "@" in authority:
        raise AddressRefusedError("a user name or a password before the host is not allowed")
    place = _AUTHORITY.fullmatch(authority)
    if place is None:
        raise AddressRefusedError("the host is missing or not written plainly")
    host = str(_read_ip(place["six"], 6)) if place["six"] else _read_name(place["name"])
    port = int(place["port"] or PORTS[scheme])
    _refuse_port(port)
    query = "" if found["query"] is None else "?" + quote(found["query"], safe=_PATH_SIGNS + "?")
    return WebAddress(scheme, host, port, quote(found["path"] or "/", safe=_PATH_SIGNS) + query)


def follow(base: WebAddress, location: str) -> WebAddress:
    """Where a redirect leads.

    Args:
        base: What was fetched.
        location: What the server said; may be relative.

    Raises:
        AddressRefusedError: It is not a URL that `read_url` takes, or leads from https to http.
    """
    _refuse_odd(location)
    try:
        there = read_url(location if _SCHEME.match(location) else urljoin(str(base), location))
    except ValueError as error:
        raise AddressRefusedError("it is not a URL") from error
    if base.scheme == "https" and there.scheme == "http":
        raise AddressRefusedError("it leads from https to plain http")
    return there


def ip_of(host: str) -> IPAddress | None:
    """The address that a host of a `WebAddress` is, None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def closed(address: IPAddress) -> str:
    """What an address leads to that nobody outside should reach, in words; empty when it is open.

    Open is what is globally reachable by the IANA registries, less what clouds keep for themselves. An IPv6 address
    that carries an IPv4 one is closed in every form but NAT64's, where it is as open as what it carries.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return next((why for network, why in _CLOSED_4 if address in network), "")
    if address.scope_id is not None:
        return "one link of this machine"
    if address in _NAT64:
        return closed(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    if address.is_loopback or address.is_unspecified:
        return _THIS_MACHINE
    if address not in _GLOBAL_6 or any(address in network for network in _CLOSED_6):
        return _PRIVATE if address.is_private else _RESERVED
    return _RESERVED if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP else ""


def _refuse_odd(text: str) -> None:
    if len(text) > MAX_URL:
        raise AddressRefusedError(f"it is longer than {MAX_URL} characters")
    if "\\" in text or any(ch.isspace() for ch in text) or has_hidden(text):
        raise AddressRefusedError("a URL holds no blanks, no back-slashes and no invisible characters")


def _refuse_port(port: int) -> None:
    if port > 65_535:
        raise AddressRefusedError("there is no such port")
    if port in _OTHER_PORTS or (port < 1_024 and port not in PORTS.values()):
        raise AddressRefusedError(f"port {port} is not one of the Web")


def _read_name(text: str) -> str:
    """A host that is no IPv6 address, in its one form."""
    name = (text if text.isascii() else _ascii_name(text)).lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        raise AddressRefusedError("the host is missing or not written plainly")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return str(_read_ip(name, 4))
    if len(labels) == 1:
        raise AddressRefusedError("a host without a dot is a name of a private network")
    return name


def _read_ip(text: str, version: int) -> IPAddress:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise AddressRefusedError("the IP address is not written plainly") from error
    if address.version != version:
        raise AddressRefusedError("the IP address is not written plainly")
    return address


def _ascii_name(text: str) -> str:
    """The form that the name service knows. Characters that would silently become others are refused."""
    import idna  # noqa: PLC0415 - 10 ms that hardly any URL needs

    name = text.lower()
    if unicodedata.normalize("NFKC", name) != name:
        raise AddressRefusedError("the host is written with characters that stand for others")
    try:
        return idna.encode(name.removesuffix("."), strict=True).decode("ascii")
    except idna.IDNAError as error:
        raise AddressRefusedError("the host is not a name that can exist") from error
