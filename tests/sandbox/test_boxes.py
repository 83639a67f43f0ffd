"""What a box holds, seen from outside while a real shell in it tries its best."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sandbox.boxes import Boxed, unnamed
from tests.security.worlds import context
from zerobot.core.messages import ResultCode
from zerobot.security.sandbox import SandboxKind
from zerobot.tools.process import Limits

KINDS = (SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK)
SAYS_UDP = "exec 3<>/dev/udp/127.0.0.1/{port} && echo hello >&3"
CONNECTS = "exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> SandboxKind:
    return SandboxKind(request.param)


@pytest.fixture
def boxed(kind: SandboxKind, tmp_path: Path) -> Boxed:
    return Boxed(kind, tmp_path)


@contextmanager
def listening(type_: socket.SocketKind, address: object, family: int = socket.AF_INET) -> Iterator[socket.socket]:
    """A socket at which nobody should arrive."""
    with socket.socket(family, type_) as listener:
        listener.bind(address)  # type: ignore[arg-type] # of its family
        if type_ is socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)  # noqa: FBT003
        yield listener


def was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(64)
    except BlockingIOError:
        return False
    return True


@contextmanager
def another_process() -> Iterator[subprocess.Popen[bytes]]:
    """One of the same user, with a secret in its environment."""
    with subprocess.Popen(["/bin/sleep", "300"], env={"SECRET": "hunter2hunter2"}) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_commands_work_as_usual(boxed: Boxed) -> None:
    """Programs, pipes, the null device, temporary files, descriptors: what a line needs is there."""
    line = (
        "echo one > a && cat a | tr o 0 && grep -c . /etc/passwd >/dev/null && echo two 2>/dev/null"
        ' && f=$(mktemp) && echo three > "$f" && cat "$f" <(echo four) && echo five | cat /dev/stdin'
    )
    output = await boxed.run(line)
    assert output.text == "0ne\ntwo\nthree\nfour\nfive\n[exit status 0]"
    assert (boxed.workspace / "a").read_text() == "one\n"


async def test_a_status_comes_back(boxed: Boxed) -> None:
    """Also that of a command which did not go well."""
    output = await boxed.run("echo no >&2; exit 7")
    assert (output.text, output.ok) == ("no\n[exit status 7]", False)


async def test_only_the_workspace_and_the_allowed_paths_can_be_changed(boxed: Boxed) -> None:
    """Inside they can; outside nothing is made, changed or removed."""
    (boxed.root / "kept").write_text("mine")
    for place in ("../../new", "../../kept", "../new", f"{boxed.root}/kept"):
        await boxed.run(f"f={unnamed(place)}; echo x > $f; rm $f; touch in")
    await boxed.run(f"touch {boxed.allowed}/in")
    assert sorted(path.name for path in boxed.root.iterdir()) == ["allowed", "kept", "state"]
    assert (boxed.root / "kept").read_text() == "mine"
    assert sorted(path.name for path in boxed.state.iterdir()) == ["workspace", "zerobot.db"]
    assert (boxed.workspace / "in").exists()
    assert (boxed.allowed / "in").exists()


async def test_nothing_outside_can_be_read(boxed: Boxed) -> None:
    """By no path, and by no link that leads there."""
    (boxed.root / "notes").write_text("top-secret")
    (boxed.workspace / "link").symlink_to(boxed.root / "notes")
    said = ""
    for place in ("../../notes", f"{boxed.root}/notes", "link", "../zerobot.db", "/etc/shadow", "/proc/1/environ"):
        said += await boxed.says(f"cat {unnamed(place)}")
    assert "top-secret" not in said
    assert "everything" not in said
    assert "root:" not in said


async def test_forbidden_places_of_the_system_are_hidden(kind: SandboxKind, tmp_path: Path) -> None:
    """What lies beside them is there."""
    boxed = Boxed(kind, tmp_path, ["/etc/hostname", "/usr/share/doc"])
    hidden = (unnamed("/etc/hostname"), unnamed("/usr/share/doc"))
    said = await boxed.says(f"cat {hidden[0]} || ls {hidden[1]}; wc -l < {unnamed('/etc/passwd')}")
    assert "Permission denied" in said
    assert "base-files" not in said
    assert int(said.splitlines()[-1]) > 0


async def test_there_is_no_network(boxed: Boxed) -> None:
    """Neither TCP nor UDP nor a name."""
    with listening(socket.SOCK_STREAM, ("127.0.0.1", 0)) as tcp, listening(socket.SOCK_DGRAM, ("127.0.0.1", 0)) as udp:
        await boxed.run(CONNECTS.format(port=tcp.getsockname()[1]))
        await boxed.run(SAYS_UDP.format(port=udp.getsockname()[1]))
        assert not was_reached(tcp)
        assert not was_reached(udp)


async def test_a_call_with_the_network_has_it(boxed: Boxed) -> None:
    """And nothing else more."""
    (boxed.root / "notes").write_text("top-secret")
    with listening(socket.SOCK_STREAM, ("127.0.0.1", 0)) as tcp:
        line = CONNECTS.format(port=tcp.getsockname()[1])
        said = await boxed.says(f"{line}; cat {unnamed(boxed.root / 'notes')}; getent hosts localhost", network=True)
        assert was_reached(tcp)
    assert "connected" in said
    assert "top-secret" not in said
    assert "localhost" in said


async def test_local_sockets_of_others_are_out_of_reach(boxed: Boxed) -> None:
    """By them other programs take orders: those in the file system, and the abstract ones."""
    places = (str(boxed.root / "orders"), f"\0{boxed.root}")
    (boxed.workspace / "connects.py").write_text(
        f"import socket\nfor place in {places!r}:\n    try:\n"
        "        socket.socket(socket.AF_UNIX).connect(place)\n    except OSError:\n        print('refused')\n"
    )
    with (
        listening(socket.SOCK_STREAM, places[0], socket.AF_UNIX) as one,
        listening(socket.SOCK_STREAM, places[1], socket.AF_UNIX) as two,
    ):
        said = await boxed.says("/usr/bin/python3 connects.py || echo refused; echo refused")
        assert not was_reached(one)
        assert not was_reached(two)
    assert said.count("refused") >= 2


async def test_other_processes_are_out_of_reach(boxed: Boxed) -> None:
    """They cannot be ended, and what they know cannot be read."""
    with another_process() as other:
        said = await boxed.says(
            f"kill -9 {other.pid}; cat /proc/{other.pid}/environ; cat /proc/*/environ | tr '\\0' ' '"
        )
        assert other.poll() is None
    assert "hunter2" not in said


async def test_the_kernels_settings_are_out_of_reach(boxed: Boxed) -> None:
    """Root may set them without any capability, and some of them name programs that the kernel starts outside."""
    # Opened to append, and nothing is written: where the box does not hold, nothing changes either.
    settings = "/proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sysrq-trigger /proc/self/oom_score_adj"
    said = await boxed.says(f"for each in {settings}; do : >> $each && echo open; done; echo over")
    assert "open" not in said.splitlines()
    assert said.endswith("over")


async def test_a_command_gets_no_variable_of_the_daemons(boxed: Boxed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same few as without a box."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "very-secret-value")
    said = await boxed.says("env; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "very-secret-value" not in said
    assert "ZEROBOT_TOOL_CALL=1" in said


async def test_temporary_files_are_private(boxed: Boxed) -> None:
    """Others' are not seen, and those of a command are gone with it."""
    (boxed.root / "mine").write_text("top-secret")
    said = await boxed.says(
        f"t=$(mktemp -d) && echo x > $t/y && cat $t/y && echo $t; cat {unnamed(boxed.root / 'mine')}"
    )
    assert said.startswith("x\n/tmp/")
    assert "top-secret" not in said
    assert not (boxed.root / said.splitlines()[1]).exists()


