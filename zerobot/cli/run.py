"""`zerobot run`: the daemon in the foreground."""

import typer

from zerobot.core.loading import loading


def run(context: typer.Context) -> None:
    """Run the daemon with all enabled channels until SIGTERM or SIGINT; a second signal stops it at once."""
    with loading():
        import asyncio  # noqa: PLC0415 - this and what follows is loaded when it is needed

        from zerobot.cli.operate import load  # noqa: PLC0415
        from zerobot.cli.terminal.kind import terminal_channel  # noqa: PLC0415
        from zerobot.daemon.app import run_daemon  # noqa: PLC0415

        loaded = load(context)
    asyncio.run(run_daemon(loaded, extra_channels=terminal_channel(loaded)))
