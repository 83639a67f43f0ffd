"""How our own texts name the chat's commands: written with `/`, told as people can type them on a platform."""

import re

USUAL_PREFIX = "/"
_COMMAND = re.compile(r"(?<![^\s`])/(?=[a-z])")


def with_prefix(text: str, prefix: str) -> str:
    """Bring the commands in a text of ours into the form of a platform.

    Args:
        text: All of it ours, or a pattern before anybody else's words are put into it: those stay as they are.
        prefix: What commands begin with there; see `Capabilities`.
    """
    return text if prefix == USUAL_PREFIX else _COMMAND.sub(lambda _: prefix, text)
