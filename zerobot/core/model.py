"""The seam to model APIs: what is asked, what streams back."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from zerobot.core.messages import Message
from zerobot.core.usage import NO_USAGE, Usage


class Finish(StrEnum):
    """Why a model stopped, in our words (turn-engine spec K2, first column)."""

    STOP = "stop"
    TOOL = "tool"
    LENGTH = "length"
    FILTER = "filter"
    PAUSE = "pause"
    OTHER = "other"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON Schema of an object."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it goes to a model."""

    mime: str
    base64: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model. `messages` has no open round: every call has its result."""

    model: str
    """The provider's own name for the model, without our provider prefix."""
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int | None = None
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    """The attached pictures that the model is shown, by the paths of their files; of all others it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A tool call as it came from the model."""

    provider_id: str
    """May be empty, may repeat: the engine mints its own."""
    name: str
    raw_arguments: str
    """The text of the arguments, exactly as streamed; empty when there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A whole answer: the stream came to the protocol's own end."""

    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    reasoning: tuple[Mapping[str, object], ...] = ()
    finish: Finish = Finish.NONE
    usage: Usage | None = None
    """None when the provider reported none."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Some visible text, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Alive:
    """The model works without visible text (it reasons, it writes arguments)."""


@dataclass(frozen=True, slots=True)
class UsageSoFar:
    """A running total, so that a broken attempt is metered too. The last one counts, they are never added."""

    usage: Usage = NO_USAGE


ModelEvent = TextDelta | Alive | UsageSoFar | ModelAnswer


class ModelProvider(Protocol):
    """One configured model API."""

    name: str
    """The name of its table, the part before the slash in `PROVIDER/MODEL`."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask once; the last event is the one `ModelAnswer`. Closing the iterator ends the request.

        Raises:
            ProviderError: Nothing, or not the whole answer, came. It never retries by itself.
        """
        ...

    async def check(self, model: str) -> str:
        """Prove by a real call that the credentials work; returns a line for `zerobot doctor`.

        Raises:
            ProviderError: They don't.
        """
        ...
