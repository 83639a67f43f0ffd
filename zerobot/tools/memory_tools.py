"""Remembering, recalling and forgetting, each only what the turn's own people may touch."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from pydantic import Field

from zerobot.core.errors import ZerobotError
from zerobot.core.memory import (
    KEY_CHARACTERS,
    TEXT_CHARACTERS,
    MemoryBackend,
    MemoryEntry,
    MemoryFullError,
    MemoryKind,
    MemoryOwner,
    MemorySource,
    NewMemory,
    OwnerKind,
    ScopeOf,
    TurnScope,
)
from zerobot.core.tools import (
    Access,
    Accesses,
    BadArgumentsError,
    Effect,
    Execution,
    Mode,
    Risk,
    Tool,
    ToolContext,
    ToolOutput,
)
from zerobot.memory.block import data
from zerobot.memory.markers import poses
from zerobot.memory.policy import own_owners, recalled_owners, source_in
from zerobot.security.visible import one_line
from zerobot.store.memory_words import fold
from zerobot.tools.base import Arguments, ModelTool

SHOWN = 20
"""Entries that `recall` shows."""
NOT_HERE = "Memory is not available in a turn of this kind."
NOT_PRIVATE = "In a chat of several people only the scope chat can be used."
OUT_OF_ORDER = "Memory does not work at the moment; go on without it."

Scope = Literal["person", "chat"]

_UNPROVEN = frozenset({MemorySource.CONTENT, MemorySource.SCHEDULE})
"""Sources of entries that may say what a web page or a mail wanted them to say."""

_Work = Callable[[TurnScope], Awaitable[ToolOutput]]
_SCOPE_HELP = (
    "person: for this person's direct chats alone; chat: for everybody in this chat. In a direct chat it is person "
    "when left out, in a chat of several people only chat is possible."
)


class RememberArguments(Arguments):
    """Arguments of `remember`."""

    key: str = Field(
        min_length=1,
        max_length=KEY_CHARACTERS,
        description="Short name of the fact, for example 'home city'. A fact under the same key is replaced.",
    )
    text: str = Field(min_length=1, max_length=TEXT_CHARACTERS, description="The fact, in a sentence or two.")
    scope: Scope | None = Field(default=None, description=_SCOPE_HELP)
    lasting: bool = Field(default=True, description="False for what matters for some days only.")


class RecallArguments(Arguments):
    """Arguments of `recall`."""

    query: str = Field(
        default="", max_length=2_000, description="Words to look for; empty for what was remembered last."
    )
    limit: int = Field(default=8, ge=1, le=SHOWN, description="How many entries at most.")


class ForgetArguments(Arguments):
    """Arguments of `forget`."""

    key: str = Field(min_length=1, max_length=KEY_CHARACTERS, description="Key of the fact, as recall shows it.")
    scope: Scope | None = Field(default=None, description=_SCOPE_HELP)


NAMES = ("forget", "recall", "remember")


def memory_tools(backend: MemoryBackend, scope_of: ScopeOf) -> tuple[Tool, ...]:
    """The three tools, over one backend.

    Args:
        backend: Where entries are.
        scope_of: What the turn of a call may touch; the tools look it up for each call.
    """
    return (
        ModelTool(
            "remember",
            "Remember a fact beyond this conversation's memory, for later. Use it when somebody asks you to remember "
            "something, or tells you something about themselves that will matter again.",
            RememberArguments,
            lambda arguments: _remember(backend, scope_of, arguments),
        ),
        ModelTool(
            "recall",
            "Look up what was remembered earlier.",
            RecallArguments,
            lambda arguments: _recall(backend, scope_of, arguments),
        ),
        ModelTool(
            "forget",
            "Delete a remembered fact for good, with its earlier versions.",
            ForgetArguments,
            lambda arguments: _forget(backend, scope_of, arguments),
        ),
    )


def _remember(backend: MemoryBackend, scope_of: ScopeOf, arguments: RememberArguments) -> Execution:
    _check_text("key", arguments.key)
    _check_text("text", arguments.text)

    async def work(scope: TurnScope) -> ToolOutput:
        owner, source = _meant(scope, arguments.scope), source_in(scope)
        if isinstance(owner, str) or source is None:
            return _failed(owner if isinstance(owner, str) else NOT_HERE)
        stored = await backend.remember(
            NewMemory(
                owner=owner,
                key=arguments.key,
                text=arguments.text,
                kind=MemoryKind.CORE if arguments.lasting else MemoryKind.PASSING,
                source=source,
                written_by=scope.asker,
                conversation=scope.conversation,
                turn=scope.turn,
            )
        )
        instead = f" It replaces: {one_line(stored.superseded.text)}" if stored.superseded else ""
        return ToolOutput(text=f"Remembered {_whose(owner)} as {one_line(stored.entry.key)!r}.{instead}")

    return Execution(
        run=_run(scope_of, work),
        description=f"Remember {one_line(arguments.key)!r}",
        effects=frozenset({Effect.WRITE}),
        risk=Risk.LOW,
        accesses=Accesses((Access("memory", Mode.WRITE),)),
    )


def _recall(backend: MemoryBackend, scope_of: ScopeOf, arguments: RecallArguments) -> Execution:
    query = arguments.query.strip()

    async def work(scope: TurnScope) -> ToolOutput:
        owners = recalled_owners(scope)
        if not owners:
            return _failed(NOT_HERE)
        if query:
            entries = [each.entry for each in await backend.recall(owners, query, arguments.limit)]
        else:
            entries = list(await backend.list(owners, arguments.limit))
        return _shown([entry for entry in entries if entry.owner in owners], query)

    return Execution(
        run=_run(scope_of, work),
        description=f"Recall {one_line(query)!r}" if query else "Recall what was remembered last",
        effects=frozenset({Effect.READ}),
        risk=Risk.LOW,
        accesses=Accesses((Access("memory", Mode.READ),)),
    )


def _forget(backend: MemoryBackend, scope_of: ScopeOf, arguments: ForgetArguments) -> Execution:
    async def work(scope: TurnScope) -> ToolOutput:
        owner = _meant(scope, arguments.scope)
        if isinstance(owner, str):
            return _failed(owner)
        gone = await backend.forget_key(owner, arguments.key)
        if gone is None:
            return _failed(f"Nothing is remembered {_whose(owner)} as {one_line(arguments.key)!r}; see recall.")
        return ToolOutput(text=f"Forgot {one_line(gone.key)!r} ({_whose(owner)}).")

    return Execution(
        run=_run(scope_of, work),
        description=f"Forget {one_line(arguments.key)!r}",
        effects=frozenset({Effect.WRITE}),
        risk=Risk.MEDIUM,
        accesses=Accesses((Access("memory", Mode.WRITE),)),
    )


def _run(scope_of: ScopeOf, work: _Work) -> Callable[[ToolContext], Awaitable[ToolOutput]]:
    """A run function that works for the call's own turn and tells what the backend refused."""

    async def run(context: ToolContext) -> ToolOutput:
        try:
            scope = await scope_of(context.turn)
            return _failed(NOT_HERE) if scope is None else await work(scope)
        except MemoryFullError as error:
            return _failed(error.user_text)
        except ZerobotError:
            return _failed(OUT_OF_ORDER)

    return run


