"""Receipts that a model quotes in an answer: genuine ones are for the model and go, all others are marked."""

import re
from collections.abc import Callable

from zerobot.security.beginnings import beginnings

UNVERIFIED = "(unverified receipt)"

Genuine = Callable[[str], bool]
"""Whether a receipt is one that this process has made for what stands in the conversation."""

_MAC = r"[\w-]{20,64}"
_RECEIPT = rf"zb\d{{1,2}}-\d{{1,16}}-{_MAC}"
_BRACKETED = r"\[receipt: ?[\w.+/=-]{16,200}\]"
_QUOTED = re.compile(rf"{_BRACKETED}[ ]?|(?<![\w-]){_RECEIPT}", re.ASCII)
_OPEN = re.compile(rf"(?:{beginnings(_BRACKETED)}|(?<![\w-])(?:{beginnings(_RECEIPT)}))\Z", re.ASCII)


def check_receipts(text: str, genuine: Genuine) -> str:
    """Take the genuine receipts out of a text, and put a visible mark in place of any other.

    Args:
        text: What a model wrote.
        genuine: Says which are; it is asked for the bare receipt.
    """

    def checked(found: re.Match[str]) -> str:
        quoted = found[0]
        receipt = quoted.strip(" []").removeprefix("receipt:").strip()
        if genuine(receipt):
            return ""
        return UNVERIFIED + (" " if quoted.endswith(" ") else "")

    return _QUOTED.sub(checked, text)


class ReceiptStream:
    """The same for an answer that streams. An `OutputStream`; it holds back what may become a receipt, and no more."""

    def __init__(self, genuine: Genuine) -> None:
        self._genuine = genuine
        self._held = ""
        self._before = ""
        """The last character that was shown: within a word no receipt begins."""

    def feed(self, delta: str) -> str:
        """See `OutputStream`."""
        text = self._before + self._held + delta
        opened = _OPEN.search(text, len(self._before))
        end = len(text) if opened is None else opened.start()
        return self._show(text, end)

    def finish(self, *, cut: bool) -> str:  # noqa: ARG002 - a part of a receipt proves nothing and gives nothing away
        """See `OutputStream`."""
        text = self._before + self._held
        return self._show(text, len(text))

    def _show(self, text: str, end: int) -> str:
        shown = check_receipts(text[:end], self._genuine)[len(self._before) :]
        self._held = text[end:]
        self._before = text[end - 1 : end] if end else ""
        return shown
