"""Tools in plain text, for models that know no other way: described in the system prompt, called in fenced blocks.

The one form of a call, at the beginning of a line, with exactly these two keys and the exact name of a tool:

    ```tool_call
    {"name": "read_file", "arguments": {"path": "notes.txt"}}
    ```

The backticks stand alone in their last line, which JSON cannot contain: a line break in a JSON text is escaped.
A block of any other form is a call too, one that cannot run, so that the model is told. Nothing else is ever a call.
A model that quotes a block calls it: so blocks in results are written differently, and whoever switches this on relies
on approvals more than with calls of the protocol.
"""

import json
import re
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from zerobot.core.messages import AssistantMessage, Message, RecordedCall, UserMessage
from zerobot.core.model import (
    Alive,
    Finish,
    ModelAnswer,
    ModelCall,
    ModelEvent,
    ModelProvider,
    ModelRequest,
    TextDelta,
    ToolSpec,
)
from zerobot.core.provider_kind import ProviderSettings
from zerobot.providers.dialogue import argument_text, disarmed, result_text, tool_name
from zerobot.providers.sse import MAX_PARTS
from zerobot.providers.visible import joined

OPENING = "```tool_call"
CLOSING = "```"
QUOTED = "``` tool_call"
"""How the opening of a block in a result is written."""
UNREADABLE = "tool_call"
"""Name of a call whose block names no tool."""

_PIECES = re.compile(r"[^\n]*\n|[^\n]+")
_BLANKS = " \t\r"
_NAME = re.compile(r'"name"\s*:\s*"([^"\\]{1,64})"')
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_MANUAL = """\
You can use the tools below. To call one, write a block of exactly this form, with nothing else in its lines:

```tool_call
{"name": "NAME", "arguments": {"PARAMETER": "VALUE"}}
```

The block begins and ends at the start of a line. Inside is one JSON object with the keys "name" (a tool's exact name)
and "arguments" (an object that fits the tool's parameters, {} if there are none). Write several blocks for several
calls. After your calls stop writing: the results come in the next message. Never write a block that is not meant as
a call, and never write results yourself.

The tools, each with the JSON Schema of its arguments:
"""


def with_text_tools(provider: ModelProvider, settings: ProviderSettings) -> ModelProvider:
    """Return the provider, speaking of tools in text if its table says so."""
    return TextToolModel(provider) if settings.text_tools else provider


class TextToolModel:
    """A provider whose model calls tools in text."""

    def __init__(self, inner: ModelProvider) -> None:
        self.name = inner.name
        self._inner = inner

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask once; see `ModelProvider`."""
        plain = in_text(request)
        # What knows of no tools has no calls: a block in it is what somebody talks about.
        reader = None if plain is request else CallReader({tool.name for tool in request.tools})
        stream = cast("AsyncGenerator[ModelEvent, None]", self._inner.stream(plain))
        async with aclosing(stream) as events:
            async for event in events:
                for made in [event] if reader is None else _read(reader, event):
                    yield made

    async def check(self, model: str) -> str:
        """Ask the provider; see `ModelProvider`."""
        return await self._inner.check(model)


def in_text(request: ModelRequest) -> ModelRequest:
    """Return the same question without tools: described in the system prompt, calls and results as messages.

    A question that has neither tools nor calls in its history comes back as it is.
    """
    if not request.tools and not any(isinstance(each, AssistantMessage) and each.calls for each in request.messages):
        return request
    messages: list[Message] = []
    for message in request.messages:
        messages += _round(message) if isinstance(message, AssistantMessage) and message.calls else [message]
    system = "\n\n".join(part for part in (request.system, manual(request.tools)) if part.strip())
    return replace(request, system=system, messages=messages, tools=())


def manual(tools: Sequence[ToolSpec]) -> str:
    """Write what the model must know to call the tools; empty when there are none."""
    if not tools:
        return ""
    return _MANUAL + "\n".join(
        f"\n## {tool.name}\n{tool.description}\n{json.dumps(dict(tool.parameters), ensure_ascii=False)}"
        for tool in tools
    )


def block(call: RecordedCall) -> str:
    """Write a call as the model should have written it; what was no such block stays as the model wrote it."""
    if call.raw_arguments.startswith(OPENING):
        return call.raw_arguments
    name = json.dumps(call.name, ensure_ascii=False)
    return f'{OPENING}\n{{"name": {name}, "arguments": {_one_line(argument_text(call))}}}\n{CLOSING}'


def read_block(body: str, tools: Collection[str]) -> ModelCall:
    """Read what stands between the fences.

    A block of another form gets the whole block as its arguments, which are no JSON then, so that it never runs; and
    the name of the tool that it seems to mean, so that the model is told what is wrong with the arguments.

    Args:
        body: Without the fences.
        tools: The exact names that may be called.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and value.keys() == {"name", "arguments"}:
        name, arguments = value["name"], value["arguments"]
        if isinstance(name, str) and isinstance(arguments, dict):
            raw = joined(json.dumps(arguments, ensure_ascii=False))
            return ModelCall(provider_id="", name=joined(name), raw_arguments=raw)
    return _broken_block(body, tools)


