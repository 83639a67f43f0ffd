"""The daemon's own life: starting, faults all around it, stopping, a full disk; and what its log may say."""

import asyncio
import json
import re
import signal
import socket
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.e2e.stage import FullDisk, Stage
from tests.platforms.daemon_process import Event
from tests.platforms.model_script import calls, drops, holds, says, status
from tests.platforms.telegram_server import TelegramServer


async def test_a_refused_token_parks_its_channel_and_no_other(stage: Stage) -> None:
    """The parked channel's event names the key to mend; the other channel answers."""
    stage.expected_errors = {"channel.parked"}
    stage.configure("channels.other", kind="telegram", bot_token="1:refused-token-of-another-bot")
    stage.configure("channels.other", api_base=stage.telegram.api_base)
    stage.model.answers(says("Alive."))
    async with stage.daemon() as daemon:
        assert (await stage.says(stage.uma, "hi")).text == "Alive."
    assert daemon.named("daemon.ready")[0]["parked"] == ["other"]
    parked = daemon.named("channel.parked")[0]
    assert parked["channel"] == "other"
    assert "[channels.other] bot_token" in parked["advice"]


@pytest.mark.parametrize(
    ("table", "keys", "named"),
    [
        ("channels.telegram", {"bot_token": None}, "bot_token"),
        ("telegram", {"bot_token": "1:x"}, "telegram"),
        ("operators", {"users": ["olga"]}, "users"),
    ],
)
async def test_a_fault_of_the_configuration_is_one_line_and_ends_with_two(
    stage: Stage, table: str, keys: dict[str, object], named: str
) -> None:
    """B185, B189: file, line, key and what is wrong; the exit code says that a restart does not help."""
    stage.configure(table, **keys)
    async with stage.process() as daemon:
        assert await daemon.ended() == 2
    assert daemon.events == []
    faults = [line for line in daemon.other_lines if named in line]
    assert faults
    assert all("Traceback" not in line for line in daemon.other_lines)


def of_console(event: Event) -> bool:
    """Whether an event is of the terminal's channel."""
    return bool(event["channel"] == "console")


