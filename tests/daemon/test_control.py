"""The control socket: private, and no client harms the daemon or another client."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from zerobot.core.errors import StorageError, ZerobotError
from zerobot.core.log import silent
from zerobot.daemon.ancestry import ancestors
from zerobot.daemon.control import Exchange, Handler, control_socket
from zerobot.daemon.control_client import NoDaemonError, call, converse
from zerobot.daemon.control_wire import LINE_LIMIT, ControlError, Params, Result


async def double(params: Params, exchange: Exchange) -> Result:
    return {"text": str(params["text"]) * 2}


async def echo(params: Params, exchange: Exchange) -> Result:
    count = 0
    async for value in exchange.inputs():
        count += 1
        await exchange.send({"echo": value["text"]})
        if count == params["until"]:
            break
    return {"count": count}


async def wait_for_ever(params: Params, exchange: Exchange) -> Result:
    await exchange.send({"waiting": True})
    await asyncio.Event().wait()
    return {}


async def refuse(params: Params, exchange: Exchange) -> Result:
    raise ZerobotError("there is no such approval")


async def crash(params: Params, exchange: Exchange) -> Result:
    raise RuntimeError("a secret of the inside")


async def time_out(params: Params, exchange: Exchange) -> Result:
    raise TimeoutError


async def lack_a_file(params: Params, exchange: Exchange) -> Result:
    raise FileNotFoundError("a secret of the inside")


HANDLERS: Mapping[str, Handler] = {
    "double": double,
    "echo": echo,
    "wait": wait_for_ever,
    "refuse": refuse,
    "crash": crash,
    "time_out": time_out,
    "lack_a_file": lack_a_file,
}


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[Path]:
    where = tmp_path / "control.sock"
    async with control_socket(where, HANDLERS, silent):
        yield where


async def ask(path: Path, method: str, **params: object) -> Result:
    return await asyncio.to_thread(call, path, method, params)


async def say(path: Path, data: bytes) -> bytes:
    """Write raw bytes, end the writing side, and return all that comes back."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_request_is_answered(path: Path) -> None:
    """A method's result reaches the caller."""
    assert await ask(path, "double", text="ä\n") == {"text": "ä\nä\n"}


@pytest.mark.parametrize("method", ["crash", "time_out", "lack_a_file"])
async def test_an_operation_that_breaks_is_told_as_such(path: Path, method: str) -> None:
    """Whatever it raises, also what a lost connection raises: the client hears that it failed, and no detail."""
    with pytest.raises(ControlError, match="failed at this") as caught:
        await ask(path, method)
    assert caught.value.code == "failed"


async def test_nobody_else_can_connect(path: Path) -> None:
    """The socket belongs to its owner alone."""
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600  # noqa: PTH116 - a local file


async def test_two_clients_are_served_at_once(path: Path) -> None:
    """A client that waits keeps no other one waiting."""
    async with converse(path, "wait", {}) as waiting:
        assert await anext(waiting.items()) == {"waiting": True}
        assert await ask(path, "double", text="a") == {"text": "aa"}


async def test_a_conversation_goes_both_ways(path: Path) -> None:
    """Inputs and items pass each other, and the result ends it."""
    async with converse(path, "echo", {"until": 2}) as talk:
        items = talk.items()
        await talk.send({"text": "one"})
        assert await anext(items) == {"echo": "one"}
        await talk.send({"text": "two"})
        assert [item async for item in items] == [{"echo": "two"}]
        assert talk.result == {"count": 2}


async def test_a_refusal_is_told_in_its_words(path: Path) -> None:
    """What an operation refuses reaches the person who asked."""
    with pytest.raises(ControlError, match="there is no such approval"):
        await ask(path, "refuse")


async def test_a_fault_inside_tells_nothing_of_the_inside(path: Path) -> None:
    """A fault of ours is answered by one general sentence, and the daemon serves on."""
    with pytest.raises(ControlError, match="the daemon failed at this") as caught:
        await ask(path, "crash")
    assert "secret" not in str(caught.value)
    assert await ask(path, "double", text="b") == {"text": "bb"}


