"""The command line: what it says, what it exits with, and who may use it; with a daemon and without one."""

import asyncio
import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.platforms.shell import PROGRAM, Done, Shell
from zerobot.cli.guard import MARK
from zerobot.cli.main import hoisted
from zerobot.config.kinds import installed_kinds
from zerobot.daemon.control_client import Conversing, converse
from zerobot.tools import shell as shell_tool


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@asynccontextmanager
async def waiting_approval(shell: Shell) -> AsyncIterator[tuple[Conversing, str]]:
    """A terminal of a running daemon in which a call waits for its approval, and the approval's code."""
    async with converse(shell.state / "control.sock", "chat.open", {}) as terminal:
        await terminal.send({"id": "0123456789abcdef", "text": "run mkdir -pv hi"})
        code = ""
        async with asyncio.timeout(30):
            async for item in terminal.items():
                if item["kind"] == "ask":
                    prompt = item["prompt"]
                    assert isinstance(prompt, dict)
                    code = prompt["code"]
                    break
        yield terminal, code


async def reply(terminal: Conversing) -> tuple[str, str]:
    """What a turn says last, and its outcome."""
    text = ""
    async with asyncio.timeout(30):
        async for item in terminal.items():
            if item["kind"] in ("message", "edit"):
                text = str(item["text"])
            if item["kind"] == "ended":
                return text, str(item["outcome"])
    raise AssertionError("the daemon hung up")


@pytest.mark.parametrize("option", ["-h", "--help"])
async def test_help_names_every_command(shell: Shell, option: str) -> None:
    """The help is there for who asks, and leaves no state behind."""
    done = await shell.run(option)
    assert done.status == 0
    for command in ("run", "chat", "init", "doctor", "config", "pair", "approvals", "sessions", "usage", "backup"):
        assert f"\n  {command} " in done.out
    assert not shell.state.exists()


async def test_the_version_is_told(shell: Shell) -> None:
    """`--version` prints one line."""
    done = await shell.run("--version")
    assert (done.status, done.out.split()[0]) == (0, "zerobot")


