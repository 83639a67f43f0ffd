"""The commands of operators: approvals, pairing, conversations, grants, usage, and the emergency stop."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from zerobot.cli.output import as_json, rows_of, say, table
from zerobot.security.visible import escape, one_line

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]

WORKING = frozenset({"connected", "disconnected"})
"""States of a channel that need nobody: a broken connection is tried again. Any other is why it is parked."""

Session = Annotated[str, typer.Argument(metavar="ID", help="A number or a chat, as `sessions list` shows them.")]

approvals = typer.Typer(no_args_is_help=True, help="Tool calls that wait for an operator.")
pair = typer.Typer(no_args_is_help=True, help="Who may talk to the bot beyond the lists in the settings.")
sessions = typer.Typer(no_args_is_help=True, help="Conversations.")
grants = typer.Typer(no_args_is_help=True, help="What was allowed once and for all in a chat.")


def ask(
    context: typer.Context,
    method: str,
    params: Mapping[str, object],
    on_item: Callable[[Mapping[str, object]], None] | None = None,
) -> Mapping[str, object]:
    """Carry out one operation; the store is loaded only now."""
    from zerobot.cli.operate import load_state, operate  # noqa: PLC0415

    return operate(load_state(context), method, params, on_item)


def _session(ident: str) -> dict[str, object]:
    """Which conversation is meant."""
    return {"id": int(ident)} if ident.isascii() and ident.isdecimal() else {"chat": ident}


@approvals.command("list")
def approvals_list(context: typer.Context, *, json: AsJson = False) -> None:
    """Show what waits for a decision, with all arguments."""
    rows = rows_of(ask(context, "approvals.list", {}), "approvals")
    if json:
        say(as_json(rows))
        return
    if not rows:
        say("nothing waits for an approval")
    for row in rows:
        arguments = row.get("arguments")
        tool, asker, chat = (one_line(str(row[key])) for key in ("tool", "asked_by", "chat"))
        say(f"{row['code']}  {tool}  (asked by {asker} in {chat})")
        for name, value in arguments.items() if isinstance(arguments, dict) else ():
            text = value if isinstance(value, str) else as_json(value)
            # A line feed at the end begins no line; that it is there is told all the same.
            label = f"{one_line(name)} (with a line end)" if text.endswith("\n") else one_line(name)
            say("\n".join(f"    {label}: {line}" for line in escape(text.removesuffix("\n")).split("\n")))
        for label, key in (("does", "does"), ("why", "why"), ("held by", "held_by")):
            if row[key]:
                say(f"    {label}: {one_line(str(row[key]))}")
        say(f"    until {row['expires_at']}")


@approvals.command("approve")
def approvals_approve(context: typer.Context, ident: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Approve one tool call, by the code that `approvals list` shows."""
    result = ask(context, "approvals.decide", {"id": ident, "approve": True})
    say(f"approved: {escape(str(result['tool']))} ({result['code']})")


@approvals.command("deny")
def approvals_deny(
    context: typer.Context,
    ident: Annotated[str, typer.Argument(metavar="ID")],
    reason: Annotated[str, typer.Option(help="What the model is told.")] = "",
) -> None:
    """Deny one tool call, by the code that `approvals list` shows."""
    result = ask(context, "approvals.decide", {"id": ident, "approve": False, "reason": reason})
    say(f"denied: {escape(str(result['tool']))} ({result['code']})")


@pair.command("list")
def pair_list(context: typer.Context, *, json: AsJson = False) -> None:
    """Show who asks to be let in, who was, and which names are bound to whom."""
    result = ask(context, "pair.list", {})
    if json:
        say(as_json(result))
        return
    columns = {"state": "STATE", "code": "CODE", "identity": "ID", "name": "NAME", "channel": "CHANNEL"}
    say(table(rows_of(result, "pairings"), columns, "nobody was paired, and nobody asks to be"))
    if handles := rows_of(result, "handles"):
        say(f"\n{table(handles, {'handle': 'NAME IN A LIST', 'identity': 'IS', 'channel': 'CHANNEL'}, '')}")