async def test_an_unknown_method_is_named(path: Path) -> None:
    """A method that this daemon lacks is told with its name."""
    with pytest.raises(ControlError, match="no operation 'teleport'"):
        await ask(path, "teleport")


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xfe\x00\n",
        b"[1, 2]\n",
        b'{"method": 1}\n',
        b'{"method": "double", "params": []}\n',
        b"[" * 100_000 + b"\n",
        b"x" * (LINE_LIMIT + 10) + b"\n",
    ],
    ids=["http", "bytes", "array", "no name", "no object", "deep", "long"],
)
async def test_garbage_is_answered_and_harms_nobody(path: Path, data: bytes) -> None:
    """Whatever a client writes, it gets one error, and the next client is served."""
    answer = json.loads(await say(path, data))
    assert answer["error"]["code"] == "bad_request"
    assert await ask(path, "double", text="c") == {"text": "cc"}


@pytest.mark.parametrize("data", [b"", b'{"method": "dou'], ids=["nothing", "half a line"])
async def test_a_client_that_hangs_up_is_forgotten(path: Path, data: bytes) -> None:
    """Half a request is no request."""
    assert await say(path, data) == b""
    assert await ask(path, "double", text="d") == {"text": "dd"}


async def test_leaving_ends_what_is_open(tmp_path: Path) -> None:
    """When the daemon stops, a waiting client is told so, and the socket is gone."""
    path = tmp_path / "control.sock"
    async with control_socket(path, HANDLERS, silent):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b'{"method": "wait"}\n')
        assert await reader.readline() == b'{"item":{"waiting":true}}\n'
    assert await reader.read() == b""
    writer.close()
    assert not path.exists()
    with pytest.raises(NoDaemonError):
        await ask(path, "double", text="e")


async def test_a_dead_daemons_socket_is_replaced(tmp_path: Path) -> None:
    """A socket that a killed daemon left behind is in nobody's way."""
    path = tmp_path / "control.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(NoDaemonError):
        await ask(path, "double", text="f")
    async with control_socket(path, HANDLERS, silent):
        assert await ask(path, "double", text="f") == {"text": "ff"}


async def test_a_file_in_the_way_is_not_removed(tmp_path: Path) -> None:
    """What is no socket is somebody's file: it stays, and the error names it."""
    path = tmp_path / "control.sock"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(StorageError, match="in the way"):
        async with control_socket(path, HANDLERS, silent):
            pass
    assert path.read_text(encoding="utf-8") == "mine"


async def test_a_long_path_works(tmp_path: Path) -> None:
    """A state directory deeper than a socket's address has room for is no obstacle."""
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    path = deep / "control.sock"
    async with control_socket(path, HANDLERS, silent):
        assert await ask(path, "double", text="g") == {"text": "gg"}
        async with converse(path, "echo", {"until": 0}):
            pass


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system keeps no record of who started whom")
async def test_a_child_of_the_daemon_is_refused(path: Path) -> None:
    """A process that the daemon started, as tools are, cannot operate it; nor can its child."""
    code = (
        "import sys; from pathlib import Path; from zerobot.daemon.control_client import call\n"
        "try:\n  call(Path(sys.argv[1]), 'double', {'text': 'h'})\n"
        "except Exception as error:\n  print(error)\n"
    )
    child = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", '"$@"; exit', "sh", sys.executable, "-c", code, str(path), stdout=subprocess.PIPE
    )
    output, _ = await child.communicate()
    assert output == b"a tool may not operate the daemon that runs it\n"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system keeps no record of who started whom")
def test_ancestors_are_found_by_the_systems_record() -> None:
    """A process descends from its parent, and that one's parents; of a process that is gone nothing is known."""
    line = ancestors(os.getpid())
    assert line[0] == os.getppid()
    assert line[1:] == ancestors(os.getppid())
    assert ancestors(2**22 + 1) == ()


def test_a_process_may_have_any_name(tmp_path: Path) -> None:
    """A name that looks like the record's next fields misleads nobody."""
    (tmp_path / "9").mkdir()
    (tmp_path / "9" / "stat").write_text("9 (a) S 7 () S 1 1 1\n", encoding="utf-8")
    assert ancestors(9, tmp_path) == (1,)