async def test_the_module_is_the_command(shell: Shell) -> None:
    """`python -m zerobot` does the same."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "zerobot", "--version", env=shell.environ)
    assert await process.wait() == 0


async def test_an_unknown_command_is_a_usage_error(shell: Shell) -> None:
    """What is no command exits with 2 and names it."""
    done = await shell.run("frobnicate")
    assert (done.status, "frobnicate" in done.err) == (2, True)


@pytest.mark.parametrize("command", [["run"], ["chat", "-m", "hi"], ["config", "check"], ["config", "show"]])
async def test_a_config_error_exits_2_with_a_line_a_fault(shell: Shell, command: list[str]) -> None:
    """Every command that needs all of the configuration tells what is wrong with it, where, and nothing else."""
    (shell.home / "zerobot.toml").write_text('[agent]\nmodle = "x"\n[daemon]\nmax_turns = 0\n', encoding="utf-8")
    done = await shell.run(*command)
    assert done.status == 2
    lines = done.err.splitlines()
    assert len(lines) == 2
    assert all("zerobot.toml:" in line for line in lines)


async def test_a_missing_config_is_told_wherever_the_option_stands(shell: Shell) -> None:
    """`--config` counts before and after the command."""
    for arguments in (
        ["--config", "none.toml", "status"],
        ["status", "--config", "none.toml"],
        ["run", "--config=none.toml"],
    ):
        done = await shell.run(*arguments)
        assert (done.status, "none.toml: there is no such file" in done.err) == (2, True)


def test_config_is_hoisted_and_nothing_else() -> None:
    """Only the option moves; what stands after `--` is left alone."""
    assert hoisted(["chat", "-m", "hi"]) == ["chat", "-m", "hi"]
    assert hoisted(["run", "--config", "a"]) == ["--config", "a", "run"]
    assert hoisted(["chat", "--", "--config"]) == ["chat", "--", "--config"]


async def test_no_traceback_reaches_a_user(shell: Shell) -> None:
    """A state directory that cannot be used is one line."""
    shell.state.write_text("a file", encoding="utf-8")
    done = await shell.run("approvals", "list")
    assert done.status == 1
    assert done.err.startswith("zerobot: ")
    assert len(done.err.splitlines()) == 1


async def test_lists_of_nothing_say_so(shell: Shell) -> None:
    """Without a daemon and without any state, every list is empty, in words or in JSON."""
    for command in ("approvals list", "pair list", "usage"):
        done = await shell.run(*command.split())
        assert (done.status, len(done.out.splitlines())) == (0, 1)
    for command in ("sessions list", "grants list", "audit"):
        done = await shell.run(*command.split(), "--json")
        assert (done.status, json.loads(done.out)) == (0, [])


@pytest.mark.parametrize(
    "command",
    [
        ["approvals", "approve", "BCDFGH"],
        ["approvals", "deny", "BCDFGH"],
        ["pair", "approve", "BCDFGHJK"],
        ["pair", "revoke", "fake:1"],
        ["pair", "revoke", "nonsense"],
        ["sessions", "show", "7"],
        ["sessions", "reset", "7"],
        ["grants", "revoke", "7"],
        ["usage", "--by", "weather"],
    ],
)
async def test_what_is_not_there_is_told(shell: Shell, command: list[str]) -> None:
    """A command about something that does not exist fails with one line that helps."""
    done = await shell.run(*command)
    assert (done.status, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1


async def test_freezing_works_without_a_daemon_and_with_one(shell: Shell) -> None:
    """The switch is stored, counts in the daemon that starts later, and is thrown back in the one that runs."""
    assert (await shell.run("freeze")).status == 0
    async with shell.daemon():
        assert json.loads((await shell.run("status", "--json")).out)["frozen"] is True
        assert (await shell.run("unfreeze")).status == 0
        assert json.loads((await shell.run("status", "--json")).out)["frozen"] is False
    entries = json.loads((await shell.run("audit", "--json")).out)
    assert [(entry["by"], entry["did"]) for entry in entries] == [("cli:local", "unfreeze"), ("cli:local", "freeze")]


async def test_a_backup_is_a_sound_private_database(shell: Shell) -> None:
    """`backup` writes a copy beside a running daemon, for its owner alone."""
    async with shell.daemon():
        done = await shell.run("backup", "copy.db")
    assert done.status == 0
    copy = shell.home / "copy.db"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


async def test_status_tells_whether_a_daemon_runs(shell: Shell) -> None:
    """Exit 1 without one, 0 with one: what a health check needs."""
    assert (await shell.run("status")).status == 1
    async with shell.daemon():
        assert (await shell.run("status")).status == 0


async def test_a_second_daemon_is_refused(shell: Shell) -> None:
    """Who comes second is told who was first."""
    async with shell.daemon() as first:
        done = await shell.run("run")
        assert (done.status, f"process {first.pid}" in done.err) == (1, True)


async def test_an_approval_is_given_from_the_shell(shell: Shell) -> None:
    """The list shows what would run; approving it there lets the turn go on at once, and it counts once."""
    async with shell.daemon(), waiting_approval(shell) as (terminal, code):
        (listed,) = json.loads((await shell.run("approvals", "list", "--json")).out)
        assert (listed["code"], listed["tool"], listed["arguments"]) == (code, "shell", {"command": "mkdir -pv hi"})
        shown = (await shell.run("approvals", "list")).out.splitlines()
        assert {f"    does: {listed['does']}", f"    held by: {listed['held_by']}"} <= set(shown)
        assert (await shell.run("approvals", "approve", code)).status == 0
        text, outcome = await reply(terminal)
        assert ("hi" in text, outcome) == (True, "replied")
        late = await shell.run("approvals", "deny", code)
        assert (late.status, "approved by cli:local" in late.err) == (1, True)
        (entry,) = json.loads((await shell.run("audit", "--json")).out)
        assert (entry["by"], entry["did"]) == ("cli:local", "approval.approved")
        assert entry["to"].startswith(f"{code} shell")


async def test_a_denial_from_the_shell_carries_its_reason(shell: Shell) -> None:
    """The model is told why."""
    async with shell.daemon(), waiting_approval(shell) as (terminal, code):
        assert (await shell.run("approvals", "deny", code, "--reason", "not on a Sunday")).status == 0
        text, _ = await reply(terminal)
        assert "not on a Sunday" in text


async def test_an_approval_is_given_while_no_daemon_runs(shell: Shell) -> None:
    """A decision made between two starts is carried out by the second."""
    async with shell.daemon() as first, waiting_approval(shell) as (_, code):
        first.kill()
        await first.wait()
        assert (await shell.run("approvals", "approve", code)).status == 0
    async with shell.daemon(), converse(shell.state / "control.sock", "chat.open", {}) as terminal:
        text, outcome = await reply(terminal)
        assert ("hi" in text, outcome) == (True, "replied")


async def test_a_conversation_is_shown_exported_and_reset(shell: Shell) -> None:
    """What was said can be read in the shell, and a reset is told and recorded."""
    (shell.home / "zerobot.toml").write_text('[agent]\nname = "Zero"\n', encoding="utf-8")
    assert (await shell.run("chat", "-m", "hello")).status == 0
    (session,) = json.loads((await shell.run("sessions", "list", "--json")).out)
    ident = str(session["id"])
    assert "hello" in (await shell.run("sessions", "show", ident)).out
    assert "hello" in (await shell.run("sessions", "show", session["chat"])).out
    exported = [json.loads(line) for line in (await shell.run("sessions", "export", ident)).out.splitlines()]
    assert [message["role"] for message in exported] == ["user", "assistant"]
    assert (await shell.run("sessions", "reset", ident)).status == 0
    (usage,) = json.loads((await shell.run("usage", "--by", "channel,user", "--json")).out)["totals"]
    assert (usage["channel"], usage["user"], usage["calls"]) == ("console", "console:local", 1)


async def test_what_is_left_of_the_days_money_is_told(shell: Shell) -> None:
    """By `usage` and, where a daemon runs, by `status`; a request that cannot be paid reads so."""
    config = shell.home / "zerobot.toml"
    priced = '[models."demo/demo"]\ninput_price = 0\noutput_price = 100000\n[budget]\n'
    config.write_text(priced + "max_cost_per_day = 900\n", encoding="utf-8")
    assert (await shell.run("chat", "-m", "hello")).status == 0
    usage = json.loads((await shell.run("usage", "--by", "conversation,turn,purpose", "--json")).out)
    (total,), (day,) = usage["totals"], usage["budget"]
    assert (total["conversation"], total["purpose"], total["calls"]) == ("1", "step", 1)
    assert (day["scope"], day["limit"], day["spent"]) == ("day", "$900.00", total["cost"])
    assert f"today (UTC): {day['spent']} of $900.00 spent, {day['left']} left" in (await shell.run("usage")).out
    async with shell.daemon():
        assert f"{day['left']} left" in (await shell.run("status")).out
    config.write_text(priced + "max_cost_per_turn = 0.5\n", encoding="utf-8")
    assert "the $0.50 that one request may cost" in (await shell.run("chat", "-m", "hello again")).out
    assert json.loads((await shell.run("usage", "--json")).out)["budget"] == []


@pytest.mark.parametrize("command", [["approvals", "list"], ["chat", "-m", "hi"], ["config", "show"], ["unfreeze"]])
async def test_a_tool_may_not_use_it(shell: Shell, command: list[str]) -> None:
    """What a tool starts is marked, and refused whatever it asks; so is what it starts in turn without the mark."""
    done = await shell.run(*command, environ={MARK: "1"})
    assert (done.status, done.out) == (1, "")
    assert "a tool may not operate the bot" in done.err
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        f'env -u {MARK} "$@"; exit $?',
        "sh",
        str(Path(sys.executable).with_name("zerobot")),
        *command,
        env={**shell.environ, MARK: "1"},
        cwd=shell.home,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await child.communicate()
    assert b"a tool may not operate the bot" in err


def test_the_mark_is_the_one_that_tools_bear() -> None:
    """The command line looks for what the shell tool sets."""
    assert MARK == shell_tool.MARK


async def test_the_child_of_a_daemon_is_refused_without_any_mark(shell: Shell) -> None:
    """Who descends from the holder of the state directory is a tool of his, marked or not."""
    shell.state.mkdir(mode=0o700)
    (shell.state / "daemon.lock").write_text(json.dumps({"pid": os.getpid()}), encoding="utf-8")
    done = await shell.run("approvals", "list")
    assert (done.status, "a tool may not operate the bot" in done.err) == (1, True)


async def test_doctor_finds_nothing_to_fail_with_the_demo(shell: Shell) -> None:
    """Without a configuration all is well but that there are no operators."""
    done = await shell.run("doctor", "--json")
    findings = json.loads(done.out)
    assert done.status == 0
    assert {finding["level"] for finding in findings} <= {"ok", "warn"}
    assert {"config", "state", "database", "operators", "sandbox"} <= {finding["subject"] for finding in findings}


async def test_doctor_says_once_that_there_are_no_operators(shell: Shell) -> None:
    """With a channel on, the configuration warns of it too; one line is enough."""
    (shell.home / "zerobot.toml").write_text(
        '[channels.telegram]\nbot_token = "123456:abcdefgh"\napi_base = "http://127.0.0.1:9"\n', encoding="utf-8"
    )
    done = await shell.run("doctor")
    assert [line.split(":")[0] for line in done.out.splitlines() if "operators" in line] == ["warn  operators"]


async def test_doctor_fails_when_something_does(shell: Shell) -> None:
    """A damaged database is found, with what to do."""
    shell.state.mkdir(mode=0o700)
    (shell.state / "zerobot.db").write_bytes(b"this is no database, and never was one" * 100)
    done = await shell.run("doctor")
    assert (done.status, "fail  database" in done.out) == (1, True)


async def test_a_sandbox_that_is_demanded_and_does_not_work_is_told(shell: Shell) -> None:
    """The daemon does not start without it; doctor says what holds, whatever is configured."""
    (shell.home / "secrets").mkdir()
    (shell.home / "link").symlink_to(shell.home / "secrets")
    security = f'[security]\nworkspace = "{shell.home}"\nforbidden_paths = ["{shell.home}/link/a"]\n'
    (shell.home / "zerobot.toml").write_text(security, encoding="utf-8")

    async def with_(sandbox: str, command: str) -> Done:
        return await shell.run(command, environ={"ZEROBOT__SECURITY__SANDBOX": sandbox})

    started = await with_("bubblewrap", "run")
    assert started.status == 2
    assert "security.sandbox: bubblewrap: " in started.err
    assert "Traceback" not in started.err
    assert "fail  sandbox: no sandbox (none works" in (await with_("bubblewrap", "doctor")).out
    assert "warn  sandbox: no sandbox (none works" in (await with_("auto", "doctor")).out
    assert "warn  sandbox: no sandbox (switched off" in (await with_("off", "doctor")).out


async def test_init_writes_a_private_config_that_works(shell: Shell) -> None:
    """From options alone: a file that its owner alone can read, and that `config check` takes."""
    done = await shell.run("init", "--yes", "--operator", "console:local")
    assert done.status == 0
    config = shell.home / "zerobot.toml"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert (await shell.run("config", "check")).status == 0


async def test_init_overwrites_nothing_unasked(shell: Shell) -> None:
    """A file that is there stays, unless it is told to go."""
    config = shell.home / "zerobot.toml"
    config.write_text('[agent]\nname = "Mine"\n', encoding="utf-8")
    assert (await shell.run("init", "--yes")).status == 1
    assert (await shell.run("init", stdin="n\n")).status == 1
    assert "Mine" in config.read_text(encoding="utf-8")
    assert (await shell.run("init", "--yes", "--force")).status == 0
    assert "Mine" not in config.read_text(encoding="utf-8")


async def test_init_asks(shell: Shell) -> None:
    """Without options it asks for the provider, its key and model, for channels and for operators."""
    asking = [load() for load in installed_kinds().channels.values() if load().questions]
    answers = "openai\nhttp://127.0.0.1:9/v1\n${A_KEY}\na-model\n" + "n\n" * len(asking) + "console:local fake:1\n"
    done = await shell.run("init", stdin=answers, environ={"A_KEY": "k-123456789"})
    assert done.status == 0, done.err
    text = (shell.home / "zerobot.toml").read_text(encoding="utf-8")
    assert 'api_key = "${A_KEY}"' in text
    assert 'model = "main/a-model"' in text
    assert 'users = ["console:local", "fake:1"]' in text


async def test_init_asks_again_for_what_cannot_be_used(shell: Shell) -> None:
    """Each answer is looked at when it is given; what was right before it is kept."""
    asking = [load() for load in installed_kinds().channels.values() if load().questions]
    answers = (
        "opnai\nopenai\nnowhere\nhttp://127.0.0.1:9/v1\n${A_KEY}\na-model\n" + "n\n" * len(asking) + "me\nfake:1\n"
    )
    done = await shell.run("init", stdin=answers, environ={"A_KEY": "k-123456789"})
    assert done.status == 0, done.err
    assert "there is no kind 'opnai'" in done.err
    assert "Where the API is: " in done.err
    assert "me: " in done.err
    text = (shell.home / "zerobot.toml").read_text(encoding="utf-8")
    assert 'base_url = "http://127.0.0.1:9/v1"' in text
    assert 'users = ["fake:1"]' in text


async def test_init_asks_no_key_of_a_server_that_wants_none(shell: Shell) -> None:
    """A local server: Enter for its key, or no --api-key; the vendor's own still wants one."""
    server, asking = "http://127.0.0.1:9/v1", [k for k in installed_kinds().channels.values() if k().questions]
    config = shell.home / "zerobot.toml"
    done = await shell.run("init", stdin=f"openai\n{server}\n\nqwen\n" + "n\n" * len(asking) + "\n")
    assert done.status == 0, done.err
    asked = config.read_text(encoding="utf-8")
    done = await shell.run("init", "--yes", "--force", "--provider", "openai", "--base-url", server, "--model", "qwen")
    assert done.status == 0, done.err
    assert config.read_text(encoding="utf-8") == asked
    assert "api_key" not in asked
    assert (await shell.run("config", "check")).status == 0


