"""The access policy: what the owner configured, as plain frozen values."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zerobot.core.access import Autonomy
from zerobot.security.bounds import Bounds, within
from zerobot.security.program_tables import Words
from zerobot.security.programs import starts_others
from zerobot.security.sandbox import NO_SANDBOX, SandboxState


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy:
    """Everything that `evaluate_tool_access` weighs besides the call and the grants."""

    bounds: Bounds
    autonomy: Autonomy = Autonomy.SUPERVISED
    allowed_commands: tuple[Words, ...] = ()
    """Command prefixes, each a tuple of words as the shell would see them."""
    auto_approve: tuple[str, ...] = ()
    """Tool names; `*` at the end of one stands for any rest. The same in the two below."""
    always_ask: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()
    frozen: bool = False
    """The emergency stop: nothing runs."""
    sandbox: SandboxState = NO_SANDBOX
    ask_after_outside_content: bool = True
    grants_for_schedules: bool = False
    """Whether grants of a conversation also hold for turns that a schedule started in it."""


def bounds_of(
    *,
    workspace: Path,
    allowed_paths: Sequence[str] = (),
    forbidden_paths: Sequence[str] = (),
    own_paths: Sequence[Path] = (),
) -> Bounds:
    """Make canonical bounds: links are resolved now, relative paths are below the workspace, `~` is the home.

    A forbidden or own path is kept under both its names, as written and as resolved, so that a link to it
    cannot be put in its place later. It need not exist.
    """
    home = workspace.resolve()

    def place(text: str) -> Path:
        return home / Path(text).expanduser()

    def both(path: Path) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((path.absolute(), path.resolve())))

    return Bounds(
        workspace=home,
        allowed=tuple(place(text).resolve() for text in allowed_paths),
        forbidden=tuple(name for text in forbidden_paths for name in both(place(text))),
        own=tuple(name for path in own_paths for name in both(path)),
    )


def command_prefixes(lines: Sequence[str]) -> tuple[Words, ...]:
    """Split configured command prefixes into words at blanks; an empty one matches nothing and is left out."""
    return tuple(words for line in lines if (words := tuple(line.split())))


def policy_faults(policy: AccessPolicy, configured_commands: Sequence[str] = ()) -> list[str]:
    """Contradictions that an owner should hear of at the start, a sentence each; empty when there are none."""
    bounds = policy.bounds
    faults = [
        f"security.allowed_paths: {root} lies inside {wall}, which is forbidden; it stays closed"
        for root in bounds.allowed
        for wall in bounds.forbidden
        if within(root, wall)
    ]
    faults += [
        f"security.allowed_paths: {root} lies among the daemon's own files ({wall}); it stays closed"
        for root in bounds.allowed
        for wall in bounds.own
        if within(root, wall)
    ]
    faults += [
        f"security.forbidden_paths: {wall} holds the whole workspace; no file tool can work"
        for wall in bounds.forbidden
        if within(bounds.workspace, wall)
    ]
    faults += [
        "security.allowed_commands: an empty prefix allows nothing; remove it"
        for line in configured_commands
        if not line.strip()
    ]
    faults += [
        f"security.allowed_commands: {' '.join(words)!r} starts other programs, so it is asked for all the same"
        for words in policy.allowed_commands
        if starts_others(words[0])
    ]
    faults += [
        f"security.auto_approve: {name!r} is denied or always asked as well, which wins"
        for name in policy.auto_approve
        if name in (*policy.denied_tools, *policy.always_ask)
    ]
    if policy.autonomy is Autonomy.FULL and not (policy.sandbox.holds or policy.sandbox.declined):
        faults.append(
            'security.autonomy: "full" without a working sandbox still asks for shell; '
            'security.sandbox = "off" says that you accept the risk'
        )
    return faults
