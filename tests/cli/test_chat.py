"""`zerobot chat`: for scripts, for pipes, and for a person at a screen."""

from pathlib import Path

import pytest

from tests.platforms.shell import Shell, at_a_terminal
from zerobot.cli.terminal.transcript import Asked, Ended, Message, Note, Transcript


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def test_one_message_prints_the_reply_and_nothing_else(shell: Shell) -> None:
    """`-m`: the reply on stdout, nothing on stderr, exit 0; no account, no key, no configuration."""
    done = await shell.run("chat", "-m", "what time is it")
    assert (done.status, done.err) == (0, "")
    assert "UTC" in done.out


async def test_a_message_comes_from_stdin(shell: Shell) -> None:
    """`-m -` reads it there."""
    done = await shell.run("chat", "-m", "-", stdin="what time is it\n")
    assert (done.status, "UTC" in done.out) == (0, True)


async def test_an_empty_message_is_refused(shell: Shell) -> None:
    """There is nothing to say."""
    assert (await shell.run("chat", "-m", " ")).status == 1


async def test_nobody_to_ask_is_a_denial_with_the_true_reason(shell: Shell) -> None:
    """Without a terminal a risky call is shown on stderr, denied, and the model is told why."""
    done = await shell.run("chat", "-m", "run touch made-by-a-tool")
    assert "command: touch made-by-a-tool" in done.err
    assert "no terminal" in done.err
    assert "no terminal" in done.out
    assert not (shell.home / "made-by-a-tool").exists()


async def test_lines_from_a_pipe_are_messages(shell: Shell) -> None:
    """Without a screen each line is answered in its turn, commands too."""
    done = await shell.run("chat", stdin="/whoami\nwhat time is it\n/quit\nnever said\n")
    assert done.status == 0
    assert done.out.index("console:local") < done.out.index("UTC")


async def test_a_failed_turn_fails_the_command(shell: Shell) -> None:
    """A model that cannot be reached is told in words, and the exit status says so."""
    (shell.home / "zerobot.toml").write_text(
        '[agent]\nmodel = "main/x"\n[providers.main]\nkind = "openai"\napi_key = "k-123456789"\n'
        'base_url = "http://127.0.0.1:9/v1"\nmax_retries = 0\n',
        encoding="utf-8",
    )
    done = await shell.run("chat", "-m", "hello")
    assert done.status == 1
    assert "failed" in done.err


async def test_beside_a_daemon_it_is_the_daemons_conversation(shell: Shell) -> None:
    """With a daemon the terminal attaches to it; the conversation goes on where it was."""
    await shell.run("chat", "-m", "hello")
    async with shell.daemon():
        done = await shell.run("chat", "-m", "/whoami")
        assert (done.status, "an operator" in done.out) == (0, True)
    assert (await shell.run("sessions", "list", "--json")).out.count('"id"') == 1


async def test_a_person_approves_at_the_screen(shell: Shell) -> None:
    """The whole call is shown, one key approves it, the result streams in, Ctrl-D leaves."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        person.types("run echo one-two-three\r")
        await person.sees("Approval needed: shell.*command: echo one-two-three.*asked by: console:local")
        await person.sees(r"\[a\]pprove")
        person.types("a")
        await person.sees("Approved by console:local")
        await person.sees_at_rest(r"exit status 0\]")
        person.types("\x04")
        assert await person.sees_the_end() == 0


async def test_a_person_denies_with_a_reason(shell: Shell) -> None:
    """`d` asks why; the reason reaches the model; nothing ran."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        person.types("run touch made-by-a-tool\r")
        await person.sees(r"\[a\]pprove")
        person.types("d")
        await person.sees("why not")
        person.types("not today\r")
        await person.sees("Denied by console:local.*not today")
        await person.sees_at_rest("said no")
        person.types("/quit\r")
        assert await person.sees_the_end() == 0
    assert not (shell.home / "made-by-a-tool").exists()


async def test_one_message_at_a_terminal_asks_there(shell: Shell) -> None:
    """`-m` with a person behind it: what is risky is asked, a line answers."""
    async with at_a_terminal(shell, "chat", "-m", "run echo one-two-three") as person:
        await person.sees(r"command: echo one-two-three.*\[a\]pprove")
        person.types("what\r")
        await person.sees(r"\[a\]pprove")
        person.types("a\r")
        await person.sees("exit status 0")
        assert await person.sees_the_end() == 0


