"""`zerobot memory`: what the bot remembers, of whom, and how it is forgotten."""

from typing import Annotated

import typer

from zerobot.cli.operators import AsJson, ask
from zerobot.cli.output import as_json, rows_of, say, table

Number = Annotated[int, typer.Argument(metavar="ID", help="As `memory list` shows it.")]
Owner = Annotated[str, typer.Option(help="Only of this owner, as the list writes it.")]
COLUMNS = {"id": "ID", "owner": "OWNER", "kind": "KIND", "key": "KEY", "text": "TEXT"}

memory = typer.Typer(no_args_is_help=True, help="What the bot remembers.")


@memory.command("list")
def list_(
    context: typer.Context,
    owner: Owner = "",
    *,
    earlier: Annotated[bool, typer.Option("--all", help="Earlier versions too.")] = False,
    json: AsJson = False,
) -> None:
    """Show what is remembered, the newest first."""
    rows = rows_of(ask(context, "memory.list", {"owner": owner, "all": earlier}), "memories")
    say(as_json(rows) if json else table(rows, COLUMNS, "nothing is remembered yet"))


@memory.command()
def search(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="Words to look for.")],
    owner: Owner = "",
    *,
    json: AsJson = False,
) -> None:
    """Show what fits some words, the most relevant first."""
    rows = rows_of(ask(context, "memory.search", {"text": text, "owner": owner}), "memories")
    say(as_json(rows) if json else table(rows, {"relevance": "FITS", **COLUMNS}, "nothing fits"))


@memory.command()
def forget(context: typer.Context, ident: Number) -> None:
    """Delete an entry for good, with its earlier versions."""
    gone = ask(context, "memory.forget", {"id": ident})
    say(f"forgotten: {gone['key']} of {gone['owner']}")


@memory.command()
def restore(context: typer.Context, ident: Number) -> None:
    """Let an earlier version be the current one again; `memory list --all` shows them."""
    kept = ask(context, "memory.restore", {"id": ident})
    say(f"again: {kept['key']} of {kept['owner']}")


@memory.command()
def add(
    context: typer.Context,
    owner: Annotated[str, typer.Argument(help="person:KIND:ID, conversation:NUMBER or agent:NAME.")],
    key: Annotated[str, typer.Argument(help="What it is about, in a few words.")],
    text: Annotated[str, typer.Argument(help="What is to be remembered.")],
) -> None:
    """Let the bot remember something; what belongs to an agent reaches everybody who talks to it."""
    kept = ask(context, "memory.add", {"owner": owner, "key": key, "text": text})
    say(f"remembered as {kept['id']}: {kept['key']} of {kept['owner']}")
