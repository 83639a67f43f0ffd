"""Which box this machine has: each kind is tried, the first that holds is taken."""

from collections.abc import Callable, Mapping
from pathlib import Path

from zerobot.sandbox import confine
from zerobot.sandbox.box import Box, NoBox
from zerobot.sandbox.bubblewrap import Bubblewrap, find_program, options_of
from zerobot.sandbox.landlock import Landlock, walls_inside
from zerobot.sandbox.places import holes
from zerobot.sandbox.probe import what_leaks
from zerobot.security.bounds import Bounds
from zerobot.security.sandbox import SandboxKind, SandboxState

INSTALL = "install it by your system's packages (apt install bubblewrap, dnf install bubblewrap, …)"


class UnusableError(Exception):
    """A kind of box cannot be made here; `str(error)` says why, for the owner."""


def find_box(choice: str, bounds: Bounds, beside: Path | None) -> Box:
    """Find the box for commands. It takes some hundredths of a second: each kind is really started.

    Args:
        choice: `[security] sandbox`: auto, bubblewrap or off.
        bounds: What commands may reach.
        beside: An existing private folder outside the workspace, for the attempt; None: there is none.
    """
    if choice == "off":
        return NoBox(SandboxState(SandboxKind.OFF))
    missing: list[str] = []
    for kind in _MAKERS:
        if choice in ("auto", kind):
            try:
                return working_box(kind, bounds, beside)
            except UnusableError as error:
                missing.append(f"{kind}: {error}")
    return NoBox(SandboxState(SandboxKind.NONE, "; ".join(missing)))


def working_box(kind: SandboxKind, bounds: Bounds, beside: Path | None) -> Box:
    """One kind of box, tried out.

    Raises:
        UnusableError: It does not hold here.
    """
    box = _MAKERS[kind](bounds)
    leak = what_leaks(box, bounds.workspace, beside)
    if leak:
        raise UnusableError(leak)
    return box


def _bubblewrap(bounds: Bounds) -> Box:
    program = find_program()
    if program is None:
        raise UnusableError(f"it is not installed; {INSTALL}")
    if through := holes(bounds):
        raise UnusableError(f"{through[0]} is a link inside the workspace or an allowed path, and cannot be protected")
    return Bubblewrap(program, bounds, options_of(program))


def _landlock(bounds: Bounds) -> Box:
    if not confine.knows_processor():
        raise UnusableError("its filter of system calls is not written for this kind of processor")
    if confine.abi() < confine.NEEDED_ABI:
        raise UnusableError("the kernel's is missing, switched off or too old; it needs Linux 6.12")
    if inside := walls_inside(bounds):
        raise UnusableError(f"it cannot keep commands from {inside[0]} inside the workspace or an allowed path")
    return Landlock(bounds)


_MAKERS: Mapping[SandboxKind, Callable[[Bounds], Box]] = {
    SandboxKind.BUBBLEWRAP: _bubblewrap,
    SandboxKind.LANDLOCK: _landlock,
}
