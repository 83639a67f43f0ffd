"""What the servers of Chat Completions want differently, by their addresses."""

import hashlib
import re
from dataclasses import dataclass

from zerobot.providers.address import host_of, is_azure

_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
_SIGNING_MODEL = re.compile(r"gemini-(?:[3-9]|\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a server wants to be asked."""

    limit_field: str = "max_tokens"
    """The limit of output tokens. OpenAI's newer models refuse this old name; most other servers know no other."""
    usage_option: bool = True
    """Whether it takes `stream_options`, without which most count nothing."""
    short_ids: bool = False
    """Call ids are nine letters or digits ("must be a-z, A-Z, 0-9, with a length of 9"); others are refused."""
    words_after_results: bool = False
    """People may not speak right after results ("Unexpected role 'user' after role 'tool'")."""
    signs_calls: bool = False
    """Its newer models refuse a call in the history without the signature that they gave it."""

    def call_id(self, wire_id: str) -> str:
        """Return a call's id in the form that the server takes; the same for the same id, always."""
        if not self.short_ids or _SHORT_ID.fullmatch(wire_id):
            return wire_id
        return hashlib.sha256(wire_id.encode("utf-8", "replace")).hexdigest()[:9]

    def wants_signatures(self, model: str) -> bool:
        """Whether calls of other models need a signature in their history for this one."""
        return self.signs_calls and bool(_SIGNING_MODEL.search(model))


_PLAIN = Dialect()
_OPENAI = Dialect(limit_field="max_completion_tokens")
_DIALECTS = {
    "api.openai.com": _OPENAI,
    "api.mistral.ai": Dialect(usage_option=False, short_ids=True, words_after_results=True),
    "codestral.mistral.ai": Dialect(usage_option=False, short_ids=True, words_after_results=True),
    "generativelanguage.googleapis.com": Dialect(signs_calls=True),
}


def dialect_of(base_url: str) -> Dialect:
    """Return the dialect of the server at an address; an unknown one is taken to be like most."""
    return _OPENAI if is_azure(base_url) else _DIALECTS.get(host_of(base_url), _PLAIN)
