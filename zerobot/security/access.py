"""The one decision about a tool call: it may run, an operator is asked, or it is blocked.

`RULES` is the whole of it, in its order; the first rule that answers wins. The order is also a promise of force:
rules of the first part can only block, of the second only ask, of the third only allow; the last one weighs the risk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from zerobot.core.access import VERDICT_MAKER, Autonomy, Grant, Verdict, VerdictKind
from zerobot.core.envelope import TurnOrigin
from zerobot.core.ids import ConversationId
from zerobot.core.places import Identity
from zerobot.core.tools import Effect, Execution, Risk
from zerobot.security.bounds import Bound, Bounds, within
from zerobot.security.commands import EXACTLY, CommandReading, grant_prefix, read_command, unmatched
from zerobot.security.policy import AccessPolicy

GRANT_LIFE = timedelta(days=30)
"""How long an "always in this chat" lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A resolved call, and who wants it in which circumstances."""

    tool: str
    execution: Execution
    asker: Identity | None
    """None when no person did: a schedule, the daemon itself."""
    conversation: ConversationId
    origin: TurnOrigin
    now: datetime
    """UTC; grants end."""
    read_outside_content: bool = False
    """Whether this turn has read what somebody else wrote."""
    place_named_by_user: bool = False
    """Whether the user's own words name the place that the call sends to or fetches from."""
    own_secrets: tuple[str, ...] = ()
    """The keys of the daemon's own secrets that stand in the arguments."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What a rule may look at."""

    request: ToolRequest
    policy: AccessPolicy
    grants: Sequence[Grant]
    reading: CommandReading | None
    """Of a shell line; None for other tools."""
    bound: Bound
    """The worst place that the call touches."""

    @property
    def execution(self) -> Execution:
        return self.request.execution

    @property
    def held(self) -> bool:
        """Whether a sandbox holds commands, or the owner has said that none shall."""
        return self.policy.sandbox.holds or self.policy.sandbox.declined


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a rule says; `evaluate_tool_access` makes the verdict of it."""

    kind: VerdictKind
    rule: str
    reason: str


Rule = Callable[[_Case], _Answer | None]


def evaluate_tool_access(request: ToolRequest, policy: AccessPolicy, grants: Sequence[Grant]) -> Verdict:
    """Decide on one call. Pure and total; `grants` may hold those of other conversations, they do not count."""
    line = request.execution.command
    reading = read_command(line) if line else None
    case = _Case(request, policy, grants, reading, _worst_bound(request.execution, policy.bounds))
    answer = next((found for rule in RULES if (found := rule(case)) is not None), None) or _by_risk(case)
    return Verdict(answer.kind, answer.rule, answer.reason, request.execution, VERDICT_MAKER)


def grantable(tool: str, execution: Execution, rule: str = "risk") -> bool:
    """Whether "always in this chat" may be offered: the risk alone asked, and a narrow enough pattern exists."""
    return rule == "risk" and execution.risk is not Risk.HIGH and grant_pattern(tool, execution) is not None


def grant_pattern(tool: str, execution: Execution) -> str | None:  # noqa: ARG001 - the tool is the grant's other half
    """What "always" would cover: a command prefix, a path root, a web site, "" for anything; None: nothing."""
    if execution.site:
        return execution.site
    if execution.command:
        return grant_prefix(read_command(execution.command)) or None
    if Effect.EXECUTE in execution.effects:
        return None
    roots = {path.parent for path in execution.writes} or {path.parent for path in execution.reads}
    if len(roots) > 1:
        return None
    return str(roots.pop()) if roots else ""


def covers(tool: str, execution: Execution, rule: str = "risk") -> str:
    """What "always" would allow, for people; empty where it is not offered."""
    pattern = grant_pattern(tool, execution)
    return grant_text(tool, pattern) if pattern is not None and grantable(tool, execution, rule) else ""


def grant_text(tool: str, pattern: str) -> str:
    """What a grant covers, for people."""
    if not pattern:
        return f"any call of {tool}"
    if pattern.startswith("/"):
        return f"{tool} in {pattern}"
    if pattern.startswith(("http://", "https://")):
        return f"{tool} from {pattern}"
    if pattern.startswith(EXACTLY):
        return f"{pattern.removeprefix(EXACTLY)} (this very command)"
    return f"{pattern} …"


# -- 1 to 4: can only block -------------------------------------------------------------------------------------------


def _freeze(case: _Case) -> _Answer | None:
    return _block("freeze", "everything is frozen by an operator") if case.policy.frozen else None


def _denied_tools(case: _Case) -> _Answer | None:
    if _listed(case.request.tool, case.policy.denied_tools):
        return _block("denied_tools", f"the tool {case.request.tool} is switched off")
    return None


def _read_only(case: _Case) -> _Answer | None:
    if case.policy.autonomy is Autonomy.READ_ONLY and not case.execution.effects <= {Effect.READ}:
        return _block("read_only", "only reading is allowed")
    return None


def _paths(case: _Case) -> _Answer | None:
    if case.bound in (Bound.OWN, Bound.FORBIDDEN):
        return _block("paths", "it touches a place that is out of bounds")
    # Of a shell line only the written words are known; there an operator may look at it.
    if case.bound is Bound.OUTSIDE and case.reading is None:
        return _block("paths", "it touches a place outside the workspace")
    return None


# -- 5 and 6: can only ask --------------------------------------------------------------------------------------------


def _own_secret(case: _Case) -> _Answer | None:
    names = case.request.own_secrets
    return _ask("own_secret", f"it holds a secret of the daemon's own: {', '.join(names)}") if names else None


def _always_ask(case: _Case) -> _Answer | None:
    if _listed(case.request.tool, case.policy.always_ask):
        return _ask("always_ask", f"an operator is always asked for {case.request.tool}")
    return None


def _leaves_workspace(case: _Case) -> _Answer | None:
    if case.reading is not None and case.bound is Bound.OUTSIDE:
        return _ask("outside_paths", "the command names a place outside the workspace")
    return None


def _git_internals(case: _Case) -> _Answer | None:
    # Its config and hooks name programs that git starts later.
    if any(".git" in map(str.casefold, path.parts) for path in case.execution.writes):
        return _ask("git_internals", "it changes what git will run")
    return None


def _outside_content(case: _Case) -> _Answer | None:
    request = case.request
    goes_out = bool(request.execution.effects & {Effect.SEND, Effect.NETWORK})
    if case.policy.ask_after_outside_content and request.read_outside_content and goes_out:
        if request.place_named_by_user:
            return None
        return _ask("outside_content", "this turn has read outside content, and the call goes to a place nobody named")
    return None


# -- 7 and 8: can only allow ------------------------------------------------------------------------------------------


def _allowed_commands(case: _Case) -> _Answer | None:
    reading, allowed = case.reading, case.policy.allowed_commands
    if reading is None or unmatched(allowed, reading):
        return None
    if not case.held and any(words not in allowed for words in reading.segments):
        # What a prefix lets through is held by the sandbox; without one the owner's own words count, and no more.
        return None
    if Effect.NETWORK in case.execution.effects and not reading.speaks_for_network:
        return None
    return _allow("allowed_commands", "every command of the line is allowed")


def _auto_approve(case: _Case) -> _Answer | None:
    if _listed(case.request.tool, case.policy.auto_approve):
        return _allow("auto_approve", f"{case.request.tool} needs no approval here")
    return None


def _granted(case: _Case) -> _Answer | None:
    request = case.request
    origins = {TurnOrigin.USER, TurnOrigin.SCHEDULE} if case.policy.grants_for_schedules else {TurnOrigin.USER}
    if request.origin not in origins or request.execution.risk is Risk.HIGH:
        return None
    if case.reading is not None and not case.held:
        return None
    live = [
        grant
        for grant in case.grants
        if grant.conversation == request.conversation and grant.tool == request.tool and _in_force(grant, request.now)
    ]
    if live and _covered(case, live):
        return _allow("grant", f"granted in this chat by {live[0].granted_by}")
    return None


def _full(case: _Case) -> _Answer | None:
    if case.policy.autonomy is not Autonomy.FULL:
        return None
    if Effect.EXECUTE in case.execution.effects and not case.held:
        return None
    return _allow("full", "the bot works on its own here")


# -- 9: the risk ------------------------------------------------------------------------------------------------------


def _by_risk(case: _Case) -> _Answer:
    execution, sandbox = case.execution, case.policy.sandbox
    if execution.risk is Risk.LOW and (Effect.EXECUTE not in execution.effects or sandbox.holds):
        return _allow("risk", "it only reads inside the bounds")
    if case.reading is None:
        return _ask("risk", f"its risk is {max(execution.risk, Risk.MEDIUM).name.lower()}")
    why = "there is no sandbox to hold it" if execution.risk is Risk.LOW else _why_command(case)
    return _ask("risk" if case.held else "no_sandbox", why)


RULES: tuple[Rule, ...] = (
    _freeze,
    _denied_tools,
    _read_only,
    _paths,
    _own_secret,
    _always_ask,
    _leaves_workspace,
    _git_internals,
    _outside_content,
    _allowed_commands,
    _auto_approve,
    _granted,
    _full,
)


# -- what the rules share ---------------------------------------------------------------------------------------------

_FORCE = (Bound.OWN, Bound.FORBIDDEN, Bound.OUTSIDE)


def _worst_bound(execution: Execution, bounds: Bounds) -> Bound:
    found = {bounds.judge(path) for path in (*execution.reads, *execution.writes)}
    return next((bound for bound in _FORCE if bound in found), Bound.INSIDE)


def _why_command(case: _Case) -> str:
    assert case.reading is not None, "only a shell line has a reading"
    if not case.reading.proved:
        # What it is that cannot be read stands in the call's own description.
        return "no rule covers a line that is not read with certainty"
    return f"not covered by a rule: {unmatched(case.policy.allowed_commands, case.reading)}"


def _listed(tool: str, names: Sequence[str]) -> bool:
    return any(fnmatchcase(tool.casefold(), name.casefold()) for name in names)


def _in_force(grant: Grant, now: datetime) -> bool:
    try:
        return now < datetime.fromisoformat(grant.expires_at)
    except (ValueError, TypeError):
        # An end that cannot be read is no promise that it is still to come.
        return False


def _covered(case: _Case, grants: Sequence[Grant]) -> bool:
    if case.reading is not None:
        prefixes = [tuple(each.pattern.split()) for each in grants if not each.pattern.startswith(EXACTLY)]
        exact = {tuple(each.pattern.removeprefix(EXACTLY).split()) for each in grants} - set(prefixes)
        # An exact one is no prefix: it speaks for its own segments, the others have to find something else.
        same = tuple(words for words in case.reading.segments if words in exact)
        rest = tuple(words for words in case.reading.segments if words not in exact)
        known = [*case.policy.allowed_commands, *prefixes]
        parts = [(same, same), (known, rest)] if same and rest else [(same, same)] if same else [(known, rest)]
        return not any(unmatched(allowed, replace(case.reading, segments=segments)) for allowed, segments in parts)
    if Effect.EXECUTE in case.execution.effects:
        return False
    if case.execution.site:
        return any(grant.pattern == case.execution.site for grant in grants)
    touched = (*case.execution.reads, *case.execution.writes)
    return any(
        not grant.pattern or (touched and all(within(path, Path(grant.pattern)) for path in touched))
        for grant in grants
    )


def _allow(rule: str, reason: str) -> _Answer:
    return _Answer(VerdictKind.ALLOW, rule, reason)


def _ask(rule: str, reason: str) -> _Answer:
    return _Answer(VerdictKind.ASK, rule, reason)


def _block(rule: str, reason: str) -> _Answer:
    return _Answer(VerdictKind.BLOCK, rule, reason)
