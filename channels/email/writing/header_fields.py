"""How the fields of our mails are written: names and subjects as encoded words, ids one a line and never changed.

The standard library's own way of folding drops the quotes of a long name, so that a comma in it ends the address and
what follows is another one (CVE-2025-1795), and it writes an id of more than 78 characters as an encoded word, which no
mail program takes for an id. So the fields that hold words from outside are folded here.
"""

from __future__ import annotations

from email.header import Header
from email.headerregistry import Address
from email.policy import EmailPolicy
from email.utils import quote
from typing import Any

LINE = 76
"""Characters of a line, where words allow it (RFC 2047, section 2)."""
_IDS = frozenset({"message-id", "in-reply-to", "references"})
_LONGEST_WORD = 60
_ATOM = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/=?^_`{|}~ ")


class MailPolicy(EmailPolicy):
    """The policy of an `EmailMessage` that is handed to a server (RFC 5322, RFC 2047)."""

    def header_store_parse(self, name: str, value: Any) -> tuple[str, Any]:
        """Take a field as it is set; what looks like an encoded word in a subject is one to show, not to decode."""
        return (name, value) if name.lower() == "subject" else super().header_store_parse(name, value)

    def fold(self, name: str, value: Any) -> str:
        """Write one field, with its line ends."""
        kind = name.lower()
        if kind in _IDS:
            folded = f"{name}: " + "\r\n ".join(str(value).split())
        elif kind == "subject":
            folded = f"{name}: " + _words(str(value), name)
        elif hasattr(value, "addresses"):
            folded = f"{name}: " + ",\r\n ".join(mailbox(each) for each in value.addresses)
        else:
            return str(super().fold(name, value))
        return folded.rstrip(" ") + "\r\n"

    def fold_binary(self, name: str, value: Any) -> bytes:
        """Write one field as bytes; only an address may have letters beyond ASCII."""
        return self.fold(name, value).encode("utf-8" if self.utf8 else "ascii")


def mailbox(address: Address) -> str:
    """Write a mailbox (RFC 5322, section 3.4): the name is a phrase, a quoted string or encoded words."""
    name = address.display_name
    if not name:
        return address.addr_spec
    if not _is_plain(name):
        phrase = _words(name, "From")
    elif _ATOM.issuperset(name):
        phrase = name
    else:
        phrase = f'"{quote(name)}"'
    gap = "\r\n " if len(phrase.rpartition("\n")[2]) + len(address.addr_spec) + 3 > LINE else " "
    return f"{phrase}{gap}<{address.addr_spec}>"


def _words(text: str, field: str) -> str:
    """Write a text of a field: as it is where it can be, else as encoded words of at most 75 characters each."""
    charset = "us-ascii" if _is_plain(text) else "utf-8"
    return Header(text, charset, maxlinelen=LINE, header_name=field).encode(linesep="\r\n")


def _is_plain(text: str) -> bool:
    """Whether a text can stand as it is, and be folded at its blanks."""
    return text.isascii() and "=?" not in text and all(len(word) <= _LONGEST_WORD for word in text.split())
