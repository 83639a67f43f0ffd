"""`zerobot chat`: its options."""

from typing import Annotated

import typer


def chat(
    context: typer.Context,
    message: Annotated[
        str | None,
        typer.Option(
            "-m", "--message", help="Say one thing, print the reply and exit; - reads it from stdin.", metavar="TEXT"
        ),
    ] = None,
) -> None:
    """Talk to the bot here in the terminal; without a configuration the built-in demo model answers."""
    from zerobot.cli.chat import talk_here  # noqa: PLC0415 - the daemon is loaded when it is needed
    from zerobot.cli.operate import load, load_state  # noqa: PLC0415

    raise typer.Exit(talk_here(load_state(context), message, lambda: load(context)))
