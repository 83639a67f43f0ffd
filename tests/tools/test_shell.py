"""The shell tool, with real processes."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.security.worlds import context, tools_of
from zerobot.core.messages import ResultCode
from zerobot.core.tools import BadArgumentsError, BlockedByToolError, Effect, Execution, Risk, ToolOutput
from zerobot.security.policy import bounds_of
from zerobot.tools import keeper
from zerobot.tools.process import Limits
from zerobot.tools.shell import ShellSettings

KEEPER = Path(keeper.__file__)


class Shell:
    """The tool over one workspace."""

    def __init__(self, workspace: Path, limits: Limits | None = None) -> None:
        self.workspace = workspace
        settings = ShellSettings(limits=limits or Limits())
        self.tool = tools_of(bounds_of(workspace=workspace), settings)["shell"]

    def resolve(self, command: str, **more: object) -> Execution:
        return self.tool.resolve({"command": command, **more})

    async def run(self, command: str, progress: list[str] | None = None, **more: object) -> ToolOutput:
        return await self.resolve(command, **more).run(context(progress))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _pid_in(file: Path) -> int:
    return int(file.read_text())


async def test_output_and_status_come_back(shell: Shell) -> None:
    """The model reads both streams in their order, and the exit status."""
    output = await shell.run("echo one; echo two >&2; echo three; exit 3")
    assert output.text == "one\ntwo\nthree\n[exit status 3]"
    assert not output.ok
    assert output.code is None


async def test_the_line_runs_byte_for_byte(shell: Shell) -> None:
    """Quotes, tabs and line ends reach bash as they were written."""
    output = await shell.run("printf '%s|' 'a  b' \"c\td\" $'e\\n'\nprintf done")
    assert output.text == "a  b|c\td|e\n|done\n[exit status 0]"


async def test_a_command_gets_nothing_of_the_daemons(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is made, not inherited; it says that a tool runs, and holds no key."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "very-secret-value")
    monkeypatch.setenv("BASH_ENV", "/nowhere/at-all")
    output = await shell.run("env")
    assert "very-secret-value" not in output.text
    assert "BASH_ENV" not in output.text
    assert "ZEROBOT_TOOL_CALL=1" in output.text
    assert f"HOME={shell.workspace}" in output.text


async def test_a_command_inherits_no_descriptor(shell: Shell) -> None:
    """Besides the three standard streams nothing is open."""
    held = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(held, True)  # noqa: FBT003 - the function takes it so
    try:
        output = await shell.run(
            "cd /proc/self/fd; for f in *; do printf '%s ' $f; done; read -r line; printf end$line"
        )
    finally:
        os.close(held)
    # 255 is bash's own handle; it reads its line from the argument, so it may also be absent.
    assert set(output.text.split("\n")[0].replace("end", "").split()) <= {"0", "1", "2", "3", "255"}
    assert "end" in output.text


async def test_long_output_keeps_its_head_and_its_tail(tmp_path: Path) -> None:
    """The middle is left out, and the model is told how much."""
    shell = Shell(tmp_path, Limits(head_bytes=100, tail_bytes=100))
    output = await shell.run("echo BEGIN; seq 1 20000; echo END")
    assert output.text.startswith("BEGIN\n1\n2\n")
    assert "END\n[exit status 0]" in output.text
    assert "bytes left out" in output.text
    assert len(output.text) < 400


async def test_a_time_limit_ends_the_command_and_keeps_its_output(shell: Shell) -> None:
    """TIMEOUT, with what was said before."""
    output = await shell.run("echo started; sleep 100", timeout=1)
    assert output.code is ResultCode.TIMEOUT
    assert "started" in output.text


async def test_cancelling_ends_all_processes_also_those_that_left_the_group(shell: Shell) -> None:
    """A child in a session of its own does not outlive the call."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    surroundings = replace(context(), progress=lines.put_nowait)
    task = asyncio.ensure_future(shell.resolve("setsid bash -c 'echo $$; exec sleep 300' & wait").run(surroundings))
    pid = int(await lines.get())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _is_alive(pid)


async def test_the_call_ends_when_its_command_does(shell: Shell) -> None:
    """A background process that holds the output does not hold the call, and is ended."""
    async with asyncio.timeout(60):
        output = await shell.run(
            "(setsid bash -c 'echo $$ > pid; exec sleep 300') & until [ -s pid ]; do :; done; echo done"
        )
    assert output.text.startswith("done\n[exit status 0]")
    assert "background process" in output.text
    assert not _is_alive(_pid_in(shell.workspace / "pid"))


async def test_a_command_that_kills_its_own_group_only_ends_itself(shell: Shell) -> None:
    """`kill 0` is an ordinary end by a signal."""
    output = await shell.run("kill -9 0")
    assert output.text == "[ended by signal 9]"
    assert not output.ok