class CallReader:
    """Takes calls out of a text that streams. How it is cut into deltas makes no difference.

    Only the beginning of a line that may open a block is held back. A block inside another fenced block is an example
    and stays text.

    Args:
        tools: The exact names that may be called.
    """

    def __init__(self, tools: Collection[str]) -> None:
        self.calls: list[ModelCall] = []
        self.shown: list[str] = []
        """All visible text so far, in pieces."""
        self._tools = tools
        self._held = ""
        """The beginning of a line, as long as it may open a block."""
        self._line: list[str] = []
        """What came of the current line, but for what is held."""
        self._fence = ""
        """The run of backticks or tildes that opened another block."""
        self._body: list[str] | None = None
        """The whole lines of an open block."""

    def feed(self, delta: str) -> str:
        """Take a delta; returns what of the text is visible now."""
        text = "".join([self._take(piece) for piece in _PIECES.findall(delta)])
        self.shown.append(text)
        return text

    def end(self) -> str:
        """Take the end; returns the text that was held back and opened nothing. A block left open is a broken call."""
        text, self._held = self._held, ""
        if text.rstrip(_BLANKS) == OPENING:
            self._body, text = [], ""
        if self._body is not None:
            last = "".join(self._line)
            closed = last.rstrip(_BLANKS) == CLOSING
            self._finish(self._body if closed else [*self._body, last], closed=closed)
        self.shown.append(text)
        return text

    def _take(self, piece: str) -> str:
        """Take a piece of one line, with the line's end or without; returns what of it is visible."""
        ends = piece.endswith("\n")
        text = piece.removesuffix("\n")
        if self._body is None and not self._line and not self._fence:
            text = self._held + text
            self._held = ""
            if ends and text.rstrip(_BLANKS) == OPENING:
                self._body = []
                return ""
            if not ends and _may_open(text):
                self._held = text
                return ""
        self._line.append(text)
        in_block = self._body is not None
        if ends:
            line, self._line = "".join(self._line), []
            self._end_line(line)
        return "" if in_block else text + "\n" * ends

    def _end_line(self, line: str) -> None:
        if self._body is None:
            self._fence = _fence_after(self._fence, line)
        elif line.rstrip(_BLANKS) == CLOSING:
            self._finish(self._body, closed=True)
        else:
            self._body.append(line)

    def _finish(self, lines: Sequence[str], *, closed: bool) -> None:
        self._body = None
        if len(self.calls) >= MAX_PARTS:
            return
        body = "\n".join(lines)
        # Without its end a block is whole by chance at best: the model was not done with it.
        self.calls.append(read_block(body, self._tools) if closed else _broken_block(body, self._tools))


def _fence_after(fence: str, line: str) -> str:
    """Return the run that keeps a fenced block open after a line; empty when none is (CommonMark, section 4.5)."""
    match = _FENCE.fullmatch(line.rstrip(_BLANKS))
    if match is None:
        return fence
    run, rest = match[1], match[2]
    if not fence:
        return "" if run[0] == "`" and "`" in rest else run
    closes = run[0] == fence[0] and len(run) >= len(fence) and not rest
    return "" if closes else fence


def _may_open(text: str) -> bool:
    """Whether the beginning of a line could open a block when more of it comes."""
    return bool(text) and (OPENING.startswith(text) or text.rstrip(_BLANKS) == OPENING)


def _read(reader: CallReader, event: ModelEvent) -> list[ModelEvent]:
    """Read one event of the provider: what streams is text, and the answer has the calls."""
    if isinstance(event, TextDelta):
        text = reader.feed(event.text)
        return [TextDelta(text) if text else Alive()]
    if not isinstance(event, ModelAnswer):
        return [event]
    rest = reader.end()
    calls = (*event.calls, *reader.calls)
    finish = Finish.TOOL if calls and event.finish in {Finish.STOP, Finish.OTHER, Finish.NONE} else event.finish
    answer = replace(event, text="".join(reader.shown), calls=calls, finish=finish)
    return [TextDelta(rest), answer] if rest else [answer]


def _broken_block(body: str, tools: Collection[str]) -> ModelCall:
    named = _NAME.search(body)
    name = named[1] if named and named[1] in tools else UNREADABLE
    return ModelCall(provider_id="", name=name, raw_arguments=f"{OPENING}\n{body}\n{CLOSING}")


def _round(message: AssistantMessage) -> list[Message]:
    """Write a round as two messages: the calls as the model wrote them, and their results as a note.

    A note cannot be imitated by people, and no result can imitate a note.
    """
    blocks = [block(call) for call in message.calls]
    said = "\n\n".join([*([message.text.rstrip()] if message.text.strip() else []), *blocks])
    results = "\n\n".join(
        f"Result of call {place}, {tool_name(call.name)}:\n{_harmless(result_text(call))}"
        for place, call in enumerate(message.calls, start=1)
    )
    note = f"the results of your calls\n\n{results}\n"
    return [
        replace(message, text=said, calls=()),
        UserMessage(seq=message.seq, turn=message.turn, text="", note=note),
    ]


def _harmless(result: str) -> str:
    """Return a result that stays one, also when the model repeats it word by word."""
    return disarmed(result).replace(OPENING, QUOTED)


def _one_line(arguments: str) -> str:
    """Return a JSON object in one line: a model that wrote it over several may have a fence among them."""
    return json.dumps(json.loads(arguments), ensure_ascii=False) if "\n" in arguments else arguments
