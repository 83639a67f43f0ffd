"""Reasoning in Chat Completions: four ways in which servers send it, and each goes back in the way it came."""

from collections.abc import Mapping, Sequence
from typing import Any

from zerobot.providers.json_values import list_of, mapping_of, text_of
from zerobot.providers.sse import MAX_PARTS

FIELDS = ("reasoning_content", "reasoning")
"""Fields with text (DeepSeek, vLLM, Kimi; OpenRouter, Groq, newer vLLM)."""
PARTS = "thinking"
"""Parts of the content, with text (Mistral)."""
DETAILS = "reasoning_details"
"""A list of signed or encrypted blocks, which OpenRouter wants back as a whole and unchanged."""

_GROWS = frozenset({"text", "summary", "data"})


class ReasoningPieces:
    """Gathers the reasoning of one answer."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []

    def take_delta(self, delta: Mapping[str, Any]) -> bool:
        """Take what a delta has of it beside its content; whether there was any."""
        some = False
        for field in FIELDS:
            if text := text_of(delta.get(field)):
                # Servers in the middle of a change of names send both fields with the same text.
                self._texts.setdefault(field, []).append(text)
                some = True
                break
        for detail in map(mapping_of, list_of(delta.get(DETAILS))):
            some = True
            self._take_detail(detail)
        return some

    def take_part(self, part: Mapping[str, Any]) -> bool:
        """Take a part of the content; whether it was reasoning."""
        thinking = part.get("thinking")
        texts = (
            [thinking] if isinstance(thinking, str) else [mapping_of(each).get("text") for each in list_of(thinking)]
        )
        text = "".join(map(text_of, texts))
        if text:
            self._texts.setdefault(PARTS, []).append(text)
        return bool(text)

    def blocks(self, provider: str) -> list[Mapping[str, object]]:
        """Return what came, as the history keeps it."""
        blocks: list[Mapping[str, object]] = [
            {"provider": provider, "type": field, "text": "".join(texts)} for field, texts in self._texts.items()
        ]
        if self._details:
            blocks.append({"provider": provider, "type": DETAILS, "details": [_whole(each) for each in self._details]})
        return blocks

    def _take_detail(self, detail: Mapping[str, Any]) -> None:
        """Take a piece of a block; pieces of one block follow each other with the same type and index."""
        last = self._details[-1] if self._details else None
        if last is None or not _continues(last, detail):
            if len(self._details) < MAX_PARTS:
                self._details.append({key: [value] if key in _GROWS else value for key, value in detail.items()})
            return
        for key, value in detail.items():
            if key in _GROWS:
                last.setdefault(key, []).append(value)
            elif value is not None:
                last[key] = value


def given_back(blocks: Sequence[Mapping[str, object]], text: str) -> dict[str, object]:
    """Return the fields of an assistant message that give reasoning back to the server that wrote it.

    Args:
        blocks: What `blocks` returned, without our mark of the provider.
        text: The message's visible text, which shares its field with one way of reasoning.
    """
    by_kind = {block.get("type"): block for block in blocks}
    if details := by_kind.get(DETAILS):
        return {DETAILS: details.get("details")}
    fields: dict[str, object] = {field: by_kind[field].get("text") for field in FIELDS if field in by_kind}
    if PARTS in by_kind:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": by_kind[PARTS].get("text")}]}
        fields["content"] = [thought, *([{"type": "text", "text": text}] if text else [])]
    return fields


def _continues(last: Mapping[str, Any], detail: Mapping[str, Any]) -> bool:
    if detail.get("type") != last.get("type") or detail.get("index") != last.get("index"):
        return False
    return detail.get("id") is None or last.get("id") is None or detail["id"] == last["id"]


def _whole(detail: Mapping[str, Any]) -> dict[str, object]:
    return {key: _joined(value) if key in _GROWS else value for key, value in detail.items()}


def _joined(pieces: Sequence[object]) -> object:
    texts = [piece for piece in pieces if piece is not None]
    return "".join(map(str, texts)) if texts else None