async def test_what_outlives_its_keeper_is_ended_too(shell: Shell) -> None:
    """A command that kills the process above it leaves no orphan that nobody knows."""
    async with asyncio.timeout(60):
        output = await shell.run(
            "setsid bash -c 'setsid bash -c \"echo \\$\\$ > pid; exec sleep 300\" & wait' >/dev/null 2>&1 & "
            "until [ -s pid ]; do :; done; kill -9 $PPID; sleep 300"
        )
    assert not output.ok
    assert "background process" in output.text
    assert not _is_alive(_pid_in(shell.workspace / "pid"))


async def test_a_stray_that_holds_the_output_ends_with_the_time_limit(shell: Shell) -> None:
    """Also when the process above it is only stopped, and hears no request."""
    async with asyncio.timeout(60):
        output = await shell.run(
            "setsid bash -c 'echo $$ > pid; exec sleep 300' & until [ -s pid ]; do :; done; "
            "kill -STOP $PPID; sleep 300",
            timeout=1,
        )
    assert output.code is ResultCode.TIMEOUT
    assert not _is_alive(_pid_in(shell.workspace / "pid"))


async def test_an_orphan_of_one_command_does_not_end_another(shell: Shell) -> None:
    """Commands that run at the same time are left alone."""
    other = asyncio.ensure_future(shell.run("until [ -e go ]; do sleep 0.01; done; echo unharmed"))
    await shell.run("kill -9 $PPID; sleep 300")
    (shell.workspace / "go").touch()
    assert (await other).text == "unharmed\n[exit status 0]"


@pytest.mark.parametrize("parent", ["1", "999999999"])
def test_a_keeper_whose_daemon_is_gone_starts_nothing(tmp_path: Path, parent: str) -> None:
    """The daemon may die before the keeper can ask to be told of it."""
    report_end, report = os.pipe()
    made = tmp_path / "made"
    arguments = [sys.executable, "-I", "-S", str(KEEPER), str(report), parent, "{}", "/bin/bash", "-c", f"touch {made}"]
    try:
        ended = subprocess.run(arguments, pass_fds=(report,), check=False)
    finally:
        os.close(report)
        os.close(report_end)
    assert ended.returncode == 128 + signal.SIGTERM
    assert not made.exists()


async def test_limits_hold(tmp_path: Path) -> None:
    """A file cannot grow past its limit."""
    shell = Shell(tmp_path, Limits(file_bytes=10_000))
    output = await shell.run("head -c 50000 /dev/zero > big; stat -c %s big")
    assert "10000" in output.text


@pytest.mark.skipif(os.geteuid() == 0, reason="the system sets root no limit of processes")
async def test_processes_are_limited(tmp_path: Path) -> None:
    """A command that multiplies is held, however many others its user has."""
    shell = Shell(tmp_path, Limits(processes=20))
    output = await shell.run("for i in $(seq 100); do sleep 100 & done; echo $(jobs -p | wc -l)", timeout=5)
    assert "temporarily unavailable" in output.text


async def test_progress_is_shown_on_one_visible_line(shell: Shell) -> None:
    """What a command prints cannot draw on the screen of whoever looks."""
    lines: list[str] = []
    await shell.run("printf 'a\\033[2Jb\\n'", lines)
    assert lines == ["a\\u{1b}[2Jb"]


async def test_a_folder_can_be_chosen(shell: Shell) -> None:
    """`workdir` is relative to the workspace; one outside is refused."""
    (shell.workspace / "sub").mkdir()
    assert (await shell.run("pwd", workdir="sub")).text.startswith(str(shell.workspace / "sub"))
    with pytest.raises(BlockedByToolError):
        shell.resolve("pwd", workdir="..")
    assert not (await shell.run("pwd", workdir="missing")).ok


async def test_git_starts_nothing_that_a_repository_names(shell: Shell) -> None:
    """Neither hooks nor a monitor of files; and files that look like a repository, but are no `.git`, are none."""
    settings = "git config user.email a@b.test; git config core.fsmonitor 'touch watched; false'"
    assert (await shell.run(f"git init -q .; git init -q --bare inner; {settings}")).ok
    (shell.workspace / ".git/hooks/pre-commit").write_text("#!/bin/sh\ntouch hooked\n", encoding="utf-8")
    (shell.workspace / ".git/hooks/pre-commit").chmod(0o755)
    assert (await shell.run("git status; git commit -q --allow-empty -m x && git log --oneline")).ok
    assert not (shell.workspace / "hooked").exists()
    assert not (shell.workspace / "watched").exists()
    assert "cannot use bare repository" in (await shell.run("git log", workdir="inner")).text


@pytest.mark.parametrize("line", ["", " \t\n", "echo \0", "echo \ud800"])
def test_what_no_shell_could_run_is_an_argument_error(shell: Shell, line: str) -> None:
    """Nothing blank, no NUL, no half character."""
    with pytest.raises(BadArgumentsError):
        shell.resolve(line)


