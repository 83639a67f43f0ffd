"""The tool `shell`: one line, run by bash byte for byte as it was read and shown."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import Field

from zerobot.core.messages import ResultCode
from zerobot.core.tools import (
    EVERYTHING,
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
from zerobot.sandbox.box import Box, Needs, NoBox
from zerobot.sandbox.places import View, reach
from zerobot.security.bounds import Bound
from zerobot.security.commands import CommandReading, read_command
from zerobot.security.digest import sha256_hex
from zerobot.security.paths import BadPathError, GuardedFiles, PathRefusedError
from zerobot.security.programs import base_name, is_script_runner, runs_nothing
from zerobot.security.sandbox import NO_SANDBOX
from zerobot.security.visible import one_line
from zerobot.tools.base import Arguments, ModelTool
from zerobot.tools.filetools import resolve_path
from zerobot.tools.process import Command, Ended, Limits, run_command

MAX_COMMAND = 20_000
MAX_OPERAND_BYTES = 4_000_000
MAX_PROGRESS = 200
MISSING = "missing"
UNREADABLE = "unreadable"
MARK = "ZEROBOT_TOOL_CALL"
"""Set in the environment of every command, so that the command line of this program knows that a tool called it."""

# Naming a system program, or the null device, is not leaving the workspace.
_PROGRAMS = frozenset(map(Path, ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")))
_NULL = Path("/dev/null")

# Git reads programs to start from the repository's own configuration; these settings come before it. A folder that
# looks like a bare repository is none: its files are no `.git`, so they can be written like any other.
_GIT = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "safe.bareRepository": "explicit",
}


class ShellArguments(Arguments):
    """Arguments of `shell`."""

    command: str = Field(max_length=MAX_COMMAND, description="The command line, run by bash in workdir.")
    workdir: str = Field(default="", description="Folder, relative to the workspace; empty for the workspace.")
    timeout: int = Field(default=60, ge=1, le=600, description="Seconds after which it is ended.")
    network: bool = Field(default=False, description="Set it when the command needs the network.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    """How commands run."""

    bash: str = "/bin/bash"
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    """PATH of the commands."""
    language: str = "C.UTF-8"
    timezone: str = ""
    """TZ of the commands; empty: the system's."""
    limits: Limits = field(default_factory=Limits)
    box: Box = field(default_factory=lambda: NoBox(NO_SANDBOX))
    """What holds the commands."""


def shell_tool(files: GuardedFiles, settings: ShellSettings) -> Tool:
    """The tool `shell`."""

    def resolve(arguments: ShellArguments) -> Execution:
        _refuse_impossible(arguments.command)
        folder = resolve_path(files, arguments.workdir)
        if files.bounds.judge(folder) is not Bound.INSIDE:
            raise BlockedByToolError("workdir is out of bounds")
        reading = read_command(arguments.command)
        reads = (folder, *_targets(files, reading, folder))
        frozen, uncertain = _frozen_operands(files, reading, folder)
        networked = _networked(arguments, reading)
        needs = Needs(
            folder=folder,
            network=networked,
            outside=tuple(path for path in reads if files.bounds.judge(path) is Bound.OUTSIDE),
            changes=not reading.only_reads,
        )

        reached = reach(files.bounds, needs) if settings.box.state.holds else {}

        attached = any(files.bounds.is_attached(path) for path in reads)

        async def run(context: ToolContext) -> ToolOutput:
            output = await _run(files, settings, arguments, needs, context)
            # What came over the network, or from people's attachments, may have been written by somebody else.
            return replace(output, outside_content=networked or attached)

        return Execution(
            run=run,
            description=_describe(files, needs, reading, reached, uncertain=uncertain),
            effects=frozenset({Effect.EXECUTE, Effect.NETWORK} if networked else {Effect.EXECUTE}),
            risk=_risk(files, arguments, reading, reads),
            accesses=_accesses(files, reading),
            reads=tuple(dict.fromkeys((*reads, *reached))),
            command=arguments.command,
            frozen=frozen,
            # The command is ended by its own limit first, so that its output is not lost.
            timeout=arguments.timeout + 10.0,
        )

    boxed = " The network is there only when you set it. /tmp is private, and empty again in the next call."
    return ModelTool(
        "shell",
        "Run a command line with bash. Simple lines are easier to approve: plain programs joined by | && ; without "
        "variables, substitutions or redirections into files. Background processes end with the call."
        f"{boxed if settings.box.state.holds else ''}",
        ShellArguments,
        resolve,
    )


