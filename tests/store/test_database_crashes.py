"""Real processes that are killed, and real files that cannot grow."""

import asyncio
import subprocess
import sys
from pathlib import Path

from zerobot.store.channel_state import channel_state
from zerobot.store.database import open_database

WRITES_FOR_EVER = """
import asyncio, sys
from itertools import count
from pathlib import Path
from zerobot.store.channel_state import channel_state
from zerobot.store.database import open_database

async def main():
    async with open_database(Path(sys.argv[1])) as database:
        for number in count():
            await channel_state(database, "one").set("last", str(number))
            print(number, flush=True)

asyncio.run(main())
"""

FILLS_ITS_DISK = """
import asyncio, resource, sys
from pathlib import Path
from zerobot.core.errors import StorageError
from zerobot.store.channel_state import channel_state
from zerobot.store.database import open_database

async def main():
    async with open_database(Path(sys.argv[1])) as database:
        state = channel_state(database, "one")
        written = 0
        size = sum(file.stat().st_size for file in Path(sys.argv[1]).parent.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300_000, resource.RLIM_INFINITY))
        try:
            while True:
                await state.set(f"k{written}", "x" * 20_000)
                written += 1
        except StorageError as error:
            print(type(error).__name__)
        assert await state.get(f"k{written}") is None
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await state.set("after", "there is room again")
        print(written)

asyncio.run(main())
"""


def killed_while_writing(path: Path) -> int:
    """Kill a process that writes one number after another; return the last one that it called written."""
    command = [sys.executable, "-c", WRITES_FOR_EVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(30)]
        process.kill()
        seen += process.stdout.readlines()
    return int([line for line in seen if line.endswith("\n")][-1])


async def test_what_was_called_written_survives_kill_9(path: Path) -> None:
    """The last number that the killed process announced is there; at most one later one is, and never half."""
    announced = await asyncio.to_thread(killed_while_writing, path)
    async with open_database(path) as database:
        found = await channel_state(database, "one").get("last")
        assert found is not None
        assert int(found) in (announced, announced + 1)
        assert await database.read(lambda db: db.execute("PRAGMA integrity_check").fetchone()[0]) == "ok"


async def test_a_file_that_cannot_grow_loses_only_what_was_refused(path: Path) -> None:
    """The write that found no room is a `StorageError`; those before it are there, and one more once there is room."""
    command = [sys.executable, "-c", FILLS_ITS_DISK, str(path)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kind, written = done.stdout.split()
    assert kind == "StorageError"
    async with open_database(path) as database:
        state = channel_state(database, "one")
        values = [await state.get(f"k{number}") for number in range(int(written) + 1)]
        assert values == ["x" * 20_000] * int(written) + [None]
        assert await state.get("after") == "there is room again"
