"""What a terminal has been given to show: which messages may still change, which are settled, what is asked. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

NOBODY = "nobody can be asked here: the terminal is not interactive"
"""Told where a request had to be shown and nobody could have answered."""

_REFUSALS = {
    "duplicate": "This message was sent already.",
    "full": "Too many messages wait already; wait for an answer first.",
    "blocked": "A guard of this bot does not let that message through.",
    "no_storage": "It could not be stored; is the disk full?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of the bot."""

    id: str
    text: str
    spans: tuple[tuple[int, int, str, str], ...] = ()
    """(start, end, kind, value) in code points of the text."""
    reply_to: str = ""
    file: str = ""
    """A file that was sent: its name and path."""
    growing: bool = False
    """A draft: its turn goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An approval prompt."""

    id: str
    approval: str
    lines: tuple[tuple[str, str, str], ...]
    """(kind, label, text) of each line."""
    whole: str = ""
    """The whole request, when some line was cut."""
    open: bool = True
    grantable: bool = True


@dataclass(frozen=True, slots=True)
class Note:
    """A line about what became of something."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A turn is over."""

    reply_to: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message of ours was taken."""

    id: str


Shown = Message | Asked | Note | Ended | Accepted


class Transcript:
    """Takes the items as they come and says what is settled by each."""

    def __init__(self) -> None:
        self.live: dict[str, Message] = {}
        """Messages that may still change, by id, oldest first."""
        self.asked: dict[str, Asked] = {}
        """Open prompts, by id, oldest first."""
        self.working = False
        """Whether a turn is known to be under way."""
        self.commands: set[str] = set()
        """Ids of our messages that no turn answers: what answers them is complete as it comes."""
        self._printed: dict[str, str] = {}

    def take(self, item: Mapping[str, object]) -> list[Shown]:
        """What can be printed for good now, in its order."""
        handler = {
            "message": self._message,
            "edit": self._edit,
            "delete": self._delete,
            "typing": self._typing,
            "ask": self._ask,
            "settle": self._settle,
            "unasked": self._unasked,
            "ended": self._ended,
            "accepted": self._accepted,
            "pressed": self._pressed,
            "failed": self._failed,
        }.get(_text(item, "kind"))
        # A kind that this version does not know is a newer daemon's, and nothing that has to be shown.
        return [] if handler is None else handler(item)

    def flush(self) -> list[Shown]:
        """Settle what may still change: nothing more is awaited, or something comes after it."""
        settled = [message for message in self.live.values() if self._printed.get(message.id) != message.text]
        self._printed |= {message.id: message.text for message in settled}
        self.live.clear()
        return list(settled)

    def answered(self, asked: str) -> None:
        """The person has decided a prompt here: it is asked no more, and with the last one its turn goes on."""
        self.asked.pop(asked, None)
        self.working = not self.asked

    def _message(self, item: Mapping[str, object]) -> list[Shown]:
        message = _message(item)
        if message.reply_to in self.commands:
            return [message]
        # A draft shows that a turn is under way, also when it is not the one that was under way before.
        self.working = self.working or message.growing
        settled = not (self.working or self.live)
        self.live[message.id] = message
        return self.flush() if settled else []

    def _edit(self, item: Mapping[str, object]) -> list[Shown]:
        """A new text of a message: never printed at once, for the next one may follow; its turn's end settles it."""
        message = _message(item)
        if self._printed.get(message.id) == message.text:
            self.live.pop(message.id, None)
            return []
        known = self.live.get(message.id)
        if known is not None:
            message = replace(message, reply_to=known.reply_to, file=known.file, growing=known.growing)
        self.live[message.id] = message
        return []

    def _delete(self, item: Mapping[str, object]) -> list[Shown]:
        self.live.pop(_text(item, "id"), None)
        return []

    def _typing(self, _: Mapping[str, object]) -> list[Shown]:
        self.working = True
        return []

    def _ended(self, item: Mapping[str, object]) -> list[Shown]:
        ended = _text(item, "reply_to")
        # The next turn may have begun to speak already; its messages go on changing.
        owner, others = "", {}
        for message in self.live.values():
            owner = message.reply_to or owner
            if message.growing and owner not in ("", ended):
                others[message.id] = message
        self.live = {ident: message for ident, message in self.live.items() if ident not in others}
        settled = self.flush()
        self.live = others
        self.working = bool(others)
        return [*settled, Ended(ended, _text(item, "outcome"))]

    def _pressed(self, item: Mapping[str, object]) -> list[Shown]:
        # What a decision came to is told by the prompt itself, as it is settled; what it allows from now on is not.
        plain = item.get("outcome") in {"approved", "denied"} and _text(item, "text") in {"Approved.", "Denied."}
        return [] if plain else self._failed(item)

    def _failed(self, item: Mapping[str, object]) -> list[Shown]:
        return [Note(_text(item, "text"))]

    def _ask(self, item: Mapping[str, object]) -> list[Shown]:
        asked = _asked(item)
        if asked.id in self.asked:
            return []
        self.asked[asked.id] = asked
        self.working = False
        return [*self.flush(), asked]

    def _settle(self, item: Mapping[str, object]) -> list[Shown]:
        asked = _asked(item)
        self.asked.pop(asked.id, None)
        return [*self.flush(), asked]

    def _unasked(self, item: Mapping[str, object]) -> list[Shown]:
        lines = [f"{label}: {text}" if label else text for _, label, text in _asked(item).lines]
        return [*self.flush(), Note("\n".join([*lines, NOBODY]))]

    def _accepted(self, item: Mapping[str, object]) -> list[Shown]:
        acceptance = _text(item, "acceptance")
        if acceptance == "accepted":
            return [Accepted(_text(item, "id"))]
        return [Note(_REFUSALS.get(acceptance, f"The message was not taken: {acceptance}."))]


def _text(item: Mapping[str, object], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _message(item: Mapping[str, object]) -> Message:
    spans: list[tuple[int, int, str, str]] = []
    for row in _list(item.get("spans")):
        match row:
            case [int(start), int(end), str(kind), str(value)]:
                spans.append((start, end, kind, value))
    return Message(
        id=_text(item, "id"),
        text=_text(item, "text"),
        spans=tuple(spans),
        reply_to=_text(item, "reply_to"),
        file=_text(item, "file"),
        growing=item.get("growing") is True,
    )


def _asked(item: Mapping[str, object]) -> Asked:
    prompt = item.get("prompt")
    prompt = prompt if isinstance(prompt, Mapping) else {}
    lines: list[tuple[str, str, str]] = []
    for row in _list(prompt.get("lines")):
        match row:
            case [str(kind), str(label), str(text)]:
                lines.append((kind, label, text))
    return Asked(
        id=_text(item, "id"),
        approval=_text(prompt, "approval"),
        lines=tuple(lines),
        whole=_text(prompt, "whole"),
        open=prompt.get("open") is True,
        grantable=prompt.get("grantable") is True,
    )