def _meant(scope: TurnScope, wanted: Scope | None) -> MemoryOwner | str:
    """Whose entries are meant, or why there are none."""
    owners = own_owners(scope)
    if not owners:
        return NOT_HERE
    if wanted is None:
        return owners[0]
    kind = OwnerKind.PERSON if wanted == "person" else OwnerKind.CONVERSATION
    return next((owner for owner in owners if owner.kind is kind), NOT_PRIVATE)


def _check_text(name: str, text: str) -> None:
    if not fold(text):
        raise BadArgumentsError(f"{name} says nothing")
    if poses(text):
        raise BadArgumentsError(
            f"{name} has a marker of the tools' or the notes' own form in it; say it in plain words"
        )


def _shown(entries: Sequence[MemoryEntry], query: str) -> ToolOutput:
    visible = [entry for entry in entries if not (poses(entry.key) or poses(entry.text))]
    if not visible:
        about = f" about {one_line(query)!r}; leave query out to see what was remembered last" if query else ""
        return ToolOutput(text=f"Nothing is remembered{about}.")
    return ToolOutput(
        text="\n".join(_line(entry) for entry in visible),
        outside_content=any(entry.source in _UNPROVEN for entry in visible),
    )


def _line(entry: MemoryEntry) -> str:
    marks = [entry.owner.kind.value, f"{entry.created_at:%Y-%m-%d}"]
    if entry.source is MemorySource.CONTENT:
        marks.append("noted while reading somebody else's text")
    return f"- {data(entry.key)}: {data(entry.text)} [{', '.join(marks)}]"


def _whose(owner: MemoryOwner) -> str:
    return "for this person" if owner.kind is OwnerKind.PERSON else "for this chat"


def _failed(text: str) -> ToolOutput:
    return ToolOutput(text=text, ok=False)
