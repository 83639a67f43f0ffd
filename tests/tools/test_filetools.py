"""The file tools, on real files."""

from pathlib import Path

import pytest

from tests.security.worlds import NOW, StillClock, context, tools_of
from zerobot.core.messages import ResultCode
from zerobot.core.tools import BadArgumentsError, Mode, Risk, ToolOutput
from zerobot.security.paths import GuardedFiles
from zerobot.security.policy import bounds_of
from zerobot.tools.filetools import MAX_ENTRIES
from zerobot.tools.registry import builtin_tools, selected, unused_patterns
from zerobot.tools.search import MAX_HITS
from zerobot.tools.shell import ShellSettings


async def run(workspace: Path, tool: str, **arguments: object) -> ToolOutput:
    """Run one tool over a workspace."""
    return await tools_of(bounds_of(workspace=workspace))[tool].resolve(arguments).run(context())


async def test_missing_folders_are_ordinary_errors(tmp_path: Path) -> None:
    """The model is told."""
    assert not (await run(tmp_path, "list_files", path="none")).ok


async def test_writing_makes_folders_and_keeps_the_mode(tmp_path: Path) -> None:
    """A new file with its parents; an executable stays one."""
    created = await run(tmp_path, "write_file", path="a/b/c.txt", content="grüße\n")
    assert created.text == "Created a/b/c.txt (8 bytes)."
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    assert (await run(tmp_path, "write_file", path="run.sh", content="new")).text == "Replaced run.sh (3 bytes)."
    assert script.read_text() == "new"
    assert script.stat().st_mode & 0o777 == 0o750
    assert (await run(tmp_path, "list_files")).text == "a/\nrun.sh (3 bytes)"


async def test_editing_wants_exactly_one_place(tmp_path: Path) -> None:
    """None and several are errors; `replace_all` takes all; line ends stay as they were."""
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\none\r\n")
    assert "occurs 2 times" in (await run(tmp_path, "edit_file", path="a.txt", old_text="one", new_text="1")).text
    assert "does not occur" in (await run(tmp_path, "edit_file", path="a.txt", old_text="x", new_text="1")).text
    assert (await run(tmp_path, "edit_file", path="a.txt", old_text="two", new_text="2")).ok
    assert (await run(tmp_path, "edit_file", path="a.txt", old_text="one", new_text="1", replace_all=True)).ok
    assert file.read_bytes() == b"1\r\n2\r\n1\r\n"


async def test_listing_is_flat_or_deep_and_takes_a_glob(tmp_path: Path) -> None:
    """Folders are marked, sizes are told, a glob picks names."""
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("x")
    (tmp_path / "src" / "deep" / "b.py").write_text("xy")
    (tmp_path / "c.txt").write_text("")
    (tmp_path / "link").symlink_to("/etc")
    assert (await run(tmp_path, "list_files")).text == "c.txt (0 bytes)\nlink (link)\nsrc/"
    found = await run(tmp_path, "list_files", recursive=True, glob="*.py")
    assert found.text == "src/a.py (1 bytes)\nsrc/deep/b.py (2 bytes)"
    assert (await run(tmp_path, "list_files", glob="*.rs")).text == "Nothing there."


async def test_odd_names_stay_on_their_line(tmp_path: Path) -> None:
    """A name with a line end, or one that is no UTF-8, cannot pass for another entry."""
    (tmp_path / "a\nb").write_text("x")
    (tmp_path / "c\udcff").write_text("x")
    output = await run(tmp_path, "list_files")
    assert output.text == "a\\nb (1 bytes)\nc\\u{dcff} (1 bytes)"
    found = await run(tmp_path, "search_files", pattern="x")
    assert found.text == "a\\nb:1: x\nc\\u{dcff}:1: x"


async def test_a_long_list_is_cut(tmp_path: Path) -> None:
    """The model is told to narrow it."""
    for number in range(MAX_ENTRIES + 1):
        (tmp_path / f"{number:04}").touch()
    assert (await run(tmp_path, "list_files")).text.endswith("narrow it with path, glob or depth]")


