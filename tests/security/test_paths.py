"""The guard over files: what is judged is what is opened."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.security.bounds import Bound, Bounds, within
from zerobot.security.paths import BadPathError, GuardedFiles, PathRefusedError
from zerobot.security.policy import bounds_of


@pytest.fixture
def files(tmp_path: Path) -> GuardedFiles:
    """A guard over `ws`; beside it lie `data`, which is allowed but for `data/private`, and `out`."""
    for name in ("ws/sub", "data/private", "out"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "out" / "secret").write_text("SECRET")
    (tmp_path / "data" / "private" / "x").write_text("SECRET")
    (tmp_path / "ws" / "a").write_text("inside")
    return GuardedFiles(
        bounds_of(
            workspace=tmp_path / "ws",
            allowed_paths=[str(tmp_path / "data")],
            forbidden_paths=[str(tmp_path / "data" / "private")],
            own_paths=[tmp_path / "ws" / "zerobot.toml"],
        )
    )


@pytest.mark.parametrize(
    ("path", "bound"),
    [
        ("ws/a", Bound.INSIDE),
        ("data/x", Bound.INSIDE),
        ("data/private/x", Bound.FORBIDDEN),
        ("data/PRIVATE/x", Bound.FORBIDDEN),
        ("ws/zerobot.toml", Bound.OWN),
        ("ws-evil/a", Bound.OUTSIDE),
        ("out/secret", Bound.OUTSIDE),
    ],
)
def test_the_strictest_bound_counts(files: GuardedFiles, tmp_path: Path, path: str, bound: Bound) -> None:
    """Own, then forbidden, then allowed; a name that only begins alike is another one."""
    assert files.bounds.judge(tmp_path / path) is bound


def test_the_workspace_is_carved_out_of_the_state_directory() -> None:
    """The rest of the state directory stays closed, also when it is allowed by mistake."""
    bounds = Bounds(workspace=Path("/state/workspace"), allowed=(Path("/state"),), own=(Path("/state"),))
    assert bounds.judge(Path("/state/workspace/a")) is Bound.INSIDE
    assert bounds.judge(Path("/state/zerobot.db")) is Bound.OWN


@pytest.mark.parametrize("path", ["out/secret", "data/private/x", "ws/zerobot.toml"])
def test_no_operation_reaches_what_is_out_of_bounds(files: GuardedFiles, tmp_path: Path, path: str) -> None:
    """The guard judges again by itself, whatever the policy said before."""
    place = tmp_path / path
    with pytest.raises(PathRefusedError):
        files.read_bytes(place, 10)
    with pytest.raises(PathRefusedError):
        files.write_text(place, "x")
    with pytest.raises(PathRefusedError):
        files.list_dir(place)
    assert not files.is_directory(place)


def test_a_link_that_was_put_in_the_way_is_not_followed(files: GuardedFiles, tmp_path: Path) -> None:
    """As the file, as its folder, or as a missing parent."""
    place = files.canonical("sub/secret")
    (tmp_path / "ws" / "sub").rmdir()
    (tmp_path / "ws" / "sub").symlink_to(tmp_path / "out")
    with pytest.raises(PathRefusedError, match="link"):
        files.read_bytes(place, 10)
    with pytest.raises(PathRefusedError, match="link"):
        files.write_text(place, "x")
    with pytest.raises(PathRefusedError, match="link"):
        files.write_text(place / "deep" / "x", "x")
    (tmp_path / "ws" / "a").unlink()
    (tmp_path / "ws" / "a").symlink_to(tmp_path / "out" / "secret")
    with pytest.raises(PathRefusedError, match="link"):
        files.read_bytes(tmp_path / "ws" / "a", 10)
    with pytest.raises(PathRefusedError):
        files.write_text(tmp_path / "ws" / "a", "x")
    assert (tmp_path / "out" / "secret").read_text() == "SECRET"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["secret"]


def test_only_regular_files_are_read_and_replaced(files: GuardedFiles, tmp_path: Path) -> None:
    """A pipe does not make the bot wait, a folder is said to be one."""
    os.mkfifo(tmp_path / "ws" / "pipe")
    with pytest.raises(PathRefusedError, match="regular"):
        files.read_bytes(tmp_path / "ws" / "pipe", 10)
    with pytest.raises(PathRefusedError, match="regular"):
        files.write_text(tmp_path / "ws" / "pipe", "x")
    with pytest.raises(IsADirectoryError):
        files.read_bytes(tmp_path / "ws" / "sub", 10)
    with pytest.raises(IsADirectoryError):
        files.write_text(tmp_path / "ws", "x")


def test_reading_stops_at_its_limit(files: GuardedFiles) -> None:
    """The size of the whole is told."""
    content = files.read_bytes(files.canonical("a"), 3)
    assert (content.data, content.size, content.complete) == (b"ins", 6, False)


def test_an_allowed_path_may_be_one_file(tmp_path: Path) -> None:
    """Its neighbours stay closed."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    files = GuardedFiles(bounds_of(workspace=tmp_path / "ws", allowed_paths=[str(tmp_path / "one")]))
    assert files.read_bytes(tmp_path / "one", 9).data == b"1"
    assert not files.write_text(tmp_path / "one", "new")
    with pytest.raises(PathRefusedError):
        files.read_bytes(tmp_path / "two", 9)


def test_walking_names_links_and_leaves_out_what_is_closed(files: GuardedFiles, tmp_path: Path) -> None:
    """Parents come before children, links are not entered, depth is kept."""
    (tmp_path / "ws" / "sub" / "b").write_text("")
    (tmp_path / "ws" / "out").symlink_to(tmp_path / "out")
    (tmp_path / "ws" / "zerobot.toml").write_text("")
    found = [(files.shown(entry.path), entry.kind) for entry in files.walk(tmp_path / "ws", 5)]
    assert found == [("a", "file"), ("out", "link"), ("sub", "directory"), ("sub/b", "file")]
    assert [entry.path.name for entry in files.walk(tmp_path / "ws", 1)] == ["a", "out", "sub"]


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * 5_000, "/".join(["y" * 300] * 3)])
def test_what_is_no_path_is_refused(files: GuardedFiles, text: str) -> None:
    """NUL, half characters, and names longer than a file system takes."""
    with pytest.raises(BadPathError):
        files.canonical(text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["..", ".", "", "sub", "ws", "x", "~", "..x"]), max_size=8), st.booleans())
def test_a_canonical_path_has_no_way_up(parts: list[str], absolute: bool) -> None:  # noqa: FBT001 - drawn
    """Whatever was written, the result is absolute and free of dots, and inside only if it lies below a root."""
    files = GuardedFiles(Bounds(workspace=Path("/nowhere/ws")))
    text = ("/nowhere/ws/" if absolute else "") + "/".join(parts)
    path = files.canonical(text)
    assert path.is_absolute()
    assert not {"..", "."} & set(path.parts)
    assert (files.bounds.judge(path) is Bound.INSIDE) == (str(path) + "/").startswith("/nowhere/ws/")
    assert str(path) == os.path.normpath(Path("/nowhere/ws") / text).replace("//", "/")


def test_within_goes_by_components() -> None:
    """`/ab` is not in `/a`."""
    assert within(Path("/a/b"), Path("/a"))
    assert within(Path("/a"), Path("/a"))
    assert not within(Path("/ab"), Path("/a"))
    assert within(Path("/ab"), Path("/"))
