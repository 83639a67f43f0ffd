"""Searching the text of files, within a time limit that holds for any pattern."""

import asyncio
import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from zerobot.core.messages import ResultCode
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
from zerobot.security.bounds import ATTACHMENTS
from zerobot.security.paths import GuardedFiles, PathRefusedError
from zerobot.tools.base import Arguments, ModelTool
from zerobot.tools.filetools import MAX_DEPTH, fits, is_binary, resolve_path

MAX_HITS = 200
MAX_FILE_BYTES = 2_000_000
MAX_TOTAL_BYTES = 100_000_000
MAX_LINE = 300
TIME_LIMIT = 4.0
"""Seconds for the whole search."""

_CHILD = Path(__file__).with_name("search_child.py")


class SearchArguments(Arguments):
    """Arguments of `search_files`."""

    pattern: str = Field(min_length=1, max_length=500, description="A regular expression (Python), line by line.")
    path: str = Field(default="", description="Folder or file, relative to the workspace; empty for the workspace.")
    glob: str = Field(default="", description="Only files whose name fits, for example *.py.")
    ignore_case: bool = Field(default=False, description="Take upper and lower case as the same.")


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    data: bytes


def search_tool(files: GuardedFiles) -> Tool:
    """The tool `search_files`."""

    def resolve(arguments: SearchArguments) -> Execution:
        try:
            with warnings.catch_warnings():
                # Python warns of patterns whose meaning may change one day; that is nobody's business here.
                warnings.simplefilter("ignore")
                re.compile(arguments.pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadArgumentsError(f"pattern is not a regular expression: {error}") from error
        path = resolve_path(files, arguments.path)

        async def run(_context: ToolContext) -> ToolOutput:
            return await _search(files, path, arguments)

        return Execution(
            run=run,
            description=f"Search {files.shown(path)} for a pattern",
            effects=frozenset({Effect.READ}),
            risk=Risk.LOW,
            accesses=Accesses((Access(str(path), Mode.READ, tree=True),)),
            reads=(path,),
        )

    return ModelTool(
        "search_files",
        "Search text files for a pattern. Shows file, line number and line.",
        SearchArguments,
        resolve,
    )


async def _search(files: GuardedFiles, path: Path, arguments: SearchArguments) -> ToolOutput:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(_CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    hits: list[str] = []
    try:
        async with asyncio.timeout(TIME_LIMIT), asyncio.TaskGroup() as group:
            feeding = group.create_task(_feed(child, files, path, arguments), name="search input")
            group.create_task(_collect(child, hits), name="search hits")
    except TimeoutError:
        return ToolOutput(
            text=_report(hits, "the search took too long and was ended"), ok=False, code=ResultCode.TIMEOUT
        )
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    failure = feeding.result()
    if failure:
        return ToolOutput(text=failure, ok=False)
    note = f"more than {MAX_HITS} hits; narrow the search" if len(hits) >= MAX_HITS else ""
    # What is found where people's attachments lie may be by anybody.
    attached = any(hit.startswith(f"{ATTACHMENTS}/") for hit in hits)
    return ToolOutput(text=_report(hits, note), outside_content=attached)


def _report(hits: list[str], note: str) -> str:
    lines = [*hits, f"[{note}]"] if note else hits
    return "\n".join(lines) or "No hits."


async def _feed(child: asyncio.subprocess.Process, files: GuardedFiles, path: Path, arguments: SearchArguments) -> str:
    """Hand files to the child; return what to tell the model when there is nothing to search in."""
    assert child.stdin is not None, "made with a pipe"
    order = {
        "pattern": arguments.pattern,
        "ignore_case": arguments.ignore_case,
        "max_hits": MAX_HITS,
        "max_line": MAX_LINE,
    }
    source = _files(files, path, arguments.glob)
    left = MAX_TOTAL_BYTES
    try:
        child.stdin.write(json.dumps(order).encode() + b"\n")
        while left > 0 and (file := await asyncio.to_thread(next, source, None)) is not None:
            left -= len(file.data)
            child.stdin.write(json.dumps({"name": file.name, "size": len(file.data)}).encode() + b"\n" + file.data)
            await child.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        return ""  # the child has found enough and left
    except PathRefusedError as error:
        return f"{files.shown(path)}: {error}"
    except FileNotFoundError:
        return f"{files.shown(path)} does not exist."
    except OSError as error:
        return f"{files.shown(path)}: {(error.strerror or 'it cannot be read').lower()}."
    finally:
        child.stdin.close()
    return ""


async def _collect(child: asyncio.subprocess.Process, hits: list[str]) -> None:
    assert child.stdout is not None, "made with a pipe"
    while line := await child.stdout.readline():
        hit = json.loads(line)
        hits.append(f"{hit['name']}:{hit['line']}: {hit['text']}")


def _files(files: GuardedFiles, path: Path, glob: str) -> Iterator[_File]:
    """The text files at or below a path that fit a glob, smaller ones only."""
    if not files.is_directory(path):
        yield _File(files.shown(path), files.read_bytes(path, MAX_FILE_BYTES).data)
        return
    for entry in files.walk(path, MAX_DEPTH):
        name = entry.path.relative_to(path).as_posix()
        if entry.kind != "file" or entry.size > MAX_FILE_BYTES or (glob and not fits(name, glob)):
            continue
        # A file that goes away or may not be read is no reason to give up the others.
        with suppress(OSError, PathRefusedError):
            data = files.read_bytes(entry.path, MAX_FILE_BYTES).data
            if not is_binary(data):
                yield _File(files.shown(entry.path), data)
