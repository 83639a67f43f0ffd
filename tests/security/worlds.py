"""A workspace, its guard and a policy, for tests."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.security.cases import Layout
from zerobot.core.access import Autonomy, Grant, Verdict
from zerobot.core.envelope import TurnOrigin
from zerobot.core.ids import CallId, ConversationId, TurnId
from zerobot.core.places import Identity
from zerobot.core.tools import Execution, Tool, ToolContext
from zerobot.security.access import ToolRequest, evaluate_tool_access
from zerobot.security.bounds import Bounds
from zerobot.security.paths import GuardedFiles
from zerobot.security.policy import AccessPolicy, bounds_of, command_prefixes
from zerobot.security.sandbox import SandboxKind, SandboxState
from zerobot.tools.registry import builtin_tools
from zerobot.tools.shell import ShellSettings

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
ANN = Identity("testing", "ann")
HERE = ConversationId(1)
OTHER = ConversationId(2)


class StillClock:
    """A clock that stands still; nobody waits by it."""

    def now(self) -> datetime:
        """The one time there is."""
        return NOW

    def monotonic(self) -> float:
        """No time passes."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Refuse to wait."""
        raise AssertionError(f"nothing waits {seconds} seconds by this clock")


def tools_of(bounds: Bounds, settings: ShellSettings | None = None) -> Mapping[str, Tool]:
    """The built-in tools over some bounds, by name."""
    tools = builtin_tools(GuardedFiles(bounds), settings or ShellSettings(), StillClock())
    return {tool.name: tool for tool in tools}


def context(progress: list[str] | None = None) -> ToolContext:
    """What a running tool is handed."""
    seen = progress if progress is not None else []
    return ToolContext(conversation=HERE, turn=TurnId("t1"), call=CallId("call_1"), progress=seen.append)


def case_bounds(layout: Layout) -> Bounds:
    """The bounds that a case configures."""
    own = [layout.state, layout.config, *map(Path, layout.fill_all("secret_files"))]
    return bounds_of(
        workspace=layout.workspace,
        allowed_paths=layout.fill_all("allowed_paths"),
        forbidden_paths=layout.fill_all("forbidden_paths"),
        own_paths=own,
    )


def case_policy(case: Mapping[str, Any], bounds: Bounds) -> AccessPolicy:
    """The policy that a case configures, with the sandbox declined: the line itself is what is judged."""
    return AccessPolicy(
        bounds=bounds,
        autonomy=Autonomy(case.get("autonomy", "supervised")),
        allowed_commands=command_prefixes(case.get("allowed_commands", [])),
        auto_approve=tuple(case.get("auto_approve", ())),
        always_ask=tuple(case.get("always_ask", ())),
        denied_tools=tuple(case.get("denied_tools", ())),
        sandbox=SandboxState(SandboxKind.OFF),
    )


def case_grants(case: Mapping[str, Any]) -> list[Grant]:
    """The grants that a case has."""
    return [
        grant(tool=entry["tool"], pattern=entry["prefix"], conversation=_number(entry["conversation"]))
        for entry in case.get("grants", [])
    ]


def case_conversation(case: Mapping[str, Any]) -> ConversationId:
    """The conversation that a case asks in."""
    return ConversationId(_number(case.get("conversation", "A")))


def _number(letter: str) -> int:
    return ord(letter) - ord("A") + 1


def grant(*, tool: str, pattern: str, conversation: int = HERE, expires_at: str = "2026-06-01T00:00:00+00:00") -> Grant:
    """A grant that is in force."""
    return Grant(
        id=1, conversation=conversation, tool=tool, pattern=pattern, granted_by="testing:olga", expires_at=expires_at
    )


def ask(
    tool: str,
    execution: Execution,
    policy: AccessPolicy,
    grants: Sequence[Grant] = (),
    *,
    conversation: ConversationId = HERE,
    origin: TurnOrigin = TurnOrigin.USER,
    outside: bool = False,
    named: bool = False,
) -> Verdict:
    """The verdict on one resolved call."""
    request = ToolRequest(
        tool=tool,
        execution=execution,
        asker=ANN,
        conversation=conversation,
        origin=origin,
        now=NOW,
        read_outside_content=outside,
        place_named_by_user=named,
    )
    return evaluate_tool_access(request, policy, grants)