def environment(settings: ShellSettings, home: Path) -> Mapping[str, str]:
    """All variables that a command gets; none is taken from the daemon's own environment."""
    variables = {
        "PATH": settings.path,
        "HOME": str(home),
        "LANG": settings.language,
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": str(len(_GIT)),
        MARK: "1",
    }
    for number, (name, value) in enumerate(_GIT.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables | ({"TZ": settings.timezone} if settings.timezone else {})


# -- what a line would do ---------------------------------------------------------------------------------------------


def _refuse_impossible(line: str) -> None:
    if not line.strip():
        raise BadArgumentsError("command is empty")
    if "\0" in line:
        raise BadArgumentsError("command holds a NUL character")


def _targets(files: GuardedFiles, reading: CommandReading, folder: Path) -> tuple[Path, ...]:
    """Canonical paths that the line names, without the null device; what is no possible path is left out."""
    found: dict[Path, None] = {}
    for text in reading.targets():
        for form in dict.fromkeys((text, _home(text, files.bounds.workspace))):
            with suppress(BadPathError, PathRefusedError):
                found[files.canonical(form, folder)] = None
    return tuple(path for path in found if path.parent not in _PROGRAMS and path != _NULL)


def _home(text: str, home: Path) -> str:
    # HOME is the workspace; another user's home is named by the tilde form, which no grammar proves.
    return f"{home}{text[1:]}" if text == "~" or text.startswith("~/") else text


def _frozen_operands(files: GuardedFiles, reading: CommandReading, folder: Path) -> tuple[Mapping[str, str], bool]:
    """What the line executes or is fed, path -> SHA-256, and whether other files could change unseen.

    A file that is not there is recorded too: one that appears later was seen by nobody.
    """
    frozen: dict[str, str] = {}
    uncertain = not reading.runs_only_operands
    for text in reading.operands():
        seen, sure = _look_at(files, text, folder)
        frozen |= seen
        uncertain = uncertain or not sure
    # What only reads may be fed anything; what runs may run it.
    for text in () if reading.only_reads else reading.inputs:
        frozen |= _look_at(files, text, folder)[0]
    return frozen, uncertain


def _look_at(files: GuardedFiles, text: str, folder: Path) -> tuple[Mapping[str, str], bool]:
    """One operand as it stands now, and whether a change of it would be noticed."""
    try:
        path = files.canonical(text, folder)
    except (BadPathError, PathRefusedError):
        return {}, False
    if path.parent in _PROGRAMS:
        # A link of another name hides from the reading of the line what it starts.
        named = base_name(text) == base_name(path.name) and runs_nothing((path.name,))
        return {}, named or (is_script_runner(text) and is_script_runner(path.name))
    name = files.shown(path)
    try:
        content = files.read_bytes(path, MAX_OPERAND_BYTES)
    except PathRefusedError:
        return {}, False
    except (FileNotFoundError, NotADirectoryError):
        return {name: MISSING}, True
    except OSError:
        return {name: UNREADABLE}, False
    return {name: sha256_hex(content.data)}, content.complete


def _networked(arguments: ShellArguments, reading: CommandReading) -> bool:
    return arguments.network or reading.networked


def _risk(files: GuardedFiles, arguments: ShellArguments, reading: CommandReading, targets: tuple[Path, ...]) -> Risk:
    leaves = any(files.bounds.judge(path) is not Bound.INSIDE for path in targets)
    if leaves or _networked(arguments, reading):
        return Risk.HIGH
    return Risk.LOW if reading.only_reads else Risk.MEDIUM


def _accesses(files: GuardedFiles, reading: CommandReading) -> Accesses:
    if not reading.only_reads:
        return EVERYTHING
    roots = (files.bounds.workspace, *files.bounds.allowed)
    return Accesses(tuple(Access(str(root), Mode.READ, tree=True) for root in roots))


def _describe(
    files: GuardedFiles, needs: Needs, reading: CommandReading, reached: Mapping[Path, View], *, uncertain: bool
) -> str:
    where = files.shown(needs.folder)
    parts = [f"Run a command in {'the workspace' if where == '.' else where}"]
    if needs.network:
        parts.append("with the network")
    # The box lets it reach what its line names, and an operator should see what that is.
    by_view = {view: [files.shown(path) for path, how in reached.items() if how is view] for view in View}
    parts += [f"that may {view} {', '.join(by_view[view])}" for view in (View.CHANGE, View.READ) if by_view[view]]
    if not reading.proved:
        parts.append(f"that cannot be read with certainty ({reading.unproved})")
    if uncertain:
        parts.append("(files that it runs may change until then)")
    return " ".join(parts)


# -- running it -------------------------------------------------------------------------------------------------------


async def _run(
    files: GuardedFiles, settings: ShellSettings, arguments: ShellArguments, needs: Needs, context: ToolContext
) -> ToolOutput:
    if not files.is_directory(needs.folder):
        return ToolOutput(text=f"{files.shown(needs.folder)} is no folder.", ok=False)
    line = (settings.bash, "--norc", "--noprofile", "-c", arguments.command)
    with settings.box.boxed(line, needs) as boxed:
        command = Command(
            argv=boxed.argv,
            folder=needs.folder,
            environment={**environment(settings, files.bounds.workspace), **boxed.environment},
            seconds=float(arguments.timeout),
            limits=settings.limits,
        )
        ended = await run_command(command, lambda line: context.progress(one_line(line)[:MAX_PROGRESS]))
    return _output(replace(ended, left=0) if boxed.ends_the_rest else ended, arguments.timeout)


def _output(ended: Ended, seconds: int) -> ToolOutput:
    notes: list[str] = []
    if ended.timed_out:
        notes.append(f"[ended after {seconds} seconds, its time limit]")
    elif ended.status is None:
        notes.append("[it ended in an unknown way]")
    elif ended.status < 0:
        notes.append(f"[ended by signal {-ended.status}]")
    else:
        notes.append(f"[exit status {ended.status}]")
    if ended.left:
        notes.append(f"[{ended.left} background process{'es were' if ended.left > 1 else ' was'} ended]")
    body = ended.output.rstrip("\n")
    text = "\n".join([body, *notes] if body else notes)
    return ToolOutput(text=text, ok=ended.status == 0, code=ResultCode.TIMEOUT if ended.timed_out else None)
