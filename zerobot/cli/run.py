"""`zerobot run`: the daemon in the foreground."""

from pathlib import Path
from typing import Annotated

import typer

from zerobot.cli.context import CliContext


def run(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="The configuration; else as for every command.", metavar="PATH"),
    ] = None,
) -> None:
    """Run the daemon with all enabled channels until SIGTERM or SIGINT; a second signal stops it at once."""
    import asyncio  # noqa: PLC0415 - this and what follows is loaded when it is needed

    from zerobot.cli.operate import load  # noqa: PLC0415
    from zerobot.cli.terminal.kind import terminal_channel  # noqa: PLC0415
    from zerobot.daemon.app import run_daemon  # noqa: PLC0415

    if config is not None:
        context.obj = CliContext(config=config)
    loaded = load(context)
    asyncio.run(run_daemon(loaded, extra_channels=terminal_channel(loaded)))
