"""The daemon's own secrets in what a model wants to do: recognised, told by their names, never shown."""

import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator

from zerobot.security.redact import Redactor, forms_of, one_of

DIGEST_DIGITS = 8


class OwnSecrets:
    """Knows the configured secrets by their keys.

    Args:
        named: (key of the settings, value); what is too short to be told from ordinary text is not searched for.
        key: Of the digests. It stays with the daemon, so that a digest helps nobody to guess a short secret.
    """

    def __init__(self, named: Iterable[tuple[str, str]] = (), key: bytes = b"") -> None:
        # What two settings share is told by the first of them.
        self._names: dict[str, tuple[str, str]] = {}
        for name, secret in named:
            for form in forms_of(secret):
                self._names.setdefault(form, (name, _told(name, secret, key)))
        self._pattern: re.Pattern[str] | None = one_of(sorted(self._names, key=lambda form: (-len(form), form)))

    def named_in(self, value: object) -> tuple[str, ...]:
        """The keys of the secrets that stand anywhere in a JSON value, in any of their usual encodings."""
        if self._pattern is None:
            return ()
        found = (match[0] for text in _texts(value) for match in self._pattern.finditer(text))
        return tuple(dict.fromkeys(self._names[form][0] for form in found))

    def veil(self, text: str) -> str:
        """Put the key, the length and a digest of each secret in its place; what stands around it is kept."""
        return text if self._pattern is None else self._pattern.sub(lambda match: self._names[match[0]][1], text)


def without_secrets(redactor: Redactor, own: OwnSecrets) -> Callable[[str], str]:
    """What takes secrets out of texts. Its own the daemon tells by their keys, so they go before all are masked."""
    return lambda text: redactor.clean(own.veil(text))


def cleaned(value: object, clean: Callable[[str], str]) -> object:
    """A JSON value whose texts, keys included, went through `clean`; as deep as JSON is ever read here."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): cleaned(each, clean) for key, each in value.items()}
    if isinstance(value, list):
        return [cleaned(each, clean) for each in value]
    return value


def _told(name: str, secret: str, key: bytes) -> str:
    digest = hmac.new(key, secret.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:DIGEST_DIGITS]
    return f"[secret {name}, {len(secret)} characters, digest {digest}]"


def _texts(value: object) -> Iterator[str]:
    """All texts of a JSON value, keys included, and its numbers as they are written; not recursive, however deep."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            left += each
        else:
            yield json.dumps(each)
