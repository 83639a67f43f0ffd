"""The command `zerobot`: which commands there are, and how what goes wrong is told. No traceback reaches a user."""

import contextlib
import errno
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, TextIO

import typer

from zerobot.cli import operators
from zerobot.cli.chat_command import chat
from zerobot.cli.config import CONFIG_ERROR
from zerobot.cli.config import app as config
from zerobot.cli.context import CliContext
from zerobot.cli.doctor import doctor
from zerobot.cli.guard import refuse_marked
from zerobot.cli.init import init
from zerobot.cli.memory import memory
from zerobot.cli.run import run
from zerobot.core.errors import ConfigError, ZerobotError

DEBUG = "ZEROBOT_DEBUG"
READER_LEFT = 141
"""What a shell shows for a program that SIGPIPE ended."""
FAULT = 70
"""EX_SOFTWARE of sysexits.h: the fault is ours."""

app = typer.Typer(
    name="zerobot",
    help="A small daemon that answers where you already chat, and asks an operator before anything risky runs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(chat)
app.command()(init)
app.command()(doctor)
app.command()(operators.status)
app.add_typer(config, name="config")
app.add_typer(operators.pair, name="pair")
app.add_typer(operators.approvals, name="approvals")
app.add_typer(operators.grants, name="grants")
app.add_typer(memory, name="memory")
app.add_typer(operators.sessions, name="sessions")
app.command()(operators.usage)
app.command()(operators.audit)
app.command()(operators.receipt)
app.command()(operators.backup)
app.command()(operators.freeze)
app.command()(operators.unfreeze)


CONFIG_ANYWHERE = "--config PATH, here or before the command, names the configuration."


def _complete_help(group: typer.Typer, *, top: bool = True) -> None:
    """Show summaries whole, whatever the width, and the one option that every command takes beside its own."""
    for command in group.registered_commands:
        assert command.callback is not None, "commands are functions"
        command.short_help = (command.callback.__doc__ or "").partition("\n")[0]
        command.epilog = CONFIG_ANYWHERE
    for inner in group.registered_groups if top else ():
        assert inner.typer_instance is not None, "groups are added whole"
        _complete_help(inner.typer_instance, top=False)


_complete_help(app)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - the shape of a callback
    if wanted:
        typer.echo(f"zerobot {version('zerobot')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="The configuration; else $ZEROBOT_CONFIG, ./zerobot.toml, or the user's.", metavar="PATH"),
    ] = None,
    *,
    show_version: Annotated[  # noqa: ARG001 - its callback has answered it
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before the command."""
    refuse_marked(os.environ)
    context.obj = CliContext(config=config)


def main() -> None:
    """Run the command line; the process ends here."""
    _open_closed_streams()
    status = _run()
    try:
        sys.stdout.flush()
    except OSError as error:
        status = status or _told(error)
    for stream in (sys.stdout, sys.stderr):
        _give_up_unwritten(stream)
    sys.exit(status)


def _run() -> int:
    """Run the command; the exit status."""
    try:
        app(hoisted(sys.argv[1:]), prog_name="zerobot")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except KeyboardInterrupt:
        return 130
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - the boundary to people: they get a sentence
        return _told(error)
    return 0


def _open_closed_streams() -> None:
    """Give the process the standard streams that it was started without: no file may come to bear their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is taken, and that is this one.
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))


def _give_up_unwritten(stream: TextIO) -> None:
    """Let the interpreter's own flush at its end find nothing to complain about."""
    try:
        stream.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def hoisted(arguments: list[str]) -> list[str]:
    """Bring `--config PATH` before the command, wherever in the line it stands."""
    for place, argument in enumerate(arguments):
        if argument == "--":
            break
        taken = 2 if argument == "--config" else 1 if argument.startswith("--config=") else 0
        if taken:
            rest = arguments[:place] + arguments[place + taken :]
            return [*arguments[place : place + taken], *rest]
    return arguments


def _told(error: BaseException) -> int:
    """Say on stderr what went wrong, in one line; the exit status."""
    if os.environ.get(DEBUG):
        raise error
    cause = _cause(error)
    match cause:
        case ConfigError():
            typer.echo("\n".join(cause.faults), err=True)
            return CONFIG_ERROR
        case ZerobotError():
            typer.echo(f"zerobot: {cause}", err=True)
            return 1
        case KeyboardInterrupt():
            return 130
        case BrokenPipeError():
            # Whoever read us has enough.
            return READER_LEFT
        case OSError(errno=errno.ENOSPC | errno.EIO | errno.EBADF, filename=None):
            with contextlib.suppress(OSError):
                typer.echo(f"zerobot: cannot write: {cause.strerror}", err=True)
            return 1
    typer.echo(f"zerobot: a fault of its own: {type(cause).__name__}: {cause}; {DEBUG}=1 shows where", err=True)
    return FAULT


def _cause(error: BaseException) -> BaseException:
    """The first error in a group that says something; tasks that ended together come as a group."""
    while isinstance(error, BaseExceptionGroup):
        known, rest = error.split(ZerobotError)
        error = (known or rest or error).exceptions[0]
    return error
