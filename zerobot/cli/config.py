"""`zerobot config`: look at the configuration, check it, change it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from zerobot.cli.context import CliContext
from zerobot.config import editor
from zerobot.config.files import ConfigFile, find_config, read_config
from zerobot.config.json_schema import json_schema
from zerobot.config.kinds import installed_kinds
from zerobot.config.loader import examine, fault_lines, usable
from zerobot.core.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="Look at the configuration, check it, change it.")

CONFIG_ERROR = 2
"""The exit code of every command that meets a configuration it cannot use."""


@contextmanager
def _faults_end_it() -> Iterator[None]:
    """Print the faults of a configuration, a line each, and exit with 2."""
    try:
        yield
    except ConfigError as error:
        for line in error.faults:
            typer.echo(line, err=True)
        raise typer.Exit(CONFIG_ERROR) from None


def _file(context: typer.Context) -> ConfigFile | None:
    chosen: Path | None = context.obj.config if isinstance(context.obj, CliContext) else None
    path = find_config(chosen, os.environ)
    return read_config(path) if path is not None else None


@app.command()
def check(context: typer.Context) -> None:
    """Say what is wrong with the configuration, a line a fault; exit 2 if anything is."""
    from zerobot.daemon.start_warnings import foreseen  # noqa: PLC0415 - loads the tools

    kinds = installed_kinds()
    with _faults_end_it():
        file = _file(context)
        examined = examine(file, os.environ, kinds)
    loaded = usable(file, examined, os.environ, kinds)
    for line in fault_lines(file, examined):
        typer.echo(line, err=True)
    for warning in dict.fromkeys((*loaded.warnings, *foreseen(loaded))):
        typer.echo(f"warning: {warning}", err=True)
    if examined.faults:
        raise typer.Exit(CONFIG_ERROR)
    typer.echo(f"{file.path}: ok" if file else "no config file: the defaults count, with the demo model and no channel")


@app.command()
def show(context: typer.Context) -> None:
    """Print the configuration that counts and where each value comes from; secrets are masked."""
    with _faults_end_it():
        typer.echo(editor.show(_file(context), os.environ, installed_kinds()), nl=False)


@app.command()
def get(
    context: typer.Context, key: Annotated[str, typer.Argument(help="Dotted, for example agent.max_steps.")]
) -> None:
    """Print the value of one key, or all keys of a table."""
    with _faults_end_it():
        typer.echo(editor.get(_file(context), key, os.environ, installed_kinds()))


@app.command("set")
def set_key(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="Dotted, for example agent.max_steps.")],
    value: Annotated[str, typer.Argument(help='As TOML has it: 5, true, "text", ["a", "b"]; a text needs no quotes.')],
) -> None:
    """Change one key in the file; nothing is written if the result would not be valid."""
    with _faults_end_it():
        file = _file(context)
        if file is None:
            raise ConfigError(["there is no config file to change; write one with: zerobot init"])
        for warning in editor.set_value(file, key, value, os.environ, installed_kinds()):
            typer.echo(f"warning: {warning}", err=True)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, with the kinds that are installed."""
    typer.echo(json.dumps(json_schema(installed_kinds()), indent=2, ensure_ascii=False))