async def test_what_a_line_names_outside_is_within_reach(boxed: Boxed) -> None:
    """It runs only when somebody approved that line: a reader reads there, others may change it; no more than that."""
    (boxed.root / "site").mkdir()
    (boxed.root / "site/page").write_text("old\n")
    (boxed.root / "notes").write_text("top-secret")
    assert await boxed.says("cat ../../site/page") == "old"
    assert "may read" in boxed.resolve("cat ../../site/page").description
    changing = boxed.resolve(f"cp new ../../site/page && cat {boxed.root}/site/page")
    assert f"may change {boxed.root}/site/page" in changing.description
    (boxed.workspace / "new").write_text("new\n")
    assert (await changing.run(context())).text.startswith("new\n")
    assert (boxed.root / "site/page").read_text() == "new\n"
    await boxed.run("cp new ../../site/more")
    assert (boxed.root / "site/more").read_text() == "new\n"
    assert "top-secret" not in await boxed.says(f"cat ../../site/page; cat {unnamed(boxed.root / 'notes')}")


async def test_an_allowed_place_that_a_command_made_a_link_leads_nowhere(boxed: Boxed) -> None:
    """What is allowed is the place, not where a link of a command's making leads."""
    (boxed.root / "home").mkdir()
    (boxed.root / "home/key").write_text("top-secret")
    assert await boxed.says("ln -s ../../home later && echo linked") == "linked"
    said = await boxed.says(f"cat {unnamed('later/key')}; touch {unnamed('later/evil')}; echo over")
    assert "top-secret" not in said
    assert said.endswith("over")
    assert not (boxed.root / "home/evil").exists()


def test_the_description_tells_all_that_is_within_reach(boxed: Boxed) -> None:
    """A new file needs its folder; what is only read is told so; should it become another, it is another call."""
    site = boxed.root / "site"
    site.mkdir()
    assert boxed.resolve(f"touch {site}/new").description.endswith(f" that may change {site}")
    assert boxed.resolve(f"touch {site} /").description.endswith(f" that may change {site} that may read /")
    assert "that may" not in boxed.resolve(f"cat {site}/new").description
    before = boxed.resolve(f"touch {site}/new")
    (site / "new").touch()
    assert set(before.reads) - set(boxed.resolve(f"touch {site}/new").reads) == {site}


