"""What happens in a benchmark: turns, when each of their moments was, and which are still to come."""

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass

FIRST_CHAT = 10_001
"""A private chat has its person's id, which is positive."""


@dataclass(slots=True)
class Turn:
    """One question and its answer. Times are of the system's monotonic clock, in seconds; 0: not yet."""

    number: int
    chat: int
    handed: float = 0.0
    """The update was written to the poll."""
    asked: float = 0.0
    """The model's request was whole."""
    first: float = 0.0
    """The first text was written to the stream."""
    last: float = 0.0
    """The last text was written to the stream."""
    shown: float = 0.0
    """The first message that shows something of it arrived."""
    final: float = 0.0
    """The message that shows all of it arrived."""
    calls: int = 0
    """Messages and edits that the chat got for it, refused ones included."""
    refused: int = 0


class Stage:
    """All turns of one run.

    Args:
        deliver: Brings a new message to the bot.
    """

    def __init__(self, deliver: Callable[[Turn], None]) -> None:
        self._deliver = deliver
        self._to_come: deque[int] = deque()
        self.turns: list[Turn] = []
        self.finals = 0

    def say(self, chat: int) -> None:
        """Let somebody write."""
        turn = Turn(number=len(self.turns), chat=chat)
        self.turns.append(turn)
        self._deliver(turn)

    def keep_busy(self, chats: int, at_once: int, turns: int) -> None:
        """Let `at_once` of the chats wait for an answer at any time, in rotation, until there were so many turns."""
        self._to_come.extend(FIRST_CHAT + number % chats for number in range(turns))
        for _ in range(min(at_once, turns)):
            self.say(self._to_come.popleft())

    def ended(self, turn: Turn, at: float) -> None:
        """A turn has its final text since then; the next chat has its say."""
        turn.final = at
        self.finals += 1
        if self._to_come:
            self.say(self._to_come.popleft())

    def records(self, begin: int) -> list[dict[str, float]]:
        """The turns from a number on, for the process that asks."""
        return [asdict(turn) for turn in self.turns[begin:]]
