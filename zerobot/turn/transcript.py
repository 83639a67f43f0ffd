"""A turn's view of its conversation: what the store holds, kept beside it so that nothing is read twice."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import takewhile

from zerobot.core.ids import CallId, TurnId
from zerobot.core.messages import (
    NOTHING_EARLIER,
    AssistantMessage,
    Earlier,
    History,
    Message,
    RecordedCall,
    ToolResult,
    UserMessage,
)


class Transcript:
    """The messages in the model's view. Whatever changes here was committed just before."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.outside_content = False
        """Whether the turn has read what somebody else wrote."""
        self.earlier = NOTHING_EARLIER
        """What stands for the messages that have left the window."""

    def load(self, messages: Iterable[Message], earlier: Earlier = NOTHING_EARLIER) -> None:
        """Begin with what is stored."""
        self._messages = list(messages)
        self.earlier = earlier

    @property
    def messages(self) -> tuple[Message, ...]:
        """Oldest first."""
        return tuple(self._messages)

    @property
    def open_round(self) -> AssistantMessage | None:
        """The last message, if some of its calls have no result."""
        return History(self._messages).open_round

    @property
    def last_seq(self) -> int:
        """The sequence number of the last message; 0 when there is none."""
        return self._messages[-1].seq if self._messages else 0

    def unanswered(self, turn: TurnId) -> list[UserMessage]:
        """What people said in this turn since the model last said something."""
        newest = takewhile(lambda m: isinstance(m, UserMessage) and m.turn == turn, reversed(self._messages))
        return [m for m in reversed(list(newest)) if isinstance(m, UserMessage)]

    def said(self, turn: TurnId) -> list[str]:
        """What the asker of a turn wrote in it."""
        return [m.text for m in self._messages if isinstance(m, UserMessage) and m.turn == turn]

    def calls(self, turn: TurnId) -> list[RecordedCall]:
        """All calls of a turn so far."""
        return [call for m in self._answers(turn) for call in m.calls]

    def rounds(self, turn: TurnId) -> list[tuple[RecordedCall, ...]]:
        """The same, step by step, since somebody last said something: he may well want the same once more."""
        said = max((m.seq for m in self._messages if isinstance(m, UserMessage) and m.turn == turn), default=0)
        return [m.calls for m in self._answers(turn) if m.calls and m.seq > said]

    def text_since(self, turn: TurnId, settled_seq: int) -> str:
        """What the model has said in this turn after the last message that stands in the chat as settled."""
        return join_texts(m.text for m in self._answers(turn) if m.seq > settled_seq)

    def add(self, message: Message) -> None:
        """A message was stored."""
        self._messages.append(message)

    def replace(self, message: Message) -> None:
        """A stored message was changed."""
        self._messages = [message if m.seq == message.seq else m for m in self._messages]

    def set_arguments(self, call: CallId, arguments: Mapping[str, object]) -> None:
        """A hook's arguments were stored."""
        self._change_call(call, lambda old: replace(old, arguments=arguments))

    def set_started(self, call: CallId) -> None:
        """It was stored that a call starts."""
        self._change_call(call, lambda old: replace(old, started=True))

    def set_result(self, call: CallId, result: ToolResult) -> None:
        """A call's result was stored."""
        self._change_call(call, lambda old: replace(old, result=result))

    def _answers(self, turn: TurnId) -> list[AssistantMessage]:
        return [m for m in self._messages if isinstance(m, AssistantMessage) and m.turn == turn]

    def _change_call(self, call: CallId, change: Callable[[RecordedCall], RecordedCall]) -> None:
        last = self._messages[-1]
        assert isinstance(last, AssistantMessage), "only the last round can be open"
        calls = tuple(change(old) if old.id == call else old for old in last.calls)
        self._messages[-1] = replace(last, calls=calls)


def join_texts(texts: Iterable[str]) -> str:
    """Join what the model said in several steps, as the chat shows it: paragraphs, in order."""
    return "\n\n".join(stripped for text in texts if (stripped := text.strip()))
