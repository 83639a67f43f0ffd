"""Where comments end in fields (RFC 5322, section 3.2.2): they nest; pure."""

from __future__ import annotations


def end_of_comment(text: str, at: int) -> int | None:
    """Find where a comment ends: brackets nest, and a backslash takes the next character's meaning.

    Args:
        text: The value of a field.
        at: Where its opening bracket stands.

    Returns:
        The position behind its closing bracket; None when it is never closed.
    """
    depth = 0
    while at < len(text):
        character = text[at]
        at += 2 if character == "\\" else 1
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return at
    return None