@pair.command("approve")
def pair_approve(context: typer.Context, code: str) -> None:
    """Let in whoever was given this code."""
    result = ask(context, "pair.approve", {"code": code})
    say(f"{result['identity']} {escape(str(result['name']))} may talk to the bot on {result['channel']}")


@pair.command("revoke")
def pair_revoke(context: typer.Context, ident: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Shut somebody out again; ID as in `pair list`."""
    result = ask(context, "pair.revoke", {"identity": ident})
    still = result["still_in"]
    if isinstance(still, list) and still:
        say(f"the settings still let {result['identity']} in on {', '.join(still)}, by allowed_users or as an operator")
    else:
        say(f"{result['identity']} may no longer talk to the bot")


@sessions.command("list")
def sessions_list(context: typer.Context, *, json: AsJson = False) -> None:
    """Show all conversations, the latest first."""
    rows = rows_of(ask(context, "sessions.list", {}), "sessions")
    columns = {
        "id": "ID",
        "chat": "CHAT",
        "sender": "SENDER",
        "state": "STATE",
        "messages": "MESSAGES",
        "waiting": "WAITING",
        "last_activity": "LAST ACTIVITY",
    }
    say(as_json(rows) if json else table(rows, columns, "there are no conversations yet"))


@sessions.command("show")
def sessions_show(context: typer.Context, ident: Session) -> None:
    """Show a conversation and the last 20 messages of it."""
    messages: list[dict[str, object]] = []
    session = ask(context, "sessions.show", _session(ident), lambda item: messages.append(dict(item)))
    for key, value in session.items():
        say(f"{key}: {escape(str(value))}")
    for message in messages:
        say(f"\n[{message['at']}] {message['role']}:\n{escape(str(message['text']))}")
        calls = message.get("calls")
        for call in calls if isinstance(calls, list) else ():
            arguments = escape(as_json(call["arguments"]))
            say(f"  -> {escape(str(call['name']))} {arguments}: {call['code'] or call['state']}")


@sessions.command("export")
def sessions_export(context: typer.Context, ident: Session) -> None:
    """Write all that was said in a conversation to stdout, a JSON object a line."""
    import json  # noqa: PLC0415 - its name is that of an option above

    ask(context, "sessions.export", _session(ident), lambda item: say(json.dumps(item)))


@sessions.command("reset")
def sessions_reset(context: typer.Context, ident: Session) -> None:
    """Start a conversation afresh: what was said stays stored, but the model sees none of it."""
    ask(context, "sessions.reset", _session(ident))
    say(f"conversation {ident} starts afresh")


@grants.command("list")
def grants_list(context: typer.Context, *, json: AsJson = False) -> None:
    """Show what needs no approval because of an "always in this chat"."""
    rows = rows_of(ask(context, "grants.list", {}), "grants")
    columns = {
        "id": "ID",
        "tool": "TOOL",
        "covers": "WHAT",
        "chat": "CHAT",
        "granted_by": "BY",
        "expires_at": "UNTIL",
    }
    say(as_json(rows) if json else table(rows, columns, "there are no grants"))


@grants.command("revoke")
def grants_revoke(context: typer.Context, ident: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """End a grant now; ID as in `grants list`."""
    ask(context, "grants.revoke", {"id": ident})
    say(f"grant {ident} is revoked")


def usage(
    context: typer.Context,
    by: Annotated[
        str, typer.Option(help="Group by: day, model, channel, user, conversation, turn, purpose; several with commas.")
    ] = "",
    days: Annotated[int, typer.Option(min=1, help="How far back.")] = 30,
    *,
    json: AsJson = False,
) -> None:
    """Show how many tokens the models took, failed attempts included, and what they cost where the price is known."""
    names = [name.strip() for name in by.split(",") if name.strip()]
    result = ask(context, "usage", {"by": names, "days": days})
    if json:
        say(as_json(result))
        return
    columns = {name: name.upper() for name in names if name != "model"} | {
        "model": "MODEL",
        "calls": "CALLS",
        "failed": "FAILED",
        "unreported": "UNREPORTED",
        "input_tokens": "IN",
        "cache_read_tokens": "OF IT CACHED",
        "output_tokens": "OUT",
        "cost": "COST",
    }
    say(table(rows_of(result, "totals"), columns, f"no model was called in the last {days} days"))
    _say_budget(result)


def _say_budget(result: Mapping[str, object]) -> None:
    for limit in rows_of(result, "budget"):
        say(f"today (UTC): {limit['spent']} of {limit['limit']} spent, {limit['left']} left")


def audit(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many entries.")] = 50,
    who: Annotated[
        str, typer.Option(help="Only what this person decided or asked for; an id as /whoami tells it.")
    ] = "",
    did: Annotated[
        str, typer.Option(help="Only this: approval, approval.denied, tool.ran, pair, grant, freeze, ...")
    ] = "",
    days: Annotated[int, typer.Option(min=1, max=36_500, help="How far back.")] = 36_500,
    *,
    json: AsJson = False,
) -> None:
    """Show who asked for what, who decided it and by which rule it ran, and what was changed; the latest first."""
    rows = rows_of(ask(context, "audit", {"limit": limit, "who": who, "did": did, "days": days}), "entries")
    if json:
        say(as_json(rows))
        return
    columns = {
        "at": "AT",
        "by": "BY",
        "did": "DID",
        "to": "TO",
        "asked_by": "ASKED BY",
        "rule": "RULE",
        "outcome": "OUTCOME",
        "short": "DIGEST",
        "reason": "BECAUSE",
    }
    say(table([{**row, "short": str(row["digest"])[:12]} for row in rows], columns, "nothing is on record yet"))


def receipt(context: typer.Context, receipt: str, *, json: AsJson = False) -> None:
    """Check a receipt: which tool call it vouches for, or that it is forged; exit 1 if it proves nothing."""
    result = ask(context, "receipt", {"receipt": receipt.strip(" []").removeprefix("receipt:").strip()})
    if json:
        say(as_json(result))
        return
    say(f"genuine: made at {result['made_at']} for call {result['call']} of turn {result['turn']}")
    say(f"tool: {escape(str(result['tool']))}, outcome: {result['outcome']}")
    say(f"arguments: {escape(as_json(result['arguments']))}")
    say(f"the model read: {escape(str(result['text']))}")


def backup(context: typer.Context, path: Path) -> None:
    """Write a consistent copy of the database to PATH, also while the daemon works."""
    result = ask(context, "backup", {"path": str(path.expanduser().absolute())})
    say(f"{result['path']}: {result['bytes']:,} bytes")


def freeze(context: typer.Context) -> None:
    """Emergency stop: let no tool run, in any chat, until `unfreeze`."""
    ask(context, "freeze", {"frozen": True})
    say("frozen: no tool runs until: zerobot unfreeze")


def unfreeze(context: typer.Context) -> None:
    """Let tools run again, within their rules."""
    ask(context, "freeze", {"frozen": False})
    say("tools may run again, within their rules")


def status(context: typer.Context, *, json: AsJson = False) -> None:
    """Say whether a daemon runs and how its channels are; exit 1 if none runs, or if none of its channels can work."""
    from zerobot.cli.operate import load_state, running  # noqa: PLC0415

    result = running(load_state(context))
    states = result.get("channels") if result else None
    channels: Mapping[str, str] = states if isinstance(states, dict) else {}
    if json:
        say(as_json({"running": result is not None, **(result or {})}))
    elif result is None:
        say("no daemon runs; start one with: zerobot run")
    else:
        say(f"zerobot {result['version']} runs")
        for name, state in channels.items():
            say(f"channel {name}: {state if state in WORKING else f'parked: {escape(state)}'}")
        if result["frozen"]:
            say("all tools are frozen")
        _say_budget(result)
    if result is None or (channels and not any(state in WORKING for state in channels.values())):
        raise typer.Exit(1)
