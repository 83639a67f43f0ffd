"""The access table: what may happen with a call, rule by rule."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.security.worlds import HERE, OTHER, ask, context, grant, tools_of
from zerobot.core.access import Autonomy, Grant, VerdictKind
from zerobot.core.envelope import TurnOrigin
from zerobot.core.tools import Effect, Execution, Risk, ToolContext, ToolOutput
from zerobot.security.access import RULES, covers, grant_pattern, grantable
from zerobot.security.policy import AccessPolicy, bounds_of, command_prefixes, policy_faults
from zerobot.security.sandbox import SandboxKind, SandboxState

WS = Path("/srv/ws")
POLICY = AccessPolicy(
    bounds=bounds_of(
        workspace=WS, forbidden_paths=["/srv/ws/private"], own_paths=[Path("/srv"), Path("/srv/ws/z.toml")]
    ),
    sandbox=SandboxState(SandboxKind.OFF),
)
BOXED = replace(POLICY, sandbox=SandboxState(SandboxKind.BUBBLEWRAP))
UNHELD = replace(POLICY, sandbox=SandboxState(SandboxKind.NONE))
FULL = replace(POLICY, autonomy=Autonomy.FULL)
ALLOW, ASK, BLOCK = VerdictKind.ALLOW, VerdictKind.ASK, VerdictKind.BLOCK


async def _nothing(_context: ToolContext) -> ToolOutput:
    return ToolOutput(text="")


def call(risk: Risk, *effects: Effect, command: str = "", reads: str = "", writes: str = "") -> Execution:
    """A resolved call."""
    return Execution(
        run=_nothing,
        description="",
        effects=frozenset(effects),
        risk=risk,
        reads=(Path(reads),) if reads else (),
        writes=(Path(writes),) if writes else (),
        command=command,
    )


def shell(line: str, risk: Risk = Risk.MEDIUM, reads: str = "") -> Execution:
    """A resolved shell call."""
    return call(risk, Effect.EXECUTE, command=line, reads=reads)


def online(line: str) -> Execution:
    """A resolved shell call with the network."""
    return call(Risk.HIGH, Effect.EXECUTE, Effect.NETWORK, command=line)


READ = call(Risk.LOW, Effect.READ, reads="/srv/ws/a")
WRITE = call(Risk.MEDIUM, Effect.WRITE, writes="/srv/ws/src/a")
SEND = call(Risk.MEDIUM, Effect.SEND)
FETCH = call(Risk.MEDIUM, Effect.READ, Effect.NETWORK)
PLUGIN = call(Risk.MEDIUM)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    rule: str
    kind: VerdictKind
    execution: Execution
    policy: AccessPolicy = POLICY
    tool: str = "tool"
    grants: tuple[Grant, ...] = ()
    origin: TurnOrigin = TurnOrigin.USER
    outside: bool = False
    named: bool = False


def with_(**changes: Any) -> AccessPolicy:
    """The usual policy, changed."""
    return replace(POLICY, **changes)


PUSH = grant(tool="shell", pattern="git push")
SRC = grant(tool="write_file", pattern="/srv/ws/src")
ANY = grant(tool="plugin", pattern="")
GIT = command_prefixes(["git status"])

TABLE = [
    # 1: the emergency stop beats everything
    Row("freeze", BLOCK, READ, with_(frozen=True, autonomy=Autonomy.FULL, auto_approve=("*",))),
    # 2: denied tools, whatever allows them; without case, with patterns
    Row("denied_tools", BLOCK, READ, with_(denied_tools=("tool",), auto_approve=("tool",))),
    Row("denied_tools", BLOCK, READ, with_(denied_tools=("mcp_x_*",)), tool="MCP_x_do"),
    # 3: read_only
    Row("read_only", BLOCK, WRITE, with_(autonomy=Autonomy.READ_ONLY, auto_approve=("tool",))),
    Row("read_only", BLOCK, shell("git status"), with_(autonomy=Autonomy.READ_ONLY, allowed_commands=GIT)),
    Row("read_only", BLOCK, FETCH, with_(autonomy=Autonomy.READ_ONLY)),
    Row("risk", ALLOW, READ, with_(autonomy=Autonomy.READ_ONLY)),
    Row("risk", ASK, PLUGIN, with_(autonomy=Autonomy.READ_ONLY)),
    # 4: hard bounds
    Row("paths", BLOCK, call(Risk.LOW, Effect.READ, reads="/etc/passwd")),
    Row("paths", BLOCK, call(Risk.LOW, Effect.READ, reads="/srv/zerobot.db"), FULL),
    Row("paths", BLOCK, call(Risk.LOW, Effect.READ, reads="/srv/ws/z.toml")),
    Row("paths", BLOCK, call(Risk.LOW, Effect.READ, reads="/srv/ws/Private/x"), with_(auto_approve=("tool",))),
    Row("paths", BLOCK, shell("cat private/x", reads="/srv/ws/private/x"), with_(allowed_commands=(("cat",),))),
    # 5: always ask
    Row("always_ask", ASK, READ, replace(FULL, always_ask=("tool",), auto_approve=("tool",))),
    Row("always_ask", ASK, shell("git push"), with_(always_ask=("shell",)), tool="shell", grants=(PUSH,)),
    # 6: what an operator looks at, over lists and grants
    Row("outside_paths", ASK, shell("cat /etc/x", reads="/etc/x"), with_(allowed_commands=(("cat",),))),
    Row(
        "git_internals", ASK, call(Risk.MEDIUM, Effect.WRITE, writes="/srv/ws/.git/config"), with_(auto_approve=("*",))
    ),
    Row("outside_content", ASK, SEND, with_(auto_approve=("tool",)), outside=True),
    Row("outside_content", ASK, FETCH, tool="plugin", grants=(ANY,), outside=True),
    Row("auto_approve", ALLOW, SEND, with_(auto_approve=("tool",)), outside=True, named=True),
    Row("auto_approve", ALLOW, SEND, with_(auto_approve=("tool",), ask_after_outside_content=False), outside=True),
    Row("risk", ALLOW, READ, outside=True),
    # 7: lists and grants
    Row("allowed_commands", ALLOW, shell("git status -s && git status"), with_(allowed_commands=GIT)),
    Row("risk", ASK, shell("git status; rm x"), with_(allowed_commands=GIT)),
    Row("risk", ASK, shell("git status $X"), with_(allowed_commands=GIT)),
    Row("auto_approve", ALLOW, WRITE, with_(auto_approve=("tool",))),
    Row("grant", ALLOW, shell("git push origin"), tool="shell", grants=(PUSH,)),
    Row("grant", ALLOW, shell("git status | git push"), with_(allowed_commands=GIT), tool="shell", grants=(PUSH,)),
    Row("grant", ALLOW, WRITE, tool="write_file", grants=(SRC,)),
    Row("grant", ALLOW, PLUGIN, tool="plugin", grants=(ANY,)),
    Row("grant", ALLOW, PLUGIN, with_(grants_for_schedules=True), "plugin", (ANY,), TurnOrigin.SCHEDULE),
    Row("risk", ASK, PLUGIN, tool="plugin", grants=(ANY,), origin=TurnOrigin.SCHEDULE),
    Row("risk", ASK, PLUGIN, tool="plugin", grants=(ANY,), origin=TurnOrigin.NESTED),
    Row("risk", ASK, PLUGIN, with_(grants_for_schedules=True), "plugin", (ANY,), TurnOrigin.NESTED),
    Row("risk", ASK, PLUGIN, tool="plugin", grants=(replace(ANY, conversation=OTHER),)),
    Row("risk", ASK, PLUGIN, tool="plugin", grants=(replace(ANY, expires_at="2026-05-01T12:00:00+00:00"),)),
    Row("risk", ASK, PLUGIN, tool="plugin", grants=(replace(ANY, expires_at="some day"),)),
    Row("risk", ASK, PLUGIN, tool="plugin", grants=(replace(ANY, expires_at="2099-01-01"),)),
    Row("risk", ASK, PLUGIN, tool="other", grants=(ANY,)),
    Row("risk", ASK, shell("git pushx"), tool="shell", grants=(PUSH,)),
    Row("risk", ASK, shell("make"), tool="shell", grants=(replace(PUSH, pattern=""),)),
    Row("risk", ASK, shell("bash x.sh"), tool="shell", grants=(replace(PUSH, pattern="bash"),)),
    Row("risk", ASK, call(Risk.MEDIUM, Effect.WRITE, writes="/srv/ws/src2/a"), tool="write_file", grants=(SRC,)),
    Row("risk", ASK, call(Risk.HIGH), tool="plugin", grants=(ANY,)),
    # 8: full autonomy; a shell needs a sandbox, or the owner's word that there shall be none
    Row("full", ALLOW, WRITE, FULL),
    Row("full", ALLOW, shell("make"), FULL),
    Row("full", ALLOW, shell("make"), replace(BOXED, autonomy=Autonomy.FULL)),
    Row("no_sandbox", ASK, shell("make"), replace(UNHELD, autonomy=Autonomy.FULL)),
    # 9: the risk
    Row("risk", ALLOW, READ),
    Row("risk", ASK, WRITE),
    Row("risk", ASK, call(Risk.HIGH)),
    Row("risk", ALLOW, shell("cat a", Risk.LOW), BOXED),
    Row("risk", ASK, shell("cat a", Risk.LOW)),
    Row("risk", ASK, shell("make"), BOXED),
    # without a sandbox, unless the owner wants none, only what is listed word for word runs unasked
    Row("no_sandbox", ASK, shell("cat a", Risk.LOW), UNHELD),
    Row("no_sandbox", ASK, shell("make"), UNHELD),
    Row("no_sandbox", ASK, shell("git push"), UNHELD, grants=(PUSH,)),
    Row("grant", ALLOW, shell("git push"), BOXED, grants=(PUSH,)),
    Row("grant", ALLOW, WRITE, UNHELD, "write_file", (SRC,)),
    Row("allowed_commands", ALLOW, shell("git status && git status"), replace(UNHELD, allowed_commands=GIT)),
    Row("no_sandbox", ASK, shell("git status -s"), replace(UNHELD, allowed_commands=GIT)),
    # the network is not allowed by a list that does not speak of it
    Row("risk", ASK, online("make test"), with_(allowed_commands=(("make",),))),
    Row("risk", ASK, online("git fetch && make"), with_(allowed_commands=(("git", "fetch"), ("make",)))),
    Row("allowed_commands", ALLOW, online("git fetch | tail"), with_(allowed_commands=(("git", "fetch"), ("tail",)))),
    Row("allowed_commands", ALLOW, online("curl https://x"), with_(allowed_commands=(("curl",),))),
]


@pytest.mark.parametrize("row", TABLE, ids=[f"{n}-{row.rule}-{row.kind.value}" for n, row in enumerate(TABLE)])
def test_the_first_rule_that_answers_wins(row: Row) -> None:
    """Each row of the table is what the policy says."""
    tool = "shell" if row.execution.command else row.tool
    verdict = ask(tool, row.execution, row.policy, row.grants, origin=row.origin, outside=row.outside, named=row.named)
    assert (verdict.rule, verdict.kind) == (row.rule, row.kind)
    assert verdict.reason


def test_a_block_teaches_no_way_around() -> None:
    """What the model reads names no setting and no path."""
    for row in TABLE:
        if row.kind is BLOCK:
            verdict = ask(row.tool, row.execution, row.policy)
            assert verdict.kind is BLOCK
            assert not any(word in verdict.reason for word in ("denied_", "autonomy", "allowed_", "config", "/"))


def test_the_rules_keep_their_order() -> None:
    """The order is the policy: blocking, then asking, then allowing rules."""
    assert [rule.__name__ for rule in RULES] == [
        "_freeze",
        "_denied_tools",
        "_read_only",
        "_paths",
        "_own_secret",
        "_always_ask",
        "_leaves_workspace",
        "_git_internals",
        "_outside_content",
        "_allowed_commands",
        "_auto_approve",
        "_granted",
        "_full",
    ]


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("git push origin main", "git push"),
        ("git push && git push --tags", "git push"),
        ("ls -la src | ls", "ls"),
        ("rm -rf build", "=rm -rf build"),
        ("date", "=date"),
        ("date && date", "=date"),
        ("git push && rm x", None),
        ("git -c a=b push", None),
        ("bash -c ls", None),
        ("sudo ls", None),
        ("env ls", None),
        ("xargs ls", None),
        ("python3 x.py", None),
        ("./run.sh", None),
        ("echo $X", None),
        ("touch 'a b'", None),
        ("find . -delete", None),
        ("zerobot approvals list", None),
    ],
)
def test_always_covers_as_little_as_is_of_use(line: str, pattern: str | None) -> None:
    """A prefix of words, and never an interpreter, a shell, a wrapper or an unread line."""
    assert grant_pattern("shell", shell(line)) == pattern
    assert grantable("shell", shell(line)) is (pattern is not None)


def test_always_for_a_program_that_may_write_is_for_that_line_alone() -> None:
    """One more word is another command; beside others in a line it still speaks only for itself."""
    only = [grant(tool="shell", pattern="=date", conversation=HERE)]
    assert ask("shell", shell("date"), POLICY, only).rule == "grant"
    for line in ("date -u", "date 010203042020", "date && date -u", "date; touch x"):
        assert ask("shell", shell(line), POLICY, only).kind is ASK, line
    both = [*only, grant(tool="shell", pattern="git push", conversation=HERE)]
    assert ask("shell", shell("date && git push origin"), POLICY, both).rule == "grant"


def test_always_says_what_it_allows() -> None:
    """In words for the prompt; nothing where it is not offered."""
    assert covers("shell", shell("git push origin main")) == "git push …"
    assert covers("shell", shell("rm -rf build")) == "rm -rf build (this very command)"
    assert covers("write_file", WRITE) == "write_file in /srv/ws/src"
    assert covers("plugin", PLUGIN) == "any call of plugin"
    assert covers("shell", shell("bash x.sh")) == ""
    assert covers("write_file", WRITE, "always_ask") == ""


def test_always_for_files_covers_a_folder() -> None:
    """The folder of the file; nothing for calls of high risk or those that another rule asks for."""
    assert grant_pattern("write_file", WRITE) == "/srv/ws/src"
    assert grant_pattern("plugin", PLUGIN) == ""
    assert not grantable("plugin", call(Risk.HIGH))
    assert not grantable("write_file", WRITE, "always_ask")


def test_always_for_the_web_covers_one_place() -> None:
    """Scheme, host and port; no other place, and not the whole tool by a grant of another kind."""
    page = replace(FETCH, site="https://example.org")
    assert grant_pattern("fetch_url", page) == "https://example.org"
    assert covers("fetch_url", page) == "fetch_url from https://example.org"
    granted = [grant(tool="fetch_url", pattern="https://example.org")]
    assert ask("fetch_url", page, POLICY, granted).rule == "grant"
    for other in ("http://example.org", "https://example.org:8443", "https://example.org.evil.test"):
        assert ask("fetch_url", replace(FETCH, site=other), POLICY, granted).kind is ASK
    assert ask("fetch_url", page, POLICY, [grant(tool="fetch_url", pattern="")]).kind is ASK
    assert ask("fetch_url", page, POLICY, granted, outside=True).rule == "outside_content"


def test_what_was_offered_as_always_then_allows_the_same_call(tmp_path: Path) -> None:
    """A grant made from a call covers that call."""
    bounds = bounds_of(workspace=tmp_path)
    policy = AccessPolicy(bounds=bounds, sandbox=SandboxState(SandboxKind.OFF))
    for tool, arguments in (
        ("shell", {"command": "git push origin main"}),
        ("write_file", {"path": "sub/a", "content": ""}),
        ("edit_file", {"path": "sub/a", "old_text": "a", "new_text": "b"}),
    ):
        execution = tools_of(bounds)[tool].resolve(arguments)
        assert ask(tool, execution, policy).kind is ASK
        pattern = grant_pattern(tool, execution)
        assert pattern is not None
        assert ask(tool, execution, policy, [grant(tool=tool, pattern=pattern, conversation=HERE)]).rule == "grant"


def test_contradictions_are_found() -> None:
    """Each fault is a sentence that names its setting; a sound policy has none."""
    assert policy_faults(POLICY) == []
    bounds = bounds_of(
        workspace=WS, allowed_paths=["/data/x", "/state/y"], forbidden_paths=["/data"], own_paths=[Path("/state")]
    )
    faults = policy_faults(
        AccessPolicy(
            bounds=bounds,
            autonomy=Autonomy.FULL,
            sandbox=SandboxState(),
            auto_approve=("shell",),
            denied_tools=("shell",),
        ),
        [" "],
    )
    assert [fault.split(":")[0] for fault in faults] == [
        "security.allowed_paths",
        "security.allowed_paths",
        "security.allowed_commands",
        "security.auto_approve",
        "security.autonomy",
    ]
    wrapper = replace(POLICY, allowed_commands=command_prefixes(["xargs rm", "git status"]))
    assert [fault for fault in policy_faults(wrapper) if "'xargs rm'" in fault] == policy_faults(wrapper) != []
    closed = AccessPolicy(bounds=bounds_of(workspace=WS, forbidden_paths=["/srv"]))
    assert "holds the whole workspace" in policy_faults(closed)[0]


async def test_the_sandbox_is_told_truthfully() -> None:
    """None, off, or what it is."""
    assert "none works" in str(SandboxState())
    assert "switched off" in str(SandboxState(SandboxKind.OFF))
    assert "bubblewrap" in str(SandboxState(SandboxKind.BUBBLEWRAP))
    assert (await READ.run(context())).ok
