"""Puts tool calls together from the pieces in which Chat Completions servers send them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from zerobot.core.model import ModelCall
from zerobot.providers.dialogue import is_json_object
from zerobot.providers.json_values import mapping_of, text_of
from zerobot.providers.sse import MAX_PARTS
from zerobot.providers.visible import joined


@dataclass(slots=True)
class _Growing:
    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: Mapping[str, object] | None = None

    def is_whole(self) -> bool:
        """Whether the arguments are a JSON object already; most pieces are told from an end without parsing."""
        return bool(self.pieces) and self.pieces[-1].rstrip().endswith("}") and is_json_object("".join(self.pieces))


class CallPieces:
    """Gathers the calls of one answer, in the order in which they began.

    By the book a piece belongs to the call with its `index`. Servers leave the index out, send null, or send 0 for
    every call; ids are missing, empty in later pieces, or repeated. So a new id, or a new name after arguments that
    are whole, begins a new call, and without any of these a piece continues the last one.
    """

    def __init__(self) -> None:
        self._calls: list[_Growing] = []

    def __bool__(self) -> bool:
        """Whether any call began."""
        return bool(self._calls)

    def take(self, piece: Mapping[str, object]) -> bool:
        """Take one entry of `tool_calls`, or `{"function": ...}` made of the old `function_call`.

        Returns:
            False when it begins one call too many.
        """
        function = mapping_of(piece.get("function"))
        index = _index(piece.get("index"))
        new_id, name = text_of(piece.get("id")), text_of(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call = self._find(index, new_id, name, has_arguments=bool(arguments))
        if call is None:
            if len(self._calls) >= MAX_PARTS:
                return False
            call = _Growing(index)
            self._calls.append(call)
        call.id = call.id or new_id
        call.name = call.name or name
        if text := text_of(arguments):
            call.pieces.append(text)
        # Gemini's thought signatures; it refuses a history without them.
        call.extra = mapping_of(piece.get("extra_content")) or call.extra
        return True

    def calls(self) -> tuple[ModelCall, ...]:
        """Return the calls as they stand."""
        return tuple(
            ModelCall(provider_id=joined(call.id), name=joined(call.name), raw_arguments=joined("".join(call.pieces)))
            for call in self._calls
        )

    def extras(self) -> list[tuple[int, Mapping[str, object]]]:
        """Return what servers hung on calls: the call's position, and the thing itself."""
        return [(position, call.extra) for position, call in enumerate(self._calls) if call.extra]

    def _find(self, index: int | None, new_id: str, name: str, *, has_arguments: bool) -> _Growing | None:
        """Return the call that a piece continues; None when it begins one."""
        for call in reversed(self._calls):
            if new_id and call.id == new_id and name in {"", call.name} and not call.is_whole():
                # An unfinished call with this very id, whatever the index says.
                return call
            if index is None or call.index == index:
                return None if _begins_another(call, new_id, name, has_arguments=has_arguments) else call
        return None


def _begins_another(call: _Growing, new_id: str, name: str, *, has_arguments: bool) -> bool:
    if new_id and call.id and new_id != call.id:
        return True
    if not (name and call.name):
        return False
    if name == call.name and (not has_arguments or (new_id and call.id)):
        # The same header once more: some servers repeat it in every piece.
        return False
    return call.is_whole()


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
