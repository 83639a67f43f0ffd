"""Whether people have named a place in their own words (pure)."""

import re
from collections.abc import Iterable

_BEFORE = r"(?<![\w/.@-])"
_AFTER = r"""(?=[.,;:!?]?(?:[\s)\]>"'*_`]|\Z))"""
"""What may follow a place in a sentence. Anything else belongs to it, and names another place."""

_QUOTED = re.compile(r"^(?:>.*|\[In answer to .*:\])$", re.MULTILINE)
"""What somebody answers, as history keeps it above the answer, and mails too: it may be anybody's, also the model's."""


def is_named(place: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts has a place, whole and letter for letter, in other lines than those that are quoted.

    Args:
        place: As a call would use it: a URL with its path and query; empty: no place, which nobody can name.
        texts: What people wrote.
    """
    if not place:
        return False
    pattern = re.compile(_BEFORE + re.escape(place) + _AFTER)
    return any(pattern.search(_QUOTED.sub("", text)) for text in texts)
