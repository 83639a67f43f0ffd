"""`zerobot doctor`: checks everything by real calls."""

from typing import Annotated

import typer

from zerobot.cli.context import CliContext
from zerobot.cli.output import as_json, say
from zerobot.security.visible import one_line


def doctor(
    context: typer.Context, *, json: Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")] = False
) -> None:
    """Check the configuration, the state, the model and each channel by real calls; exit 1 if anything fails."""
    import asyncio  # noqa: PLC0415 - this and what follows is loaded when it is needed
    import os  # noqa: PLC0415

    from zerobot.daemon.examination import examine  # noqa: PLC0415

    path = context.obj.config if isinstance(context.obj, CliContext) else None
    findings = asyncio.run(examine(path, os.environ))
    if json:
        rows = [
            {"level": each.level, "subject": each.subject, "text": each.text, "advice": each.advice}
            for each in findings
        ]
        say(as_json(rows))
    else:
        for each in findings:
            advice = f"; {one_line(each.advice)}" if each.advice else ""
            say(f"{each.level:4}  {one_line(each.subject)}: {one_line(each.text)}{advice}")
    if any(each.level == "fail" for each in findings):
        raise typer.Exit(1)