@pytest.mark.parametrize(
    ("line", "risk"),
    [
        ("cat README.md | head -n 3", Risk.LOW),
        ("make", Risk.MEDIUM),
        ("cat $X", Risk.MEDIUM),
        ("cat /etc/hostname", Risk.HIGH),
        ("cat ~/x ../y", Risk.HIGH),
        ("curl https://example.test/", Risk.HIGH),
    ],
)
def test_the_risk_follows_from_the_line(shell: Shell, line: str, risk: Risk) -> None:
    """A proved reader inside is low, leaving or the network is high, the rest is medium."""
    assert shell.resolve(line).risk is risk


def test_the_network_is_an_effect_when_it_is_asked_for(shell: Shell) -> None:
    """By the argument, or by the program."""
    assert Effect.NETWORK in shell.resolve("make", network=True).effects
    assert Effect.NETWORK in shell.resolve("wget x").effects
    assert Effect.NETWORK not in shell.resolve("make").effects


@pytest.mark.parametrize("line", ["bash run.sh", "./run.sh", "python3 -u run.sh", "true && sh run.sh x"])
def test_a_script_that_changes_makes_another_call(shell: Shell, line: str) -> None:
    """The digest of what a line executes is part of the call."""
    script = shell.workspace / "run.sh"
    script.write_text("echo one\n")
    before = shell.resolve(line).frozen
    script.write_text("echo two\n")
    after = shell.resolve(line).frozen
    assert before.keys() == after.keys() == {"run.sh"}
    assert before != after


NOTE = "files that it runs may change"


@pytest.fixture
def project(shell: Shell) -> Shell:
    """A workspace with something to run of each kind."""
    for name in ("s.sh", "s.py", "mo.py", "Makefile", "sub/t.sh", "pk/__main__.py", "bin/python3"):
        path = shell.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("echo\n")
    (shell.workspace / "x").symlink_to("/bin/bash")
    return shell


@pytest.mark.parametrize(
    "line",
    [
        "bash $X",
        "cd sub && bash t.sh",
        "timeout 60 bash s.sh",
        "env bash s.sh",
        "nohup ./s.sh",
        "bash -o pipefail s.sh",
        "bash -s",
        "python3 -W ignore s.py",
        "bash < s.sh",
        "cat s.sh | bash",
        "python3 pk",
        "python3 -m mo",
        "make",
        "make test",
        "npm test",
        "pytest",
        "git status",
        "source s.sh",
        "cp a.sh s.sh && bash s.sh",
        "bash s.sh && ./sub/t.sh",
        "find . -exec ./s.sh ';'",
        "xargs -n1 bash s.sh",
        "sqlite3 db < s.sh",
        "fish s.sh",
        "bin/python3 s.py",
        "./x s.sh",
        "/usr/bin/env bash s.sh",
        "/usr/bin/make",
        "bash s.sh | tee s.sh",
        "bash /dev/stdin",
        "bash",
        "bash ''",
    ],
)
def test_a_description_says_when_files_may_change(project: Shell, line: str) -> None:
    """Whatever could run a file that is not part of the call is said to be so."""
    assert NOTE in project.resolve(line).description


@pytest.mark.parametrize(
    "line",
    [
        "bash s.sh",
        "./s.sh one two",
        "/bin/bash s.sh",
        "python3 s.py",
        "cat s.sh | grep echo",
        "cd sub && ls",
        "true && bash s.sh x",
        "mkdir -p build && touch build/x",
        "curl https://example.test/",
        "awk '{print $1}' s.sh",
        "/bin/cat s.sh",
        "bash not-there.sh",
    ],
)
def test_a_description_is_silent_where_no_file_can_change_unseen(project: Shell, line: str) -> None:
    """What runs nothing, or exactly what was hashed, has no such note."""
    assert NOTE not in project.resolve(line).description


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("cd sub && bash t.sh", "sub/t.sh"),
        ("timeout 60 bash s.sh", "s.sh"),
        ("nohup ./s.sh", "s.sh"),
        ("bash -o pipefail s.sh", "s.sh"),
        ("python3 -W ignore s.py", "s.py"),
        ("bash < s.sh", "s.sh"),
        ("python3 -m mo", "mo.py"),
        ("python3 -m pk", "pk/__main__.py"),
        ("make", "Makefile"),
    ],
)
def test_files_behind_wrappers_and_options_are_part_of_the_call(project: Shell, line: str, file: str) -> None:
    """Also where the note stands: what can be told to run is bound to the answer."""
    before = project.resolve(line).frozen
    (project.workspace / file).write_text("echo another\n")
    assert before != project.resolve(line).frozen


@pytest.mark.parametrize("line", ["bash new.sh", "./new.sh", "python3 new.sh", "bash < new.sh"])
def test_a_script_that_appears_makes_another_call(shell: Shell, line: str) -> None:
    """A file that was not there when somebody was asked was seen by nobody."""
    before = shell.resolve(line).frozen
    assert before == {"new.sh": "missing"}
    (shell.workspace / "new.sh").write_text("echo\n")
    assert before != shell.resolve(line).frozen


def test_what_only_reads_may_be_fed_a_changing_file(shell: Shell) -> None:
    """A reader of a file is the same call whatever the file holds."""
    assert not shell.resolve("wc -l < data.txt").frozen
