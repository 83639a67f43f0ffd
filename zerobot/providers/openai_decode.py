"""A Chat Completions stream and its dialects, decoded."""

import json
from collections.abc import Mapping
from typing import Any

from zerobot.core.errors import ProviderError
from zerobot.core.model import Alive, Finish, ModelAnswer, ModelEvent, TextDelta, UsageSoFar
from zerobot.core.usage import NO_USAGE, Usage
from zerobot.providers.faults import broken, from_stream, malformed
from zerobot.providers.json_values import count_of, list_of, mapping_of, text_of
from zerobot.providers.openai_calls import CallPieces
from zerobot.providers.openai_encode import CALL_EXTRA
from zerobot.providers.openai_reasoning import ReasoningPieces
from zerobot.providers.sse import MAX_PARTS, SseEvent
from zerobot.providers.visible import VisibleText

_FINISHES = {
    "stop": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "eos": Finish.STOP,
    "eos_token": Finish.STOP,
    "tool_calls": Finish.TOOL,
    "tool_call": Finish.TOOL,
    "tool_use": Finish.TOOL,
    "function_call": Finish.TOOL,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "token_limit": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filter": Finish.FILTER,
    "content_filtered": Finish.FILTER,
    "sensitive": Finish.FILTER,
    "safety": Finish.FILTER,
    "recitation": Finish.FILTER,
    "prohibited_content": Finish.FILTER,
    "blocklist": Finish.FILTER,
    "spii": Finish.FILTER,
    "guardrail_intervened": Finish.FILTER,
    "refusal": Finish.FILTER,
}
_FAULTS = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""What some servers call the end when it was none (OpenRouter, GLM, DeepSeek, vLLM)."""


class ChatDecoder:
    """Decodes one answer."""

    def __init__(self, provider: str, *, secret: str = "") -> None:
        self.done = False
        self.nearly_done = False
        self._provider = provider
        self._secret = secret
        self._visible = VisibleText()
        self._text: list[str] = []
        self._reasoning = ReasoningPieces()
        self._calls = CallPieces()
        self._finish = Finish.NONE
        self._usage: Usage | None = None
        self._began = False

    def feed(self, event: SseEvent) -> list[ModelEvent]:
        """Take one event; see `Decoder`."""
        data = event.data.strip()
        if not data:
            # A sign of life.
            return []
        if data == "[DONE]":
            self.done = True
            return []
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise malformed(self._provider, "an event that is not JSON") from error
        if fault := _fault_in(event.name, chunk):
            raise from_stream(self._provider, fault, secret=self._secret)
        made: list[ModelEvent] = []
        chunk = mapping_of(chunk)
        for choice in list_of(chunk.get("choices")):
            self._take_choice(mapping_of(choice), made)
        self._take_usage(chunk, made)
        return made

    def end(self) -> list[ModelEvent]:
        """Take the end; see `Decoder`. A stop reason is as good as `[DONE]`, which some servers forget."""
        if not self._began:
            raise broken(self._provider, "before anything came")
        if not (self.done or self.nearly_done):
            raise broken(self._provider, "without a stop reason")
        made = self._show(self._visible.end())
        answer = ModelAnswer(
            text="".join(self._text),
            calls=self._calls.calls(),
            reasoning=self._reasoning_blocks(),
            finish=self._finish,
            usage=self._usage,
        )
        return [*made, answer]

    def _take_choice(self, choice: Mapping[str, Any], made: list[ModelEvent]) -> None:
        if choice.get("index") not in {None, 0}:
            # One answer was asked for.
            return
        self._began = True
        delta = mapping_of(choice.get("delta"))
        if not (delta or self._text or self._calls):
            # A server that does not stream. Behind a stream the whole message is a repetition.
            delta = mapping_of(choice.get("message"))
        if delta:
            made += self._take_delta(delta)
        self._take_finish(choice.get("finish_reason"))

    def _take_delta(self, delta: Mapping[str, Any]) -> list[ModelEvent]:
        made = self._take_content(delta.get("content"))
        # The model's own words instead of an answer: people should read why they get none.
        made += self._show(self._visible.feed(text_of(delta.get("refusal"))))
        if self._reasoning.take_delta(delta):
            made.append(Alive())
        pieces = list_of(delta.get("tool_calls"))
        if legacy := mapping_of(delta.get("function_call")):
            pieces = [*pieces, {"index": 0, "function": legacy}]
        for piece in pieces:
            if not self._calls.take(mapping_of(piece)):
                raise malformed(self._provider, f"more than {MAX_PARTS} calls")
            made.append(Alive())
        return made

    def _take_content(self, content: object) -> list[ModelEvent]:
        """Take text, or a list of parts of which some are reasoning (Mistral)."""
        if isinstance(content, str):
            return self._show(self._visible.feed(content))
        made: list[ModelEvent] = []
        for part in map(mapping_of, list_of(content)):
            made += self._show(self._visible.feed(text_of(part.get("text"))))
            if self._reasoning.take_part(part):
                made.append(Alive())
        return made

    def _take_finish(self, reason: object) -> None:
        word = text_of(reason).lower()
        if word in {"", "null", "none"}:
            return
        if word in _FAULTS:
            raise ProviderError(
                f"{self._provider}: the server gave up in the middle ({word})", code="server_error", retryable=True
            )
        # The first reason counts: what comes after it is an echo.
        if not self.nearly_done:
            self._finish = _FINISHES.get(word, Finish.OTHER)
        self.nearly_done = True

    def _take_usage(self, chunk: Mapping[str, Any], made: list[ModelEvent]) -> None:
        """Take a running total from wherever the server puts it (the chunk, its choice, Groq's own corner)."""
        places = [chunk, mapping_of(chunk.get("x_groq")), *map(mapping_of, list_of(chunk.get("choices")))]
        for place in places:
            usage = _usage(mapping_of(place.get("usage")))
            if usage != NO_USAGE:
                self._usage = usage
                made.append(UsageSoFar(usage))
                return

    def _show(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self._text.append(text)
        return [TextDelta(text)]

    def _reasoning_blocks(self) -> tuple[Mapping[str, object], ...]:
        blocks = self._reasoning.blocks(self._provider)
        blocks += [
            {"provider": self._provider, "type": CALL_EXTRA, "position": position, "extra": extra}
            for position, extra in self._calls.extras()
        ]
        return tuple(blocks)


def _fault_in(name: str, chunk: object) -> object:
    """Return what tells of an error, whichever way the server says it; None when it says none."""
    if isinstance(chunk, list):
        chunk = chunk[0] if chunk else {}
    if not isinstance(chunk, dict):
        return chunk or "an empty event"
    if chunk.get("error"):
        return chunk
    if name == "error" or chunk.get("object") == "error" or chunk.get("type") == "error":
        return chunk or "an error without words"
    choices = [mapping_of(choice) for choice in list_of(chunk.get("choices"))]
    corners = [mapping_of(chunk.get("x_groq")), *choices]
    return next((corner for corner in corners if corner.get("error")), None)


def _usage(usage: Mapping[str, Any]) -> Usage:
    details = mapping_of(usage.get("prompt_tokens_details"))
    read = (details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    given = count_of(usage.get("prompt_tokens")) or count_of(usage.get("input_tokens"))
    written = count_of(usage.get("completion_tokens")) or count_of(usage.get("output_tokens"))
    return Usage(
        input_tokens=given,
        # Some servers leave reasoning out of what was written, though it is paid for; the total has it (Gemini, xAI).
        output_tokens=max(written, count_of(usage.get("total_tokens")) - given) if given else written,
        cache_read_tokens=max(map(count_of, read)),
        cache_write_tokens=count_of(details.get("cache_write_tokens")),
    )