async def test_searching_names_file_and_line(tmp_path: Path) -> None:
    """By regular expression, in text files, with a glob and without case."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_text("import os\nprint(1)\n")
    (tmp_path / "b.txt").write_text("Import nothing\n")
    (tmp_path / "c.bin").write_bytes(b"import\0\0")
    assert (await run(tmp_path, "search_files", pattern="^import")).text == "sub/a.py:1: import os"
    both = await run(tmp_path, "search_files", pattern="^import", ignore_case=True)
    assert both.text == "b.txt:1: Import nothing\nsub/a.py:1: import os"
    assert (await run(tmp_path, "search_files", pattern="import", glob="*.rs")).text == "No hits."
    assert (await run(tmp_path, "search_files", pattern="print", path="sub/a.py")).text == "sub/a.py:2: print(1)"
    assert (await run(tmp_path, "search_files", pattern="x", path="none")).text == "none does not exist."


async def test_a_search_without_end_is_ended(tmp_path: Path) -> None:
    """A pattern that backtracks for ever ends as TIMEOUT, and the bot lives on."""
    (tmp_path / "a.txt").write_text("a" * 60 + "!\n")
    assert (await run(tmp_path, "search_files", pattern="(a+)+$")).code is ResultCode.TIMEOUT


async def test_a_search_with_too_many_hits_is_cut(tmp_path: Path) -> None:
    """The first hits, and a word that there are more."""
    (tmp_path / "a.txt").write_text("x\n" * (MAX_HITS * 50))
    output = await run(tmp_path, "search_files", pattern="x")
    assert len(output.text.splitlines()) == MAX_HITS + 1
    assert output.text.endswith("narrow the search]")


def test_calls_say_what_they_touch(tmp_path: Path) -> None:
    """Canonical paths, for the policy and for the order of calls."""
    (tmp_path / "link").symlink_to("real")
    tools = tools_of(bounds_of(workspace=tmp_path))
    read = tools["read_file"].resolve({"path": "sub/../a"})
    write = tools["write_file"].resolve({"path": "link", "content": ""})
    tree = tools["search_files"].resolve({"pattern": "x"})
    assert read.reads == (tmp_path / "a",)
    assert write.writes == (tmp_path / "real",)
    assert (read.risk, write.risk) == (Risk.LOW, Risk.MEDIUM)
    assert write.accesses.items[0].mode is Mode.WRITE
    assert write.accesses.conflict_with(tree.accesses)
    assert not read.accesses.conflict_with(write.accesses)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_files", {"pattern": "hello"}),
        ("search_files", {"pattern": "hello", "path": "{}"}),
        ("shell", {"command": "cat {}/a.txt"}),
        ("shell", {"command": "cat a.txt", "workdir": "{}"}),
    ],
)
async def test_what_people_attach_is_by_others(tmp_path: Path, tool: str, arguments: dict[str, str]) -> None:
    """The turn has read outside content, in whichever way it came to it; the same of another folder is not that."""
    for folder, outside in (("attachments", True), ("notes", False)):
        (tmp_path / "attachments").mkdir(exist_ok=True)
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "attachments" / "a.txt").unlink(missing_ok=True)
        (tmp_path / folder / "a.txt").write_text("hello")
        output = await run(tmp_path, tool, **{key: value.replace("{}", folder) for key, value in arguments.items()})
        assert "hello" in output.text
        assert output.outside_content is outside


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("read_file", {}, "path is missing"),
        ("read_file", {"path": "a", "lines": 3}, "lines is not an argument of this tool"),
        ("read_file", {"path": "a", "limit": "3"}, "limit: input should be a valid integer"),
        ("read_file", {"path": "a\0b"}, "NUL"),
        ("write_file", {"path": "a", "content": "\ud800"}, "surrogate"),
        ("edit_file", {"path": "a", "old_text": "x", "new_text": "x"}, "the same"),
        ("search_files", {"pattern": "("}, "not a regular expression"),
        ("time_now", {"timezone": "Mars/Base"}, "not a known IANA name"),
        ("time_now", {"timezone": "../../etc/passwd"}, "not a known IANA name"),
    ],
)
def test_wrong_arguments_are_explained(tmp_path: Path, tool: str, arguments: dict[str, object], said: str) -> None:
    """The text names the argument and what is wrong with it."""
    with pytest.raises(BadArgumentsError, match=said):
        tools_of(bounds_of(workspace=tmp_path))[tool].resolve(arguments)


async def test_the_time_is_told_in_the_wanted_zone(tmp_path: Path) -> None:
    """With the weekday, which models get wrong."""
    assert (await run(tmp_path, "time_now", timezone="Europe/Berlin")).text == (
        "Friday, 2026-05-01T14:00:00+02:00 (Europe/Berlin)"
    )
    assert NOW.isoformat() in (await run(tmp_path, "time_now")).text


def test_schemas_are_plain(tmp_path: Path) -> None:
    """No references, titles or nulls: every provider takes them; each argument is described."""
    for tool in tools_of(bounds_of(workspace=tmp_path)).values():
        schema = dict(tool.parameters)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert "title" not in schema
        assert "$defs" not in schema
        properties = schema["properties"]
        assert isinstance(properties, dict)
        for argument in properties.values():
            assert argument["description"]
            assert argument["type"] in ("string", "integer", "boolean")


def test_an_agent_has_the_tools_that_its_patterns_name(tmp_path: Path) -> None:
    """In a fixed order; a pattern that names nothing is found."""
    tools = builtin_tools(GuardedFiles(bounds_of(workspace=tmp_path)), ShellSettings(), StillClock())
    assert [tool.name for tool in selected(tools, ["*"])] == [
        "edit_file",
        "list_files",
        "read_file",
        "search_files",
        "shell",
        "time_now",
        "write_file",
    ]
    assert [tool.name for tool in selected(tools, ["*_file", "time_now"])] == [
        "edit_file",
        "read_file",
        "time_now",
        "write_file",
    ]
    assert unused_patterns([tool.name for tool in tools], ["read_*", "reed_file"]) == ["reed_file"]