MAILBOX = {
    "address": "bot@example.test",
    "password": "${A_KEY}",
    "imap_host": "imap.example.test",
    "smtp_host": "smtp.example.test",
    "trusted_authserv": "mx.example.test",
}


async def test_init_connects_a_mailbox(shell: Shell) -> None:
    """Asked or from options; one answer for a list is its only element, and what cannot be used is asked again."""
    asking = [kind for load in installed_kinds().channels.values() if (kind := load()).questions]
    yes = "".join("y\n" if kind.name == "email" else "n\n" for kind in asking)
    answers = "demo\n" + yes + "bot\n" + "\n".join([*MAILBOX.values(), "email:ann@example.test", ""])
    asked = await shell.run("init", stdin=answers, environ={"A_KEY": "k-123456789"})
    assert asked.status == 0, asked.err
    assert 'Address of the bot\'s mailbox: "bot" is no address' in asked.err
    text = (shell.home / "zerobot.toml").read_text(encoding="utf-8")
    assert 'trusted_authserv = ["mx.example.test"]' in text
    options = [word for key, value in MAILBOX.items() for word in ("--set", f"email.{key}={value}")]
    told = await shell.run(
        "init", "--yes", "--force", "--channel", "email", *options, "--operator", "email:ann@example.test"
    )
    assert told.status == 0, told.err
    assert (shell.home / "zerobot.toml").read_text(encoding="utf-8") == text
    assert (await shell.run("config", "check", environ={"A_KEY": "k-123456789"})).status == 0


