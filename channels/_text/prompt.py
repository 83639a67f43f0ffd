"""The lines of an approval prompt, brought to a length that one message takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zerobot.core.approvals import PromptLine

# A line that has to share a message with all the others keeps at least this much of itself, in characters.
_SHORTEST = 40
# No platform's message is longer, so cutting may begin here.
_LONGEST = 4096


def as_text(lines: Sequence[PromptLine]) -> str:
    """All lines as plain text, for a file beside the message."""
    return "\n".join(line_text(line) for line in lines)


def line_text(line: PromptLine) -> str:
    """One line as plain text."""
    return f"{line.label}: {line.text}" if line.label else line.text


def shortened(lines: Sequence[PromptLine], fits: Callable[[Sequence[PromptLine]], bool], note: str) -> list[PromptLine]:
    """Cut the longest lines, as far as it takes for all of them to fit, and say where the rest is.

    Args:
        lines: Of the prompt; together they are too long.
        fits: Whether some lines fit into one message of the platform.
        note: Says where the whole request is.
    """
    end = PromptLine(kind="note", text=note)
    limit = min(max(len(line.text) for line in lines), _LONGEST)
    while True:
        kept = [_cut(line, limit) for line in lines]
        if fits([*kept, end]) or limit <= _SHORTEST:
            break
        limit = max(_SHORTEST, limit * 9 // 10)
    while kept and not fits([*kept, end]):
        kept.pop()
    return [*kept, end]


def _cut(line: PromptLine, limit: int) -> PromptLine:
    if len(line.text) <= limit:
        return line
    return PromptLine(kind=line.kind, label=line.label, text=line.text[: limit - 1] + "…")
