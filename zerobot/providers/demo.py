"""The provider without a network: a model of a few patterns, so that a first run shows the whole loop."""

import json
import re
from collections.abc import AsyncGenerator, Sequence

from zerobot.core.clock import Clock
from zerobot.core.messages import AssistantMessage, Message, UserMessage
from zerobot.core.model import Finish, ModelAnswer, ModelCall, ModelEvent, ModelProvider, ModelRequest, TextDelta
from zerobot.core.provider_kind import ProviderKind, ProviderServices, ProviderSettings
from zerobot.core.usage import Usage
from zerobot.providers.demo_rules import fitted, missing, report, talk, wishes_in

PAUSE = 0.03
"""Seconds between two words: fast enough to read along, slow enough to be seen."""
LONGEST = 3.0
"""Seconds that an answer takes, however long it is."""

_WORD = re.compile(r"\s*\S+")


class DemoModel:
    """Answers by patterns. It has one way to answer each question, it never fails, and it says what it is."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self._clock = clock

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer the last message, word by word; see `ModelProvider`."""
        text, calls = _answer(request)
        words = _words(text)
        for number, word in enumerate(words):
            if number:
                await self._clock.sleep(min(PAUSE, LONGEST / len(words)))
            yield TextDelta(word)
        # Its tokens are words, so this is a count and no guess.
        heard = sum(len(message.text.split()) for message in request.messages)
        usage = Usage(input_tokens=heard, output_tokens=len(text.split()))
        yield ModelAnswer(text=text, calls=calls, finish=Finish.TOOL if calls else Finish.STOP, usage=usage)

    async def check(self, model: str) -> str:
        """Say that there is nothing to check; see `ModelProvider`."""
        return f"{model} is the built-in demo: no key, no understanding; `zerobot init` sets up a real model"


def _answer(request: ModelRequest) -> tuple[str, tuple[ModelCall, ...]]:
    """Decide what to say and which tools to call, from the last message alone."""
    last = _last_with_content(request.messages)
    if isinstance(last, AssistantMessage):
        return report(last), ()
    text = last.text if last else ""
    wishes = wishes_in(text)
    if not wishes:
        return talk(text), ()
    tools = {tool.name: tool for tool in request.tools}
    lacking = [wish.tool for wish in wishes if wish.tool not in tools]
    if lacking:
        return missing(lacking), ()
    calls = tuple(
        ModelCall(
            # An id that is the same in each run, and another in each step.
            provider_id=f"demo_{len(request.messages)}_{position}",
            name=wish.tool,
            raw_arguments=json.dumps(fitted(wish, tools[wish.tool]), ensure_ascii=False),
        )
        for position, wish in enumerate(wishes)
    )
    return " ".join(dict.fromkeys(wish.saying for wish in wishes)), calls


def _last_with_content(messages: Sequence[Message]) -> UserMessage | AssistantMessage | None:
    """Return what is to be answered: words of a person, or results; a note or a broken answer is neither."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.calls:
            return message
        if isinstance(message, UserMessage) and (message.text.strip() or message.files):
            return message
    return None


def _words(text: str) -> list[str]:
    words = _WORD.findall(text)
    return words or ([text] if text else [])


def _open(name: str, _settings: ProviderSettings, services: ProviderServices) -> ModelProvider:
    return DemoModel(name, services.clock)


KIND = ProviderKind(name="demo", default_base_url="", needs_key=False, open=_open)
