"""Asks a provider the way the engine does, and keeps all that came."""

import base64
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import httpx

from tests.platforms.model_images import PNG
from tests.platforms.model_server import KEY, ModelServer
from zerobot.core.clock import Clock
from zerobot.core.errors import ProviderError
from zerobot.core.ids import CallId, TurnId
from zerobot.core.log import silent
from zerobot.core.messages import (
    AssistantMessage,
    Message,
    RecordedCall,
    ResultCode,
    StoredFile,
    ToolResult,
    UserMessage,
)
from zerobot.core.model import (
    ModelAnswer,
    ModelEvent,
    ModelProvider,
    ModelRequest,
    Picture,
    TextDelta,
    ToolSpec,
    UsageSoFar,
)
from zerobot.core.provider_kind import ProviderKind, ProviderServices
from zerobot.core.usage import Usage
from zerobot.providers import anthropic, openai, openai_responses
from zerobot.testing.clock import ManualClock

MODEL = "m-1"
TURN = TurnId("t1")
KINDS = {"openai": openai.KIND, "openai_responses": openai_responses.KIND, "anthropic": anthropic.KIND}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A `[providers.main]` table."""

    base_url: str = ""
    key: str = KEY
    idle_timeout: float = 10.0
    connect_timeout: float = 5.0
    text_tools: bool = False


@dataclass(slots=True)
class Asked:
    """What came of one question."""

    events: list[ModelEvent] = field(default_factory=list)
    error: ProviderError | None = None

    @property
    def shown(self) -> str:
        """The text that people saw."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def answer(self) -> ModelAnswer:
        """The whole answer, which is the last event and the only one of its kind."""
        if self.error is not None:
            raise self.error
        answers = [event for event in self.events if isinstance(event, ModelAnswer)]
        assert len(answers) == 1
        assert self.events[-1] is answers[0]
        assert answers[0].text == self.shown
        return answers[0]

    @property
    def metered(self) -> Usage | None:
        """The last running total."""
        return next((event.usage for event in reversed(self.events) if isinstance(event, UsageSoFar)), None)


@contextlib.asynccontextmanager
async def opened(kind: ProviderKind, settings: Settings, *, clock: Clock | None = None) -> AsyncIterator[ModelProvider]:
    """Open a provider called `main` with an HTTP client of its own."""
    async with httpx.AsyncClient() as http:
        yield kind.open("main", settings, ProviderServices(http=lambda: http, clock=clock or ManualClock(), log=silent))


def url_of(server: ModelServer, kind: str) -> str:
    """What `base_url` of a kind should be."""
    return server.anthropic_url if kind == "anthropic" else server.openai_url


@contextlib.asynccontextmanager
async def provider_on(
    server: ModelServer, kind: str, *, idle_timeout: float = 10.0, text_tools: bool = False
) -> AsyncIterator[ModelProvider]:
    """Open a provider of a kind that asks the server."""
    settings = Settings(base_url=url_of(server, kind), idle_timeout=idle_timeout, text_tools=text_tools)
    async with opened(KINDS[kind], settings) as provider:
        yield provider


async def ask(provider: ModelProvider, request: ModelRequest) -> Asked:
    """Ask to the end; an error of the provider is part of what came."""
    asked = Asked()
    try:
        async for event in provider.stream(request):
            asked.events.append(event)
    except ProviderError as error:
        asked.error = error
    return asked


def question(
    *messages: Message | str, tools: Sequence[ToolSpec] = (), system: str = "Be brief.", model: str = MODEL
) -> ModelRequest:
    """Make a request; a string is what a person says."""
    said = [user(message) if isinstance(message, str) else message for message in messages]
    return ModelRequest(model=model, system=system, messages=said, tools=tools)


def user(text: str, *files: StoredFile, note: str = "", speaker: str = "") -> UserMessage:
    """Make what a person said and attached."""
    return UserMessage(seq=1, turn=TURN, text=text, note=note, speaker=speaker, files=files)


def attached(name: str, data: bytes = PNG, mime: str = "image/png", digest: str = "d") -> StoredFile:
    """Make a picture that lies in the workspace."""
    return StoredFile(kind="image", name=name, mime=mime, size=len(data), path=f"in/{name}", digest=digest)


def shown(request: ModelRequest) -> ModelRequest:
    """The same question, with a picture for each attached file."""
    files = [file for message in request.messages if isinstance(message, UserMessage) for file in message.files]
    return replace(
        request, pictures={file.path: Picture("image/png", base64.b64encode(PNG).decode()) for file in files}
    )


def assistant(
    text: str = "",
    *calls: RecordedCall,
    reasoning: tuple[Mapping[str, object], ...] = (),
    notice: str = "",
    partial: bool = False,
) -> AssistantMessage:
    """Make what the model said."""
    return AssistantMessage(
        seq=1, turn=TURN, text=text, calls=calls, reasoning=reasoning, notice=notice, partial=partial
    )


def called(
    name: str,
    call_id: str,
    raw: str = "{}",
    *,
    arguments: Mapping[str, object] | None = None,
    result: str = "fine",
    code: ResultCode = ResultCode.OK,
    position: int = 0,
) -> RecordedCall:
    """Make a call with its result."""
    return RecordedCall(
        id=CallId(f"ours_{call_id}"),
        wire_id=call_id,
        name=name,
        arguments=arguments or {},
        raw_arguments=raw,
        position=position,
        started=True,
        result=ToolResult(code=code, text=result),
    )


def tool(name: str, *parameters: str) -> ToolSpec:
    """Make a tool whose parameters are texts."""
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return ToolSpec(name=name, description=f"The tool {name}.", parameters={"type": "object", "properties": properties})


class QuickClock(ManualClock):
    """A clock on which waiting takes no time, but is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []
        """Seconds of each wait."""

    async def sleep(self, seconds: float) -> None:
        """Remember the wait and go on."""
        self.slept.append(seconds)
        await super().sleep(0)