async def test_a_second_terminal_sees_and_decides_too(shell: Shell) -> None:
    """Two terminals are one conversation: a prompt asked at one is answered at the other."""
    async with shell.daemon(), at_a_terminal(shell, "chat") as one, at_a_terminal(shell, "chat") as two:
        await two.sees("›")
        await one.sees("›")
        one.types("run echo one-two-three\r")
        await one.sees(r"\[a\]pprove")
        await two.sees(r"command: echo one-two-three.*\[a\]pprove")
        two.types("a")
        for person in (one, two):
            await person.sees("Approved by console:local.*exit status 0")


async def test_a_message_that_was_given_up_for_a_newer_one_fails(shell: Shell) -> None:
    """`-m` that waits for an approval ends when another terminal's message takes its turn's place."""
    async with shell.daemon(), at_a_terminal(shell, "chat", "-m", "run echo hi") as person:
        await person.sees(r"\[a\]pprove")
        assert (await shell.run("chat", "-m", "what time is it")).status == 0
        assert await person.sees_the_end() == 1


async def test_the_bot_that_stops_says_so(shell: Shell) -> None:
    """When the daemon ends, an attached terminal ends too, with a word about it."""
    async with shell.daemon() as daemon, at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        daemon.terminate()
        await person.sees("hung up|has stopped")
        await person.sees_the_end()


async def test_ctrl_c_stops_the_turn_and_then_leaves(shell: Shell) -> None:
    """The first one stops what runs, and at an idle prompt it leaves."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        person.types("hello\r")
        await person.sees("demo model")
        person.types("\x03")
        await person.sees_at_rest(r"\(Stopped\.\)")
        person.types("\x03")
        assert await person.sees_the_end() == 0


async def test_what_was_typed_is_remembered_privately(shell: Shell) -> None:
    """The arrow key brings the last line back at the next start; only its owner can read the file."""
    for _ in range(2):
        async with at_a_terminal(shell, "chat") as person:
            await person.sees("›")
            person.types("/whoami\r" if _ == 0 else "\x1b[A\r")
            await person.sees_at_rest("You are console:local")
            person.types("\x04")
            await person.sees_the_end()
    assert (shell.state / "chat_history").stat().st_mode & 0o077 == 0


def test_a_message_settles_when_its_turn_ends() -> None:
    """While a turn works its messages may change; with its end they are printed, in order, once."""
    transcript = Transcript()
    transcript.take({"kind": "typing"})
    assert transcript.take({"kind": "message", "id": "1", "text": "hel", "reply_to": "m"}) == []
    assert transcript.take({"kind": "edit", "id": "1", "text": "hello"}) == []
    message, ended = transcript.take({"kind": "ended", "reply_to": "m", "outcome": "replied"})
    assert isinstance(message, Message)
    assert (message.text, message.reply_to, ended) == ("hello", "m", Ended("m", "replied"))
    assert transcript.take({"kind": "edit", "id": "1", "text": "hello"}) == []


def test_a_message_without_a_turn_is_settled_at_once() -> None:
    """A notice waits for nothing."""
    (message,) = Transcript().take({"kind": "message", "id": "1", "text": "note"})
    assert isinstance(message, Message)


def test_a_draft_that_was_taken_back_is_not_printed() -> None:
    """A deleted message leaves nothing behind."""
    transcript = Transcript()
    transcript.take({"kind": "typing"})
    transcript.take({"kind": "message", "id": "1", "text": "oops"})
    transcript.take({"kind": "delete", "id": "1"})
    assert transcript.take({"kind": "ended", "reply_to": "m", "outcome": "stopped"}) == [Ended("m", "stopped")]


def test_a_prompt_is_open_until_it_is_settled() -> None:
    """A prompt that comes again (a terminal attached anew) is one prompt; settled, it is gone."""
    transcript = Transcript()
    item = {"kind": "ask", "id": "1", "prompt": {"approval": "a", "lines": [["title", "", "T"]], "open": True}}
    (asked,) = transcript.take(item)
    assert isinstance(asked, Asked)
    assert transcript.take(item) == []
    transcript.take({"kind": "settle", "id": "1", "prompt": {"approval": "a", "lines": [], "open": False}})
    assert transcript.asked == {}


def test_a_press_that_came_too_late_is_told() -> None:
    """What really happened is shown to who pressed."""
    assert Transcript().take({"kind": "pressed", "outcome": "already", "text": "Denied."}) == [Note("Denied.")]


@pytest.mark.parametrize("item", [{}, {"kind": "news"}, {"kind": 7}, {"kind": "ask"}, {"kind": "message", "spans": 3}])
def test_strange_items_harm_nothing(item: dict[str, object]) -> None:
    """What another version sends is shown as far as it is understood."""
    Transcript().take(item)
