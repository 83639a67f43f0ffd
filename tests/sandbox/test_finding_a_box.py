"""A box is believed because it was tried: each thing that comes through is found, and told."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sandbox.boxes import box_or_skip
from zerobot.sandbox.box import Box, Boxed, Needs, NoBox
from zerobot.sandbox.bubblewrap import Bubblewrap
from zerobot.sandbox.find import UnusableError, find_box, working_box
from zerobot.sandbox.landlock import Landlock
from zerobot.sandbox.probe import what_leaks
from zerobot.security.bounds import Bounds
from zerobot.security.policy import bounds_of
from zerobot.security.sandbox import NO_SANDBOX, SandboxKind


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with a workspace in it."""
    (tmp_path / "state/workspace").mkdir(parents=True)
    return tmp_path / "state"


@pytest.fixture
def bounds(state: Path) -> Bounds:
    return bounds_of(workspace=state / "workspace", own_paths=[state])


class Leaky:
    """A box that gives more than it was asked for."""

    def __init__(self, box: Box, needs: Needs) -> None:
        self.state = box.state
        self._box = box
        self._needs = needs

    @contextmanager
    def boxed(self, argv: tuple[str, ...], needs: Needs) -> Iterator[Boxed]:
        with self._box.boxed(argv, self._needs) as boxed:
            yield boxed


def test_without_a_box_everything_comes_through(bounds: Bounds, state: Path) -> None:
    """Each attempt works where nothing holds it: it can fail only by the box."""
    leaks = what_leaks(NoBox(NO_SANDBOX), bounds.workspace, state)
    assert leaks.split("; ") == [
        "files outside can be read",
        "files outside can be written",
        "TCP goes out",
        "UDP goes out",
        "other processes' variables can be read",
        "other processes can be ended",
        *(["the kernel's settings can be changed"] if os.access("/proc/sys/kernel/core_pattern", os.W_OK) else []),
    ]
    assert sorted(path.name for path in state.iterdir()) == ["workspace"]


@pytest.mark.parametrize("kind", [SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK])
def test_a_box_with_a_gap_is_found_out(kind: SandboxKind, bounds: Bounds, tmp_path: Path) -> None:
    """The network, or a place outside."""
    box = box_or_skip(kind, bounds)
    beside = tmp_path / "beside"
    beside.mkdir()
    needs = Needs(folder=bounds.workspace)
    assert what_leaks(box, bounds.workspace, beside) == ""
    networked = Leaky(box, replace(needs, network=True))
    assert what_leaks(networked, bounds.workspace, beside) == "TCP goes out; UDP goes out"
    reader = Leaky(box, replace(needs, outside=(beside,), changes=False))
    assert what_leaks(reader, bounds.workspace, beside) == "files outside can be read"
    writer = Leaky(box, replace(needs, outside=(beside,)))
    assert what_leaks(writer, bounds.workspace, beside) == "files outside can be read; files outside can be written"


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/bwrap"])
def test_a_box_that_cannot_be_started_is_none(program: str, bounds: Bounds, state: Path) -> None:
    """Also when its program is not there at all."""
    leaks = what_leaks(Bubblewrap(program, bounds), bounds.workspace, state)
    assert leaks.startswith("it cannot be started")


def test_the_first_that_holds_is_taken(bounds: Bounds, state: Path) -> None:
    """And where none does, the reasons of all are told."""
    state_of = find_box("auto", bounds, state).state
    holds = [kind for kind in (SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK) if _works(kind, bounds, state)]
    assert state_of.kind is (holds[0] if holds else SandboxKind.NONE)
    assert state_of.holds or ("bubblewrap:" in state_of.why and "landlock:" in state_of.why)


def test_off_is_nothing_at_all(bounds: Bounds, state: Path) -> None:
    """The owner's word counts; nothing is tried."""
    box = find_box("off", bounds, state)
    assert box.state.declined
    with box.boxed(("/bin/true",), Needs(folder=state)) as boxed:
        assert boxed == Boxed(argv=("/bin/true",))


def test_a_link_in_the_way_to_a_wall_cannot_be_kept(state: Path) -> None:
    """Somebody could put another one in its place, so no box is said to hold."""
    workspace = state / "workspace"
    (workspace / "link").symlink_to(state)
    bounds = bounds_of(workspace=workspace, forbidden_paths=["link/x"], own_paths=[state])
    for choice in ("auto", "bubblewrap"):
        found = find_box(choice, bounds, state).state
        assert not found.holds
        assert "link" in found.why or "not installed" in found.why


def test_landlock_alone_cannot_keep_a_wall_inside_the_workspace(state: Path) -> None:
    """It allows whole trees; rather than to hold half, it is not used."""
    bounds = bounds_of(workspace=state / "workspace", forbidden_paths=["private"], own_paths=[state])
    with pytest.raises(UnusableError):
        working_box(SandboxKind.LANDLOCK, bounds, state)


def test_landlock_that_is_refused_runs_nothing(bounds: Bounds) -> None:
    """A command is never run less confined than was asked."""
    box = Landlock(bounds)
    with box.boxed(("/bin/echo", "ran"), Needs(folder=bounds.workspace)) as boxed:
        broken = boxed.argv[4].replace('"read"', '"reed"')
        argv = (*boxed.argv[:4], broken, *boxed.argv[5:])
    leaks = what_leaks(_Fixed(argv), bounds.workspace, None)
    assert "could not be set up" in leaks


class _Fixed:
    state = NO_SANDBOX

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv

    @contextmanager
    def boxed(self, argv: tuple[str, ...], needs: Needs) -> Iterator[Boxed]:
        yield Boxed(argv=self._argv)


def _works(kind: SandboxKind, bounds: Bounds, state: Path) -> bool:
    try:
        return working_box(kind, bounds, state).state.kind is kind
    except UnusableError:
        return False