async def test_naming_the_root_opens_nothing_for_changes(boxed: Boxed) -> None:
    """What holds the rest of the system is at most read; the daemon's own files stay hidden."""
    said = await boxed.says(
        f"ls / && cat {unnamed(boxed.state / 'zerobot.db')}; touch {unnamed(boxed.root / 'evil')} {unnamed('/evil')}"
    )
    assert "everything" not in said
    assert not (boxed.root / "evil").exists()
    assert not (boxed.root / "/evil").exists()


async def test_all_processes_end_with_the_call(boxed: Boxed) -> None:
    """Also one in a session of its own; the call does not wait for it."""
    async with asyncio.timeout(60):
        output = await boxed.run("(setsid sleep 4321.25 &) ; sleep 0.1; echo done")
    assert output.text.startswith("done\n[exit status 0]")
    assert not running("4321.25")


async def test_a_time_limit_ends_everything(boxed: Boxed) -> None:
    """What was said before is kept."""
    output = await boxed.run("setsid sleep 4322.25 & echo started; sleep 100", timeout=1)
    assert output.code is ResultCode.TIMEOUT
    assert "started" in output.text
    assert not running("4322.25")


async def test_a_stop_ends_everything(boxed: Boxed) -> None:
    """As soon as the turn is stopped."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    call = boxed.resolve("setsid sleep 4323.25 & echo begun; wait").run(replace(context(), progress=lines.put_nowait))
    task = asyncio.ensure_future(call)
    assert await lines.get() == "begun"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not running("4323.25")


async def test_a_command_cannot_end_what_watches_it(boxed: Boxed) -> None:
    """Neither the process above it nor the daemon."""
    async with asyncio.timeout(60):
        output = await boxed.run(f"setsid sleep 4324.25 & kill -9 $PPID {os.getpid()} {os.getppid()}; echo alive")
    assert "alive" in output.text or not output.ok
    assert not running("4324.25")


async def test_limits_hold_inside(kind: SandboxKind, tmp_path: Path) -> None:
    """Of memory and of a file's size."""
    boxed = Boxed(kind, tmp_path, limits=Limits(file_bytes=10_000, memory_bytes=300_000_000))
    assert "10000" in await boxed.says("head -c 50000 /dev/zero > big; stat -c %s big")
    assert "done 0" not in await boxed.says(
        "head -c 400000000 /dev/zero | tail -n 1 | wc -c; echo done ${PIPESTATUS[1]}"
    )


@pytest.fixture
def walled(tmp_path: Path) -> Boxed:
    """A box with forbidden places in its workspace, which only bubblewrap can keep."""
    (tmp_path / "state/workspace/deep").mkdir(parents=True)
    (tmp_path / "state/workspace/deep/secret").write_text("top-secret")
    (tmp_path / "state/workspace/private").mkdir()
    (tmp_path / "state/workspace/private/a").write_text("top-secret")
    return Boxed(SandboxKind.BUBBLEWRAP, tmp_path, ["deep/secret", "private", "later", "not/yet/there"])


async def test_forbidden_places_in_the_workspace_are_hidden(walled: Boxed) -> None:
    """They can neither be read nor changed, moved or replaced, by whatever name the way there gets."""
    place, folder, other = unnamed("deep/secret"), unnamed("deep"), unnamed("private")
    said = await walled.says(
        f"cat {place}; echo x > {place}; rm -rf {place}; mv {folder} moved; mv {place} moved; ln {place} copy;"
        f"cat moved copy; cat {other}/a; rm -rf {other}; mv {other} p; cat p/a; touch deep/beside"
    )
    assert "top-secret" not in said
    assert (walled.workspace / "deep/secret").read_text() == "top-secret"
    assert (walled.workspace / "private/a").read_text() == "top-secret"
    assert (walled.workspace / "deep/beside").exists()


async def test_a_forbidden_name_that_is_not_there_yet_cannot_be_taken(walled: Boxed) -> None:
    """What is put there would be believed later; an empty folder holds the name."""
    await walled.run(f"echo x > {unnamed('later')}; mkdir -p {unnamed('not/yet')}; echo x > {unnamed('not/yet/there')}")
    await walled.run(f"mv {unnamed('not')} other; mkdir -p {unnamed('not/yet')}; echo x > {unnamed('not/yet/there')}")
    assert list((walled.workspace / "later").iterdir()) == []
    assert not (walled.workspace / "not/yet/there").is_file()
    assert not (walled.workspace / "other").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
async def test_places_that_may_not_be_looked_at_disturb_nothing(boxed: Boxed) -> None:
    """Named by the line, they are just out of reach."""
    closed = boxed.root / "closed"
    closed.mkdir(mode=0)
    assert "fine" in await boxed.says(f"cat {closed}/x; echo fine")


async def test_no_namespaces_are_made_inside_bubblewrap(walled: Boxed) -> None:
    """With them a command could try more of the kernel than it needs."""
    assert "done 0" not in await walled.says("unshare --user true; echo done $?")


def running(mark: str) -> bool:
    """Whether a process with this word in its command line lives."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in words and b"sleep" in words[0] and state not in "ZX":
                return True
    return False
