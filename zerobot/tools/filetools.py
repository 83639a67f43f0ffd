"""Writing, editing and listing files inside the bounds."""

import asyncio
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import Field

from zerobot.core.tools import (
    Access,
    Accesses,
    BadArgumentsError,
    BlockedByToolError,
    Effect,
    Execution,
    Mode,
    Risk,
    Tool,
    ToolContext,
    ToolOutput,
)
from zerobot.security.paths import BadPathError, GuardedFiles, PathRefusedError
from zerobot.security.visible import one_line
from zerobot.tools.base import Arguments, ModelTool

MAX_READ_BYTES = 2_000_000
MAX_WRITE_CHARACTERS = 2_000_000
MAX_ENTRIES = 500
MAX_DEPTH = 12


class WriteArguments(Arguments):
    """Arguments of `write_file`."""

    path: str = Field(min_length=1, description="File, relative to the workspace. Missing folders are made.")
    content: str = Field(max_length=MAX_WRITE_CHARACTERS, description="The whole new content.")


class EditArguments(Arguments):
    """Arguments of `edit_file`."""

    path: str = Field(min_length=1, description="File, relative to the workspace.")
    old_text: str = Field(min_length=1, description="Text to replace, exactly as it stands in the file.")
    new_text: str = Field(max_length=MAX_WRITE_CHARACTERS, description="Text to put in its place.")
    replace_all: bool = Field(default=False, description="Replace every occurrence; else there must be exactly one.")


class ListArguments(Arguments):
    """Arguments of `list_files`."""

    path: str = Field(default="", description="Folder, relative to the workspace; empty for the workspace.")
    glob: str = Field(default="", description="Only names that fit, for example *.py. Folders are still entered.")
    recursive: bool = Field(default=False, description="Also what lies in the folders below.")
    depth: int = Field(default=4, ge=1, le=MAX_DEPTH, description="How deep to go when recursive.")


def file_tools(files: GuardedFiles) -> tuple[Tool, ...]:
    """The three tools, over one guard."""
    return (
        ModelTool(
            "write_file",
            "Create a file or replace its whole content. To change a part of a file, use edit_file.",
            WriteArguments,
            lambda arguments: _write(files, arguments),
        ),
        ModelTool(
            "edit_file",
            "Replace an exact text in a file. old_text must occur exactly once, or set replace_all.",
            EditArguments,
            lambda arguments: _edit(files, arguments),
        ),
        ModelTool(
            "list_files",
            "List the files and folders in a folder.",
            ListArguments,
            lambda arguments: _list(files, arguments),
        ),
    )


def resolve_path(files: GuardedFiles, text: str, base: Path | None = None) -> Path:
    """The canonical path of what a model wrote.

    Raises:
        BadArgumentsError: It is no path.
        BlockedByToolError: It leads nowhere that could be judged.
    """
    try:
        return files.canonical(text, base)
    except BadPathError as error:
        raise BadArgumentsError(str(error)) from error
    except PathRefusedError as error:
        raise BlockedByToolError(str(error)) from error


def in_thread(
    files: GuardedFiles, path: Path, work: Callable[[], ToolOutput]
) -> Callable[[ToolContext], Awaitable[ToolOutput]]:
    """A run function that does blocking work beside the event loop and tells what the system refused."""

    def guarded() -> ToolOutput:
        try:
            return work()
        except (PathRefusedError, OSError) as error:
            return refused(files, path, error)

    async def run(_context: ToolContext) -> ToolOutput:
        return await asyncio.to_thread(guarded)

    return run


def refused(files: GuardedFiles, path: Path, error: PathRefusedError | OSError) -> ToolOutput:
    """What to tell of a file that the guard or the system did not let a tool use."""
    if isinstance(error, PathRefusedError):
        return _failed(f"{files.shown(path)}: {error}")
    if isinstance(error, FileNotFoundError):
        return _failed(f"{files.shown(path)} does not exist.")
    return _failed(f"{files.shown(path)}: {(error.strerror or 'it cannot be used').lower()}.")


