"""Texts that pose as something else when a model reads them: a fence of ours, or the protocol of tools."""

import unicodedata

from zerobot.security.visible import is_hidden

_MARKERS = (
    "recalled_memory",
    "[note by the system",
    "[receipt:",
    "```tool_call",
    "<tool",
    "</tool",
    "<function",
    "</function",
    "<invoke",
    "</invoke",
    "<parameter",
    "<system",
    "</system",
    "<think",
    "</think",
    "<|",
    "[inst]",
    "[/inst]",
    "<<sys>>",
    '"tool_calls"',
    '"tool_use"',
)
_PACKED = tuple("".join(marker.split()) for marker in _MARKERS)


def poses(text: str) -> bool:
    """Whether a text carries a marker, in whatever disguise: other case, look-alikes, hidden characters between."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = "".join(ch for ch in plain if not (is_hidden(ch) or ch.isspace()))
    return any(marker in plain for marker in _PACKED)