async def test_init_that_is_left_half_way_says_that_nothing_was_written(shell: Shell) -> None:
    """Ctrl-C, Ctrl-D, or no person at all: one plain line, and how a script does it."""
    done = await shell.run("init", stdin="openai\n")
    assert (done.status, done.err.strip()) == (
        1,
        "zerobot: stopped, nothing was written; where nobody can answer, give options and --yes",
    )
    assert not (shell.home / "zerobot.toml").exists()


async def test_init_takes_a_variable_that_is_not_set_yet(shell: Shell) -> None:
    """The file is written, and the variable is named."""
    done = await shell.run("init", "--yes", "--provider", "openai", "--api-key", "${A_KEY}", "--model", "m")
    assert done.status == 0, done.err
    assert "${A_KEY}, which is not set" in done.err
    assert 'api_key = "${A_KEY}"' in (shell.home / "zerobot.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--provider", "openai"], "--api-key is missing"),
        (["--provider", "nonsense"], "--provider nonsense"),
        (["--provider", "openai", "--api-key", "k-12345678", "--model", "m", "--base-url", "nowhere"], "--base-url: "),
        (["--operator", "me"], "--operator me"),
        (["--channel", "nonsense"], "--channel nonsense"),
        (["--set", "telegram.bot_token=x"], "--set telegram.bot_token"),
    ],
)
async def test_init_names_the_option_that_is_wrong(shell: Shell, options: list[str], named: str) -> None:
    """And writes nothing."""
    done = await shell.run("init", "--yes", *options)
    assert (done.status, named in done.err) == (2, True), done.err
    assert not (shell.home / "zerobot.toml").exists()


async def test_the_emergency_stop_needs_no_secret_and_no_sound_settings(shell: Shell) -> None:
    """At a shell without the bot's secrets, and with half a line in the file, what operators do works."""
    (shell.home / "zerobot.toml").write_text(
        '[channels.telegram]\nbot_token = "${NOT_SET_HERE}"\n[agent]\nmodel = \n', encoding="utf-8"
    )
    for command in ("freeze", "unfreeze", "audit", "usage"):
        assert (await shell.run(command)).status == 0, command
    for command in ("approvals", "pair", "sessions", "grants"):
        assert (await shell.run(command, "list")).status == 0, command
    assert (await shell.run("config", "check")).status == 2


@pytest.mark.parametrize(("redirection", "status"), [("<&-", 0), (">&-", 0), (">/dev/full", 1), ("2>&-", 0)])
async def test_closed_and_full_streams_are_told_in_words(shell: Shell, redirection: str, status: int) -> None:
    """No fault of its own, and nothing of the interpreter's."""
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        f'"{PROGRAM}" config schema {redirection}',
        cwd=shell.home,
        env=shell.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == status
    assert b"fault of its own" not in err
    assert b"ignored" not in err