async def test_a_start_without_a_network_connects_when_there_is_one(stage: Stage) -> None:
    """B190: nothing is given up; the channel keeps trying."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    stage.configure("channels.telegram", api_base=f"http://127.0.0.1:{port}")
    stage.model.answers(says("Connected."))
    async with stage.process() as daemon:
        # The terminal's channel needs no network.
        await daemon.until("channel.connected", where=of_console)
        assert daemon.named("daemon.ready") == []
        forward = await asyncio.start_server(relay_to(stage.telegram), "127.0.0.1", port)
        async with forward:
            await daemon.ready()
            stage.uma.says("hi")
            await stage.uma.chat.reply("Connected.")
            assert await daemon.stop() == 0


def relay_to(telegram: TelegramServer) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Pass connections on to the double, whose own port nobody can choose."""
    port = int(telegram.api_base.rpartition(":")[2])

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, there_writer))
                group.create_task(_pump(there_reader, writer))
        finally:
            writer.close()
            there_writer.close()

    return relay


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_a_model_that_is_down_at_the_start_is_told_and_works_later(stage: Stage) -> None:
    """The daemon is ready without its model; who asks hears that it does not answer."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        stage.configure("providers.main", base_url=f"http://127.0.0.1:{port}/v1")
        async with stage.daemon() as daemon:
            reply = await stage.says(stage.uma, "hi")
            assert daemon.named("daemon.ready")[0]["parked"] == []
    assert "⚠️" in reply.text
    assert str(port) not in reply.text
    assert "127.0.0.1" not in reply.text


async def test_faults_of_everything_around_it_do_not_end_the_process(stage: Stage) -> None:
    """B188: connections that break, garbage and errors from all sides; afterwards the same process answers."""
    stage.model.answers(status(500, body="<html>no</html>"), drops(deltas=["x "]), status(418))
    stage.configure("channels.telegram", drafts="off")
    async with stage.daemon() as daemon:
        pid = daemon.pid
        stage.telegram.break_next("getUpdates", carried_out=True)
        stage.telegram.fail_next("getUpdates", 502, "Bad Gateway")
        stage.telegram.break_next("sendChatAction")
        stage.telegram.fail_next("sendMessage", 500)
        for person, number in ((stage.uma, 1), (stage.vic, 2), (stage.olga, 3)):
            person.says(f"question {number}")
        stage.telegram.drop_connections()
        await daemon.until("turn.finished", count=3)
        stage.model.always(says("Still here."))
        stage.vic.says("and now?")
        await stage.vic.chat.reply("Still here.")
        assert daemon.pid == pid
        assert not daemon.has_ended


async def test_a_start_right_after_a_kill_works(stage: Stage) -> None:
    """B189: the lock dies with its process."""
    async with stage.daemon() as daemon:
        await daemon.kill()
    stage.model.answers(says("Again."))
    async with stage.daemon():
        assert (await stage.says(stage.uma, "hi")).text == "Again."


async def test_a_second_daemon_on_one_state_directory_is_refused_in_one_line(stage: Stage) -> None:
    """The first one goes on as if nothing had been."""
    stage.model.answers(says("Alive."))
    async with stage.daemon() as first:
        async with stage.process() as second:
            assert await second.ended() == 1
        assert any(str(first.pid) in line for line in second.other_lines)
        stage.uma.says("hi")
        await stage.uma.chat.reply("Alive.")
        stage.runs.remove(second)


async def test_a_second_signal_ends_the_process_at_once(stage: Stage) -> None:
    """B189: who cannot wait for the grace need not; what was open goes on at the next start."""
    stage.model.answers(holds(says("never"), after=0))
    async with stage.process() as daemon:
        await daemon.ready()
        stage.uma.says("hi")
        await stage.model.until_holding()
        daemon.send(signal.SIGTERM)
        await daemon.until("daemon.stopping")
        daemon.send(signal.SIGTERM)
        async with asyncio.timeout(5):
            assert await daemon.ended() == 130
    stage.model.answers(says("Here."))
    async with stage.daemon():
        await stage.uma.chat.reply("Here.")


async def test_a_full_disk_is_told_once_and_survived(stage: Stage) -> None:
    """B195: a turn that cannot be stored waits; the log does not fill; with room again it ends, and nothing is broken.

    The model is asked again once, not once a try.
    """
    stage.expected_errors = {"storage.failed", "telegram.not_stored", "storage.alarm"}
    stage.model.when("hi", holds(says("Lost."), after=0), says("Stored in the end."))
    stage.model.when("anybody?", says("And on."))
    async with stage.daemon() as daemon:
        stage.uma.says("hi")
        await stage.model.until_holding()
        with FullDisk(daemon):
            stage.model.release()
            await daemon.until("storage.failed", count=2)
            stage.vic.says("anybody?")
            await daemon.until("telegram.not_stored")
            await stage.olga.chat.reply("I cannot store anything")
            assert not daemon.has_ended
        await stage.uma.chat.reply("Stored in the end.")
        await stage.vic.chat.reply("And on.")
    assert len(stage.model.requests) == 3
    assert len(stage.olga.chat.replies) == 1
    assert len(daemon.named("telegram.not_stored")) <= 3
    with sqlite3.connect(next((stage.folder / "state").glob("*.db"))) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_the_log_has_no_secret_and_no_word_of_anybody(stage: Stage) -> None:
    """B036, B181: with faults of all kinds, neither the log at its most talkative nor a chat tells a credential."""
    token = "4242:AAFAKE-SECRET-of-the-bot-0123456789abc"
    async with TelegramServer(token=token) as telegram:
        stage.telegram = telegram
        uma, olga = telegram.user("2001", name="Uma"), telegram.user("1001", name="Olga")
        stage.configure("channels.telegram", bot_token=token, api_base=telegram.api_base)
        stage.model.answers(
            status(401, message=f"Incorrect API key provided: {stage.model.key}"),
            says("MODELWORDS said to Uma"),
            calls("shell", id="c1", command="echo TOOLWORDS"),
        )
        async with stage.daemon() as daemon:
            uma.says("USERWORDS one")
            await daemon.until("turn.finished")
            telegram.fail_next("sendMessage", 404, "Not Found", times=1)
            telegram.break_next("getUpdates")
            telegram.break_next("sendChatAction", times=3)
            uma.says("USERWORDS two")
            await daemon.until("turn.finished", count=2)
            olga.says("USERWORDS three")
            await olga.chat.wait_for(lambda chat: chat.prompt)
            stage.model.answers(says("MODELWORDS again"))
            assert olga.chat.prompt
            await olga.presses(olga.chat.prompt, "Approve").answered()
            await olga.chat.reply("MODELWORDS again")
        said = "\n".join((*uma.chat.texts, *olga.chat.texts))
    for secret in (token, token.partition(":")[2], stage.model.key):
        assert secret not in stage.log
        assert secret not in said
    for word in ("USERWORDS", "MODELWORDS", "TOOLWORDS"):
        assert word not in stage.log
    assert not re.search(r"127\.0\.0\.1|/tmp/", said)


async def test_answers_to_commands_tell_nothing_of_the_machine(stage: Stage) -> None:
    """B181: no key, host or path in what a user can ask for."""
    stage.configure("channels.telegram", allowed_users=["*"])
    people = [stage.telegram.user(str(3000 + number)) for number in range(5)]
    async with stage.daemon():
        for person, command in zip(people, ("/status", "/whoami", "/help", "/usage", "/new"), strict=True):
            person.says(command)
        for person in people:
            await person.chat.reply()
    said = "\n".join(text for person in people for text in person.chat.texts)
    for secret in (stage.model.key, stage.telegram.token, "127.0.0.1", str(stage.folder), "/tmp/"):
        assert secret not in said
    # What is for operators only is not even offered to others.
    assert "/freeze" not in said


async def test_every_line_of_the_log_is_an_event(stage: Stage) -> None:
    """With `json` there is one object a line, with its name, time and level, and nothing else."""
    stage.model.answers(says("Hi."))
    async with stage.daemon() as daemon:
        await stage.says(stage.uma, "hi")
    assert daemon.other_lines == []
    assert all({"event", "ts", "level"} <= each.keys() for each in daemon.events)
    names = [each["event"] for each in daemon.events]
    for expected in ("envelope.accepted", "turn.started", "step.finished", "turn.finished", "delivery.sent"):
        assert names.count(expected) == 1, expected
    assert names[-1] == "daemon.stopped"
    finished = daemon.named("turn.finished")[0]
    assert json.dumps(finished["outcome"]) == '"replied"'
    assert {"reason", "steps", "input_tokens", "output_tokens", "cost"} <= finished.keys()
    step = daemon.named("step.finished")[0]
    assert (step["input_tokens"], step["output_tokens"]) == (finished["input_tokens"], finished["output_tokens"])
    assert 0 <= step["model_seconds"] <= step["seconds"]


@pytest.mark.slow
async def test_memory_and_files_do_not_grow_with_the_turns(stage: Stage) -> None:
    """B191: between the first hundred chats and the last of them nothing is kept in memory or left open."""
    stage.configure("channels.telegram", allowed_users=["*"], drafts="off")
    stage.configure("daemon", log_level="info")
    stage.model.always(says("ok"))
    async with stage.daemon() as daemon:
        done = 0

        async def chats(count: int) -> tuple[int, int]:
            nonlocal done
            people = [stage.telegram.user(str(100_000 + done + number)) for number in range(count)]
            for person in people:
                person.says("hi")
            done += count
            await daemon.until("delivery.sent", count=done, patience=120)
            return _memory(daemon.pid)

        memory, files = await chats(200)
        later, later_files = await chats(600)
    assert later < memory * 1.2
    # Connections to the model are kept open, up to a limit.
    assert later_files <= files + 64


def _memory(pid: int) -> tuple[int, int]:
    """Resident kilobytes and open files of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return resident, len(list(Path(f"/proc/{pid}/fd").iterdir()))
