"""Tool results that are too long for a conversation lie in the workspace, and nowhere else."""

from dataclasses import replace
from pathlib import Path

from zerobot.core.envelope import TurnOrigin
from zerobot.core.ids import CallId, ConversationId, TurnId
from zerobot.core.messages import RecordedCall
from zerobot.core.places import Identity, Place
from zerobot.core.usage import NO_USAGE
from zerobot.daemon.result_files import ResultFiles
from zerobot.security.bounds import Bounds
from zerobot.security.paths import GuardedFiles
from zerobot.store.turn_rows import Turn

TURN = Turn(
    id=TurnId("t1"),
    conversation=ConversationId(1),
    place=Place("test", "ann"),
    direct=True,
    origin=TurnOrigin.USER,
    asker=Identity("test", "ann"),
    asker_name="Ann",
    reply_to="",
    preface="",
    model="",
    steps=0,
    settled_seq=0,
    crashes=0,
    outside_content=False,
    usage=NO_USAGE,
    failed_usage=NO_USAGE,
    resumed=False,
)
CALL = RecordedCall(id=CallId("call_1"), wire_id="c1", name="echo", arguments={}, raw_arguments="{}", position=0)


async def test_a_result_is_saved_whole_where_the_tools_can_read_it(tmp_path: Path) -> None:
    """K7: the path that the model is told is the file's, below the workspace; saving it again changes nothing."""
    lines: list[str] = []
    save = ResultFiles(GuardedFiles(Bounds(workspace=tmp_path)), lambda event, /, **_: lines.append(event))
    text = "ü" * 60_000
    path = await save(TURN, CALL, text)
    assert path is not None
    assert (tmp_path / path).read_text(encoding="utf-8") == text
    assert await save(TURN, CALL, text) == path
    assert await save(TURN, replace(CALL, id=CallId("call_2")), text) != path
    assert lines == []


async def test_a_result_that_cannot_be_saved_is_no_error(tmp_path: Path) -> None:
    """K7: whoever wanted it saved is told so, and the log knows why; nothing is written outside the bounds."""
    lines: list[str] = []
    (tmp_path / "elsewhere").mkdir()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "results").symlink_to(tmp_path / "elsewhere")
    save = ResultFiles(GuardedFiles(Bounds(workspace=workspace)), lambda event, /, **_: lines.append(event))
    assert await save(TURN, CALL, "x") is None
    assert lines == ["result.not_saved"]
    assert list((tmp_path / "elsewhere").iterdir()) == []
