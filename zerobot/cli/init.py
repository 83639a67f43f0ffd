"""`zerobot init`: writes a configuration by asking, or from its options."""

from pathlib import Path
from typing import Annotated

import typer

from zerobot.cli.context import CliContext
from zerobot.core.errors import ZerobotError


def init(
    context: typer.Context,
    channels: Annotated[
        list[str] | None, typer.Option("--channel", help="A platform to connect; may be repeated.", metavar="KIND")
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", help="An answer that would be asked for; may be repeated.", metavar="CHANNEL.KEY=VALUE"),
    ] = None,
    provider: Annotated[str, typer.Option(help="The kind of model API.", metavar="KIND")] = "",
    api_key: Annotated[str, typer.Option(help="Its key, or ${NAME} for an environment variable.")] = "",
    base_url: Annotated[str, typer.Option(help="Where it is, if not at its vendor.")] = "",
    model: Annotated[str, typer.Option(help="The provider's name for the model.")] = "",
    operators: Annotated[
        list[str] | None,
        typer.Option("--operator", help="Who may decide, as PLATFORM:ID; may be repeated.", metavar="ID"),
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; what has no option keeps its default.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there, without asking.")] = False,
) -> None:
    """Write a configuration by asking; nothing is overwritten unasked."""
    from zerobot.cli.wizard import Answers, Wizard  # noqa: PLC0415 - loaded when it is needed

    answers = Answers(
        channels=channels,
        values=tuple(values or ()),
        provider=provider,
        api_key=api_key,
        base_url=base_url,
        model=model,
        operators=tuple(operators or ()),
    )
    path = context.obj.config if isinstance(context.obj, CliContext) else None
    try:
        Wizard(answers, ask=not yes, force=force).run(path or Path("zerobot.toml"))
    except typer.Abort as error:
        # Ctrl-C, or an input that has ended: the cursor stands behind the question.
        typer.echo(err=True)
        raise ZerobotError("stopped, nothing was written; where nobody can answer, give options and --yes") from error
