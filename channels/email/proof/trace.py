"""Which fields of a mail our own servers wrote, and how it came to them; pure.

Each server puts its fields above those that a mail already has (RFC 5321, section 4.4), so a header is a pile: the
topmost fields are of the server that keeps the mailbox, and somewhere below begins what the mail brought along, in
which everybody can write whatever he likes, in our servers' names too. The *border* is the `Received` of the one of our
servers that took the mail from somebody else. What stands above it is ours. What stands below is not, even directly
below: there our server's own results, where it writes them after its `Received`, look like forged ones.

The walk goes down from the top. The topmost `Received` is ours, since nobody else can write into the mailbox; and each
next one is ours if the one above it says that the mail came from one of our own:

- by LMTP (RFC 2033), over which a mail is handed to the place where it is kept, never from outside;
- from nowhere: no `from`, and no word of somebody who handed it in (Gmail's inner servers, the aliases of Postfix);
- from an address that the owner has named as his own (`trusted_relays`).

Every other `Received` is the border: one of a strange address, of an authenticated client, of a local program, of a
protocol that is not known here, or one that can't be read. Names do not count, whatever the ids that are trusted: a
client says its own name. Loopback and private addresses do not count by themselves: behind a proxy or a container's
network everybody comes from there, and so do other users of the machine.

Where results stand, as seen (Postfix with OpenDKIM and OpenDMARC) or as mails show it:

- Postfix with filters (OpenDKIM, OpenDMARC): directly above its own `Received`, often below one of Dovecot's LMTP:
  counts.
- Gmail: `Authentication-Results` below its `Received` does not count, but the same in `ARC-Authentication-Results`
  above it does.
- Fastmail: below several of its own `Received`: counts once their addresses are trusted relays.
- Exchange Online: no authserv-id, which RFC 8601 demands, and its inner servers have public addresses; use the check of
  signatures.

So the cost is that results of servers that write them otherwise are not seen; the log and `zerobot doctor` say so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from channels.email.mail import Mail
from channels.email.reading.comments import end_of_comment

Network = IPv4Network | IPv6Network

_LONGEST = 8_192
"""Characters of a `Received` that is read."""
_CLAUSES = frozenset({"from", "by", "via", "with", "id", "for", "tls"})
"""RFC 5321, section 4.4, and Exim's word for the cipher."""
_WITHIN = frozenset({"", "smtp", "esmtp", "esmtps", "utf8smtp", "utf8smtps"})
"""Protocols by which servers hand mail to one another: https://www.iana.org/assignments/mail-parameters."""
_SUBMITTED = frozenset({"esmtpa", "esmtpsa", "utf8smtpa", "utf8smtpsa"})
"""Protocols of a client that has logged in (RFC 3848, RFC 6531)."""
_PEER = re.compile(r"(?:\S+\s+)?\[(?:IPv6:)?([0-9A-Fa-f:.]{2,45})\](?:\s[^\[\]]*)?", re.IGNORECASE)
_ACCOUNT = re.compile(r"Authenticated sender: (\S+)")
"""Postfix, with `smtpd_sasl_authenticated_header`."""
_WORD = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|[^\s;()"]+')
_LOCAL = re.compile(r"(?<![\w-])from\b", re.IGNORECASE)
"""In a comment of a `Received` without `from`: a program or a user of the machine handed the mail in (Postfix,
sendmail)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One `Received` field; all empty when it can't be read."""

    host: str = ""
    """Who wrote it (`by`), in lower case."""
    named: bool = False
    """Whether it says from whom."""
    peer: IPv4Address | IPv6Address | None = None
    """The address from which the connection came, where the server tells it in the usual form."""
    protocol: str = ""
    """`esmtps`, in lower case."""
    local: bool = False
    """Whether a program or a user of the machine handed the mail in."""
    account: str = ""
    """Who had logged in, in lower case, where the server tells it (Postfix)."""

    @property
    def submitted(self) -> bool:
        """Whether it came from an account of the server: a client that had logged in, or a user of the machine."""
        return self.protocol in _SUBMITTED or self.local

    def is_handed_on(self, relays: tuple[Network, ...]) -> bool:
        """Whether the mail came from one of our own servers."""
        if not self.host or self.submitted or self.account:
            return False
        if self.protocol.removeprefix("utf8").startswith("lmtp"):
            return True
        if self.protocol not in _WITHIN:
            return False
        if not self.named:
            return True
        return self.peer is not None and any(self.peer in network for network in relays)


@dataclass(frozen=True, slots=True)
class Trace:
    """What a mail's header says of its way."""

    own: tuple[tuple[str, str], ...]
    """The fields that our own servers wrote, topmost first."""
    border: Hop | None
    """How it came to them; None: no field says so, and `own` is the whole header.

    A server that takes a mail over the network writes a `Received` (RFC 5321, section 4.4). So this is a mail that
    somebody who may write into the mailbox put there, or of servers that remove those fields against the rule.
    """


def trace_of(mail: Mail, relays: tuple[Network, ...] = ()) -> Trace:
    """Find the fields of our own servers: see the top of this file for the rule.

    Args:
        mail: As it lies in the mailbox.
        relays: The addresses from which our own servers hand mail to one another.
    """
    for index, (name, value) in enumerate(mail.fields):
        if name == "received":
            hop = read_hop(value)
            if not hop.is_handed_on(relays):
                return Trace(mail.fields[:index], hop)
    return Trace(mail.fields, None)


def read_hop(value: str) -> Hop:
    """Read the value of a `Received` field; what is not of the usual form is an empty hop."""
    if len(value) > _LONGEST:
        return Hop()
    clauses = _clauses(value)
    if clauses is None or "by" not in clauses:
        return Hop()
    words = {key: held[0] for key, held in clauses.items()}
    told = [comment for _, comments in clauses.values() for comment in comments]
    of_client = clauses["from"][1] if "from" in clauses else []
    # A client says its name, and somebody else's address could be part of that: exactly one comment has an address.
    peers = [comment for comment in of_client if "[" in comment]
    protocol = words.get("with", "").lower()
    accounts = [match[1] for comment in of_client if (match := _ACCOUNT.fullmatch(comment))]
    return Hop(
        host=words["by"].lower(),
        named="from" in words,
        peer=_address(peers[0]) if len(peers) == 1 else None,
        protocol=protocol,
        local=protocol == "local" or ("from" not in words and any(_LOCAL.search(comment) for comment in told)),
        account=" ".join(accounts).lower(),
    )


def _clauses(value: str) -> dict[str, tuple[str, list[str]]] | None:
    """The clauses of a `Received` before its date: each one's word, and the comments behind it; of "" those before all.

    Returns:
        None: they are not pairs of a known keyword and one word, or one comes twice.
    """
    comments: list[str] = []
    found = {"": ("", comments)}
    keyword, at = "", 0
    while at < len(value) and value[at] != ";":
        if value[at] == "(":
            end = end_of_comment(value, at)
            if end is None:
                return None
            comments.append(" ".join(value[at + 1 : end - 1].split()))
            at = end
            continue
        match = _WORD.match(value, at)
        if match is None:
            return None
        at = match.end()
        word = match[0]
        if word.isspace():
            continue
        if keyword:
            comments = []
            found[keyword] = (word, comments)
            keyword = ""
        elif word.lower() in _CLAUSES and word.lower() not in found:
            keyword = word.lower()
        else:
            return None
    return None if keyword else found


def _address(comment: str) -> IPv4Address | IPv6Address | None:
    match = _PEER.fullmatch(comment)
    try:
        return ip_address(match[1]) if match else None
    except ValueError:
        return None
