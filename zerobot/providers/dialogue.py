"""The history as every protocol needs it: people and model take turns, and each call is followed by its result."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zerobot.core.messages import AssistantMessage, RecordedCall, StoredFile, UserMessage
from zerobot.core.model import ModelRequest, Picture

_NAME_LIMIT = 64
"""Longest tool name that both protocols take (`^[a-zA-Z0-9_-]{1,64}$`)."""
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")

_NOTE_MARK = "[Note by the system"

BROKE_OFF = "your answer above broke off before its end"
EARLIER_LEFT_OUT = "earlier messages are not shown"
GO_ON = "please go on"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleSaid:
    """One or several messages of people, and the engine's notes; never empty."""

    parts: tuple[str | Picture, ...]
    """Texts, and after the text that tells of its file each picture; a text comes first, and no two in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSaid:
    """One answer of the model; it has text or calls, and every call has its result."""

    text: str
    calls: tuple[RecordedCall, ...]
    reasoning: tuple[Mapping[str, object], ...]
    """Only the blocks that this provider wrote, without our `provider` key."""


def dialogue(request: ModelRequest, provider: str) -> list[PeopleSaid | ModelSaid]:
    """Bring a history into the form that every provider takes.

    Messages of people that follow each other become one; a model's message that says nothing is left out; the first
    entry is people's, and so is the last unless it has calls. Notes of the engine stand in what people say, marked,
    since a note inside the model's own text would teach it to write such notes.

    Args:
        request: Its messages are as the engine hands them over: no call without a result.
        provider: Name of the provider that will read it; reasoning of another one is not for it.
    """
    said: list[PeopleSaid | ModelSaid] = []
    waiting: list[str | Picture] = []
    for message in request.messages:
        if isinstance(message, UserMessage):
            waiting += _people_parts(message, request.pictures)
            continue
        if not message.says_nothing:
            if waiting or not said:
                said.append(_people_said(waiting, EARLIER_LEFT_OUT))
                waiting = []
            said.append(_model_said(message, provider))
        waiting += _notes_after(message)
    if waiting or not said or _waits_for_people(said[-1]):
        said.append(_people_said(waiting, GO_ON))
    return _alternating(said)


def result_text(call: RecordedCall) -> str:
    """Write a call's result as the model reads it: what failed opens with its code in brackets; it is never empty."""
    assert call.result is not None, "a request is only made from a history without open calls"
    result = call.result
    text = result.text if result.text.strip() else "(no output)"
    if not result.ok:
        text = f"[{result.code}] {text}"
    return f"{text}\n[receipt: {result.receipt}]" if result.receipt else text


def tool_name(name: str) -> str:
    """Make a name that the APIs take of whatever the model invented; a good name stays as it is."""
    return _NOT_IN_NAMES.sub("_", name)[:_NAME_LIMIT] or "unknown"


def data_url(picture: Picture) -> str:
    """Write a picture as both of OpenAI's protocols take it (RFC 2397)."""
    return f"data:{picture.mime};base64,{picture.base64}"


def disarmed(text: str) -> str:
    """Change our mark of notes in a text: who writes it himself does not thereby become the system."""
    return text.replace(_NOTE_MARK, _NOTE_MARK.replace("[", "("))


def argument_text(call: RecordedCall) -> str:
    """Return the arguments as the text of a JSON object: the model's own text if it is one, since caches like that."""
    return call.raw_arguments if is_json_object(call.raw_arguments) else json.dumps(dict(call.arguments))


def is_json_object(text: str) -> bool:
    """Whether the text is a JSON object, strictly: `NaN` and `Infinity` are no JSON."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _people_said(parts: Sequence[str | Picture], otherwise: str) -> PeopleSaid:
    """Join the texts that stand next to each other; where nothing was said, a note takes its place."""
    joined: list[str | Picture] = []
    for part in parts or (_note(otherwise),):
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += f"\n\n{part}"
        else:
            joined.append(part)
    return PeopleSaid(parts=tuple(joined))


def _people_parts(message: UserMessage, pictures: Mapping[str, Picture]) -> list[str | Picture]:
    parts: list[str | Picture] = [disarmed(message.memory.strip())] if message.memory.strip() else []
    parts += [_note(message.note)] if message.note.strip() else []
    text = disarmed(message.text.strip())
    if message.speaker and text:
        text = f"[{_one_line(message.speaker)}] {text}"
    parts += [text] if text else []
    for file in message.files:
        parts.append(_file_line(file))
        if file.path in pictures:
            parts.append(pictures[file.path])
    return parts


def _file_line(file: StoredFile) -> str:
    name, path = _one_line(file.name), _one_line(file.path)
    return f"[attached {_one_line(file.kind)}: {name or 'unnamed'}, {file.mime}, {file.size} bytes, saved as {path}]"


def _model_said(message: AssistantMessage, provider: str) -> ModelSaid:
    own = tuple(
        {key: value for key, value in block.items() if key != "provider"}
        for block in message.reasoning
        if block.get("provider") == provider
    )
    return ModelSaid(text=message.text if message.text.strip() else "", calls=message.calls, reasoning=own)


def _notes_after(message: AssistantMessage) -> list[str]:
    if message.notice.strip():
        return [_note(message.notice)]
    return [_note(BROKE_OFF)] if message.partial and not message.says_nothing else []


def _note(text: str) -> str:
    return f"{_NOTE_MARK}, not written by a person: {text.strip()}]"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("[", "(").replace("]", ")")


def _waits_for_people(last: PeopleSaid | ModelSaid) -> bool:
    """Whether an entry cannot be the last: several models refuse a request that ends with their own text."""
    return isinstance(last, ModelSaid) and not last.calls


def _alternating(said: list[PeopleSaid | ModelSaid]) -> list[PeopleSaid | ModelSaid]:
    """Put a note between two answers of the model, unless the results of calls stand between them already."""
    result: list[PeopleSaid | ModelSaid] = []
    for entry in said:
        if result and _waits_for_people(result[-1]) and isinstance(entry, ModelSaid):
            result.append(_people_said((), GO_ON))
        result.append(entry)
    return result
