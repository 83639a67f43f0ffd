"""The tool `read_file`: text files as they are, and the text of documents."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from zerobot.core.tools import Access, Accesses, Effect, Execution, Mode, Risk, Tool, ToolContext, ToolOutput
from zerobot.security.paths import FileContent, GuardedFiles, PathRefusedError
from zerobot.tools.base import Arguments, ModelTool
from zerobot.tools.documents.endings import WHY, Ending
from zerobot.tools.documents.reading import SECONDS, DocumentText, document_text, is_document
from zerobot.tools.fence import Fence
from zerobot.tools.filetools import MAX_READ_BYTES, is_binary, refused, resolve_path

FENCE = Fence("file_text", "Somebody else may have written this.")
MAX_SHOWN_CHARACTERS = 40_000
MAX_LINE_CHARACTERS = 2_000
MAX_DOCUMENT_BYTES = 64_000_000
AT_ONCE = 4
"""Documents that are read at the same time; others wait."""


class ReadArguments(Arguments):
    """Arguments of `read_file`."""

    path: str = Field(min_length=1, description="File, relative to the workspace.")
    offset: int = Field(default=1, ge=1, description="First line to show, from 1.")
    limit: int = Field(default=500, ge=1, le=5_000, description="How many lines at most.")


def read_tool(files: GuardedFiles, seconds: float = SECONDS) -> Tool:
    """The tool.

    Args:
        files: Reads inside the bounds, and nowhere else.
        seconds: After which the reading of a document is ended.
    """
    room = asyncio.Semaphore(AT_ONCE)

    def resolve(arguments: ReadArguments) -> Execution:
        path = resolve_path(files, arguments.path)

        async def run(_context: ToolContext) -> ToolOutput:
            try:
                content = await asyncio.to_thread(files.read_bytes, path, MAX_READ_BYTES)
                if not is_document(content.data):
                    return _text_file(files, path, content, arguments)
                if content.size > MAX_DOCUMENT_BYTES:
                    return _failed(
                        f"{files.shown(path)} is too large to be read ({content.size} bytes; "
                        f"documents may have {MAX_DOCUMENT_BYTES})."
                    )
                async with room:
                    with files.opened(path) as file:
                        document = await document_text(file, arguments.offset + arguments.limit, seconds)
                return _document(files.shown(path), content.size, document, arguments)
            except (PathRefusedError, OSError) as error:
                return refused(files, path, error)

        return Execution(
            run=run,
            description=f"Read {files.shown(path)}",
            effects=frozenset({Effect.READ}),
            risk=Risk.LOW,
            accesses=Accesses((Access(str(path), Mode.READ),)),
            reads=(path,),
        )

    return ModelTool(
        "read_file",
        "Read a text file, or the text of a document (PDF, Word, Excel, PowerPoint, OpenDocument, RTF, EPUB). Shows "
        "numbered lines; use offset and limit for long files.",
        ReadArguments,
        resolve,
    )


def _failed(text: str) -> ToolOutput:
    return ToolOutput(text=text, ok=False)


def _text_file(files: GuardedFiles, path: Path, content: FileContent, arguments: ReadArguments) -> ToolOutput:
    name = files.shown(path)
    if is_binary(content.data):
        return _failed(f"{name} is no text file ({content.size} bytes).")
    lines = content.data.decode("utf-8", "replace").splitlines()
    if not lines:
        return ToolOutput(text=f"{name} is empty.")
    if arguments.offset > len(lines):
        return _failed(f"{name} has only {len(lines)} lines.")
    shown, notes = _window(lines, arguments, total=len(lines))
    if not content.complete:
        notes.append(f"[only the first {len(content.data)} of {content.size} bytes were read]")
    if files.bounds.is_attached(path):
        return ToolOutput(text=FENCE.around("\n".join(shown), "\n".join(notes)), outside_content=True)
    return ToolOutput(text="\n".join([*shown, *notes]))


def _document(name: str, size: int, document: DocumentText, arguments: ReadArguments) -> ToolOutput:
    lines, ending = document.lines, document.ending
    why = WHY.get(ending, "") if ending is not None else ""
    if ending is Ending.NO_DOCUMENT:
        return _failed(f"{name} is no text file ({size} bytes), and {why}.")
    if not any(lines) or arguments.offset > len(lines):
        if why:
            read = f"Of {name} only {len(lines)} lines" if any(lines) else f"Nothing of {name}"
            return _failed(f"{read} can be read: {why}.")
        if not any(lines):
            return ToolOutput(text=f"{name} is {document.kind} without text; what it shows may be pictures.")
        return _failed(f"{name} has only {len(lines)} lines of text.")
    complete = ending is not None
    shown, notes = _window(lines, arguments, total=len(lines) if complete else None)
    if why and arguments.offset + len(shown) > len(lines):
        notes.append(f"[the rest is left out: {why}]")
    # Whoever attached or made the file, what is written in it may come from anybody.
    fenced = FENCE.around("\n".join(shown), "\n".join(notes))
    return ToolOutput(text=f"{name} is {document.kind}; its text:\n{fenced}", outside_content=True)


def _window(lines: Sequence[str], arguments: ReadArguments, *, total: int | None) -> tuple[list[str], list[str]]:
    """The numbered lines that are shown, and a note on how to go on; `total` is None when nobody knows it."""
    shown: list[str] = []
    room = MAX_SHOWN_CHARACTERS
    for number, line in enumerate(lines[arguments.offset - 1 :][: arguments.limit], start=arguments.offset):
        text = f"{number}\t{_cut(line)}"
        room -= len(text) + 1
        if room < 0:
            break
        shown.append(text)
    last = arguments.offset + len(shown) - 1
    if last >= len(lines) and total is not None:
        return shown, []
    of_all = f" of {total}" if total is not None else ""
    return shown, [f"[lines {arguments.offset} to {last}{of_all}; go on with offset {last + 1}]"]


def _cut(line: str) -> str:
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    return f"{line[:MAX_LINE_CHARACTERS]}… [{len(line) - MAX_LINE_CHARACTERS} characters more]"