def _failed(text: str) -> ToolOutput:
    return ToolOutput(text=text, ok=False)


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: a NUL in the beginning says so, as it does for git and grep."""
    return b"\0" in data[:8_000]


# -- write_file and edit_file -----------------------------------------------------------------------------------------


def _write(files: GuardedFiles, arguments: WriteArguments) -> Execution:
    path = resolve_path(files, arguments.path)
    data = arguments.content.encode("utf-8")

    def work() -> ToolOutput:
        new = files.write_bytes(path, data)
        return ToolOutput(text=f"{'Created' if new else 'Replaced'} {files.shown(path)} ({len(data)} bytes).")

    return _changing(files, path, f"Write {len(data)} bytes to {files.shown(path)}", work, reads=())


def _edit(files: GuardedFiles, arguments: EditArguments) -> Execution:
    path = resolve_path(files, arguments.path)
    old, new = arguments.old_text.encode("utf-8"), arguments.new_text.encode("utf-8")
    if old == new:
        raise BadArgumentsError("old_text and new_text are the same")

    def work() -> ToolOutput:
        content = files.read_bytes(path, MAX_READ_BYTES)
        if not content.complete:
            return _failed(f"{files.shown(path)} is too large to edit ({content.size} bytes).")
        found = content.data.count(old)
        if not found:
            return _failed(f"old_text does not occur in {files.shown(path)}; read the file again.")
        if found > 1 and not arguments.replace_all:
            return _failed(
                f"old_text occurs {found} times in {files.shown(path)}; take more context, or set replace_all."
            )
        files.write_bytes(path, content.data.replace(old, new))
        return ToolOutput(text=f"Edited {files.shown(path)} ({found} place{'s' if found > 1 else ''}).")

    return _changing(files, path, f"Edit {files.shown(path)}", work, reads=(path,))


def _changing(
    files: GuardedFiles, path: Path, description: str, work: Callable[[], ToolOutput], *, reads: tuple[Path, ...]
) -> Execution:
    return Execution(
        run=in_thread(files, path, work),
        description=description,
        effects=frozenset({Effect.WRITE, Effect.READ} if reads else {Effect.WRITE}),
        risk=Risk.MEDIUM,
        accesses=Accesses((Access(str(path), Mode.WRITE),)),
        reads=reads,
        writes=(path,),
    )


# -- list_files -------------------------------------------------------------------------------------------------------


def _list(files: GuardedFiles, arguments: ListArguments) -> Execution:
    path = resolve_path(files, arguments.path)
    return Execution(
        run=in_thread(files, path, lambda: _list_now(files, path, arguments)),
        description=f"List {files.shown(path)}",
        effects=frozenset({Effect.READ}),
        risk=Risk.LOW,
        accesses=Accesses((Access(str(path), Mode.READ, tree=True),)),
        reads=(path,),
    )


def _list_now(files: GuardedFiles, path: Path, arguments: ListArguments) -> ToolOutput:
    lines: list[str] = []
    more = False
    for entry in files.walk(path, arguments.depth if arguments.recursive else 1):
        name = entry.path.relative_to(path).as_posix()
        if arguments.glob and not fits(name, arguments.glob):
            continue
        if len(lines) == MAX_ENTRIES:
            more = True
            break
        mark = {"directory": "/", "link": " (link)", "other": " (special)"}.get(entry.kind, f" ({entry.size} bytes)")
        lines.append(f"{one_line(name)}{mark}")
    if more:
        lines.append(f"[more than {MAX_ENTRIES} entries; narrow it with path, glob or depth]")
    return ToolOutput(text="\n".join(lines) or "Nothing there.")


def fits(name: str, glob: str) -> bool:
    """Whether a relative path fits a glob: by its last part, or as a whole when the glob has a slash."""
    if "/" not in glob:
        return fnmatchcase(name.rsplit("/", 1)[-1], glob)
    return fnmatchcase(name, glob) or (glob.startswith("**/") and fnmatchcase(name, glob[3:]))
