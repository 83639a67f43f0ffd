"""How many tokens something has, roughly, where no provider has counted them (pure; turn-engine spec K10)."""

import json
from collections.abc import Iterable, Sequence

from zerobot.core.messages import AssistantMessage, Message, UserMessage
from zerobot.core.model import ModelRequest, ToolSpec
from zerobot.core.tools import Tool
from zerobot.turn.pictures import pictures

CHARACTERS_A_TOKEN = 4
"""Of ASCII; any other character counts as a token of its own."""
PICTURE_TOKENS = 2_000
"""Of a picture. The vendors count by its size, from some hundred to some thousand."""


def tokens_of(text: str) -> int:
    """Tokens of a text."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    return ascii_characters // CHARACTERS_A_TOKEN + (len(text) - ascii_characters)


def estimate(messages: Iterable[Message]) -> int:
    """Tokens of some messages, with the results of their calls and the pictures that are shown."""
    return sum(_tokens(message) for message in messages)


def tools_tokens(tools: Iterable[Tool | ToolSpec]) -> int:
    """Tokens of tools as a request offers them."""
    return sum(tokens_of(tool.name + tool.description + json.dumps(tool.parameters, default=str)) for tool in tools)


def request_tokens(request: ModelRequest) -> int:
    """Tokens of all that a request sends."""
    return tokens_of(request.system) + tools_tokens(request.tools) + estimate(request.messages)


def used_tokens(messages: Sequence[Message], after: int, rest: int) -> int:
    """Tokens of a request: what the provider has counted last, and an estimate of what came since.

    Args:
        messages: As they are sent.
        after: Counts of messages up to this sequence number are of no use: the window has moved since.
        rest: Tokens of the system prompt and the tools, for when nothing was counted.
    """
    since = 0
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.context_tokens and message.seq > after:
            return message.context_tokens + since + sum(tokens_of(text) for text in _results(message))
        since += estimate([message])
    return since + rest


def _tokens(message: Message) -> int:
    words = sum(tokens_of(text) for text in _texts(message))
    return words + PICTURE_TOKENS * len(pictures([message]))


def _texts(message: Message) -> Iterable[str]:
    yield message.text
    if isinstance(message, UserMessage):
        yield message.note
        yield message.memory
        for file in message.files:
            yield file.name + file.path
        return
    yield message.notice
    for block in message.reasoning:
        yield json.dumps(block, default=str)
    for call in message.calls:
        yield call.name
        yield call.raw_arguments
    yield from _results(message)


def _results(message: AssistantMessage) -> Iterable[str]:
    return (call.result.text for call in message.calls if call.result)
