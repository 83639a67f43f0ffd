"""What a turn has said since its last settled message, put together from its events. Pure."""

from zerobot.core.events import (
    ApprovalsRequested,
    Final,
    StatusChanged,
    StepStarted,
    TextReset,
    TextShown,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEvent,
)
from zerobot.core.ids import CallId

_ACTIVE = frozenset("\\`*_[]<>~|&$")
"""Characters that mean something within a line of Markdown."""


class Segment:
    """The text of one message to be, and the line about what goes on meanwhile."""

    def __init__(self) -> None:
        self._steps: list[list[str]] = []
        self._tools: dict[CallId, str] = {}
        self._status = ""
        self.begun = False
        """Whether there was something to show."""
        self.ended = False
        """Whether nothing more comes: the turn paused, or has its final."""
        self.final: Final | None = None

    def take(self, event: TurnEvent) -> bool:
        """Take one event in.

        Returns:
            Whether there is something new to show.
        """
        match event:
            case StepStarted():
                self._steps.append([])
                return False
            case TextShown(text=text):
                self._current().append(text)
                self.begun = self.begun or bool(text.strip())
                return bool(text)
            case TextReset():
                self._current().clear()
            case ToolStarted(call=call, description=text) | ToolProgress(call=call, text=text):
                self._tools[call] = text
            case ToolFinished(call=call):
                self._tools.pop(call, None)
            case StatusChanged(text=text):
                self._status = text
                self.begun = self.begun or bool(text.strip())
            case ApprovalsRequested() | Final():
                self.ended = True
                self.final = event if isinstance(event, Final) else None
                return False
            case _:
                return False
        return True

    def text(self) -> str:
        """The steps' texts, a blank line between them."""
        texts = ("".join(pieces).strip() for pieces in self._steps)
        return "\n\n".join(text for text in texts if text)

    def shown(self) -> str:
        """What a draft shows: the text, and under it in italics what goes on. A tool alone is shown by typing signals.

        A status alone (the model is slow to answer) is shown: people wait for it, and nothing else tells them.
        """
        text = self.text()
        status = self._status or next(reversed(self._tools.values()), "") if text else self._status
        line = _italic(status)
        return "\n\n".join(part for part in (text, line) if part)

    def _current(self) -> list[str]:
        if not self._steps:
            self._steps.append([])
        return self._steps[-1]


def _italic(status: str) -> str:
    """One line of Markdown in which nothing of the status is read as Markdown."""
    line = " ".join(status.split())
    if not line:
        return ""
    escaped = "".join(f"\\{character}" if character in _ACTIVE else character for character in line)
    return f"_{escaped}_"
