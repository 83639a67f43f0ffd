"""`zerobot chat`: for scripts, for pipes, and for a person at a screen."""

import asyncio
from pathlib import Path

import pytest

from tests.platforms.shell import Shell, at_a_terminal
from zerobot.cli.terminal.question import Decision, Nothing, Say, read_line
from zerobot.cli.terminal.transcript import Asked, Ended, Message, Note, Transcript


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def test_one_message_prints_the_reply_and_nothing_else(shell: Shell) -> None:
    """`-m`: the reply on stdout, nothing on stderr, exit 0; no account, no key, no configuration."""
    done = await shell.run("chat", "-m", "what time is it")
    assert (done.status, done.err) == (0, "")
    assert "UTC" in done.out


async def test_what_the_demo_says_it_can_remember_is_remembered(shell: Shell) -> None:
    """The demo's own example reaches the memory: a first try of it is no failure."""
    done = await shell.run("chat", "-m", "remember that tea is at four")
    assert (done.status, done.err) == (0, "")
    assert "tea is at four" in (await shell.run("memory", "list")).out


async def test_a_message_comes_from_stdin(shell: Shell) -> None:
    """`-m -` reads it there."""
    done = await shell.run("chat", "-m", "-", stdin="what time is it\n")
    assert (done.status, "UTC" in done.out) == (0, True)


async def test_an_empty_message_is_refused(shell: Shell) -> None:
    """There is nothing to say."""
    assert (await shell.run("chat", "-m", " ")).status == 1


async def test_nobody_to_ask_is_a_denial_with_the_true_reason(shell: Shell) -> None:
    """Without a terminal a risky call is shown on stderr, does not run, and nobody is said to have refused it."""
    done = await shell.run("chat", "-m", "run touch made-by-a-tool")
    assert "command: touch made-by-a-tool" in done.err
    assert "nobody can be asked here: the terminal is not interactive" in done.err
    assert "no operator can be reached" in done.out
    assert "said no" not in done.out
    assert "nobody can be asked" in (await shell.run("audit")).out
    assert not (shell.home / "made-by-a-tool").exists()


async def test_two_messages_at_once_are_answered_one_after_the_other(shell: Shell) -> None:
    """Each command waits for the other and prints the reply to its own message, and only that."""
    first, second = await asyncio.gather(
        shell.run("chat", "-m", "run touch made-by-a-tool"), shell.run("chat", "-m", "what time is it")
    )
    assert (first.status, second.status) == (0, 0)
    assert "UTC" in second.out
    assert "touch" not in second.out
    assert "touch" in first.out
    assert "UTC" not in first.out


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
    (shell.home / "zerobot.toml").write_text('[agent]\nname = "Zero"\n', encoding="utf-8")
    await shell.run("chat", "-m", "hello")
    async with shell.daemon():
        done = await shell.run("chat", "-m", "/whoami")
        assert (done.status, "an operator" in done.out) == (0, True)
    assert (await shell.run("sessions", "list", "--json")).out.count('"id"') == 1


async def test_without_a_configuration_each_folder_has_its_own_conversation(shell: Shell) -> None:
    """The workspace is the current folder; what is granted in one of them holds in no other."""
    grant = ("chat", "-m", "run mkdir -pv one-two-three")
    async with at_a_terminal(shell, *grant) as person:
        await person.sees(r"\[A\]lways")
        person.types("A\r")
        assert await person.sees_the_end() == 0
    assert "exit status 0" in (await shell.run(*grant)).out
    other = Shell(shell.home / "other", kept=shell.state)
    other.home.mkdir()
    assert "exit status" not in (await other.run(*grant)).out


async def test_a_person_approves_at_the_screen(shell: Shell) -> None:
    """The whole call is shown, a key and Enter approve it, the result streams in, Ctrl-D leaves."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        person.types("run mkdir -pv one-two-three\r")
        await person.sees("Approval needed: shell.*command: mkdir -pv one-two-three.*asked by: console:local")
        await person.sees(r"\[a\]pprove")
        person.types("a\r")
        await person.sees("Approved by console:local")
        await person.sees_at_rest(r"exit status 0\]")
        person.types("\x04")
        assert await person.sees_the_end() == 0


async def test_a_person_denies_with_a_reason(shell: Shell) -> None:
    """What follows `d` is the reason; it reaches the model; nothing ran."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        person.types("run touch made-by-a-tool\r")
        await person.sees(r"\[a\]pprove")
        person.types("d not today\r")
        await person.sees("Denied by console:local.*not today")
        await person.sees_at_rest("said no")
        person.types("/quit\r")
        assert await person.sees_the_end() == 0
    assert not (shell.home / "made-by-a-tool").exists()


async def test_only_a_line_of_its_own_answers_a_request(shell: Shell) -> None:
    """Words that begin with a key decide nothing and are not sent either."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        person.types("run touch made-by-a-tool\r")
        await person.sees(r"\[a\]pprove")
        person.types("actually no\r")
        await person.sees("Not sent: actually no.*/say TEXT")
        await person.sees(r"\[a\]pprove")
        person.types("d\r")
        await person.sees("Denied by console:local")
    assert not (shell.home / "made-by-a-tool").exists()


async def test_a_message_withdraws_a_request_only_when_it_is_meant_to(shell: Shell) -> None:
    """`/say` writes to the bot although a request waits; the request is closed, in words."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        person.types("run touch made-by-a-tool\r")
        await person.sees(r"\[a\]pprove")
        person.types("/say what time is it\r")
        await person.sees("Closed.*something else was written")
        await person.sees("UTC")
    assert not (shell.home / "made-by-a-tool").exists()


async def test_requests_are_asked_one_after_the_other(shell: Shell) -> None:
    """Of several requests one is shown and asked; two answers typed at once decide only that one."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        # A paste keeps its line feed: two wishes in one message.
        person.types("\x1b[200~run touch one\nrun touch two\x1b[201~\r")
        await person.sees(r"command: touch (one|two).*\[a\]pprove.*1 more")
        person.types("a\ra\r")
        await person.sees("before the request could be read")
        await person.sees(r"\[a\]pprove")
        person.types("d\r")
        await person.sees("Denied by console:local")
        await person.sees("exit status 0")
    assert (shell.home / "one").exists() != (shell.home / "two").exists()


async def test_two_messages_in_a_row_are_printed_once_each(shell: Shell) -> None:
    """What waits for its turn is answered after the first, and the scrollback has each answer once."""
    async with at_a_terminal(shell, "chat") as person:
        await person.sees("›")
        person.types("hello\rwhat time is it\r")
        await person.sees_at_rest("UTC")
        person.types("/quit\r")
        assert await person.sees_the_end() == 0
    done = await shell.run("sessions", "list", "--json")
    assert '"waiting": 0' in done.out


async def test_one_message_at_a_terminal_asks_there(shell: Shell) -> None:
    """`-m` with a person behind it: what is risky is asked, a line answers."""
    async with at_a_terminal(shell, "chat", "-m", "run mkdir -pv one-two-three") as person:
        await person.sees(r"command: mkdir -pv one-two-three.*\[a\]pprove")
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
        one.types("run mkdir -pv one-two-three\r")
        await one.sees(r"\[a\]pprove")
        await two.sees(r"command: mkdir -pv one-two-three.*\[a\]pprove")
        two.types("a\r")
        for person in (one, two):
            await person.sees("Approved by console:local.*exit status 0")


async def test_a_message_that_was_given_up_for_a_newer_one_fails(shell: Shell) -> None:
    """`-m` that waits for an approval ends when another terminal's message takes its turn's place."""
    async with shell.daemon(), at_a_terminal(shell, "chat", "-m", "run mkdir -pv hi") as person:
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


def asked(*, grantable: bool = True) -> Asked:
    return Asked(id="1", approval="a", lines=(), grantable=grantable)


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("a", Decision("approve")),
        ("A", Decision("always")),
        ("d", Decision("deny")),
        (" d  not today ", Decision("deny", "not today")),
        ("/say a", Say("a")),
        ("/stop", Say("/stop")),
    ],
)
def test_what_a_line_means_while_a_request_is_asked(line: str, meaning: Decision | Say) -> None:
    """A key alone, `d` with a reason, a command, and what is said on purpose."""
    assert read_line(line, asked(), in_time=True) == meaning


@pytest.mark.parametrize("line", ["actually no", "a b", "aa", "A!", "dd", "yes", "approve", "/say", "hello"])
def test_anything_else_neither_decides_nor_is_sent(line: str) -> None:
    """It is told what can be typed."""
    assert isinstance(read_line(line, asked(), in_time=True), Nothing)


@pytest.mark.parametrize("line", ["a", "A", "d", "d because"])
def test_what_was_begun_before_the_request_could_be_read_decides_nothing(line: str) -> None:
    """Whoever types while a request comes up has not read it."""
    assert isinstance(read_line(line, asked(), in_time=False), Nothing)


def test_always_is_an_answer_only_where_it_is_offered() -> None:
    """Else the line does nothing and says so."""
    refused = read_line("A", asked(grantable=False), in_time=True)
    assert isinstance(refused, Nothing)
    assert "not offered" in refused.why


@pytest.mark.parametrize("line", ["a", "A", "d", "hello"])
def test_without_a_request_every_line_is_said(line: str) -> None:
    """A single letter too."""
    assert read_line(line, None, in_time=False) == Say(line)


def draft(ident: str, text: str, reply_to: str) -> dict[str, object]:
    return {"kind": "message", "id": ident, "text": text, "reply_to": reply_to, "growing": True}


def test_a_message_settles_when_its_turn_ends() -> None:
    """While a turn works its messages may change; with its end they are printed, in order, once."""
    transcript = Transcript()
    transcript.take({"kind": "typing"})
    assert transcript.take(draft("1", "hel", "m")) == []
    assert transcript.take({"kind": "edit", "id": "1", "text": "hello"}) == []
    message, ended = transcript.take({"kind": "ended", "reply_to": "m", "outcome": "replied"})
    assert isinstance(message, Message)
    assert (message.text, message.reply_to, ended) == ("hello", "m", Ended("m", "replied"))
    assert transcript.take({"kind": "edit", "id": "1", "text": "hello"}) == []


def test_a_message_that_a_guard_blocks_is_said_to_be_so() -> None:
    """In words, not by the name of a state."""
    blocked = Transcript().take({"kind": "accepted", "id": "m", "acceptance": "blocked"})
    assert blocked == [Note("A guard of this bot does not let that message through.")]


def test_the_next_turns_draft_is_never_printed_before_its_end() -> None:
    """A queued message's turn begins right behind another one: its edits are drawn, the last of them is printed."""
    transcript = Transcript()
    transcript.take(draft("1", "one", "m1"))
    transcript.take(draft("2", "t", "m2"))
    settled = transcript.take({"kind": "ended", "reply_to": "m1", "outcome": "replied"})
    assert [shown.text for shown in settled if isinstance(shown, Message)] == ["one"]
    for text in ("tw", "two"):
        assert transcript.take({"kind": "edit", "id": "2", "text": text}) == []
    assert transcript.working
    settled = transcript.take({"kind": "ended", "reply_to": "m2", "outcome": "replied"})
    assert [shown.text for shown in settled if isinstance(shown, Message)] == ["two"]


def test_an_edit_alone_prints_nothing() -> None:
    """Whatever was ended before: a text that may still change waits for the end of its turn."""
    transcript = Transcript()
    transcript.take({"kind": "ended", "reply_to": "m1", "outcome": "replied"})
    assert transcript.take({"kind": "edit", "id": "9", "text": "he"}) == []
    assert transcript.take({"kind": "edit", "id": "9", "text": "hello"}) == []
    assert len(transcript.take({"kind": "ended", "reply_to": "m2", "outcome": "replied"})) == 2


def test_the_answer_to_a_command_does_not_wait_for_a_turn() -> None:
    """What answers a command is complete, though a turn works on."""
    transcript = Transcript()
    transcript.commands.add("c")
    transcript.take(draft("1", "hel", "m"))
    (message,) = transcript.take({"kind": "message", "id": "2", "text": "idle", "reply_to": "c"})
    assert isinstance(message, Message)
    assert list(transcript.live) == ["1"]


def test_a_message_without_a_turn_is_settled_at_once() -> None:
    """A notice waits for nothing."""
    (message,) = Transcript().take({"kind": "message", "id": "1", "text": "note"})
    assert isinstance(message, Message)


def test_a_draft_that_was_taken_back_is_not_printed() -> None:
    """A deleted message leaves nothing behind."""
    transcript = Transcript()
    transcript.take({"kind": "typing"})
    transcript.take(draft("1", "oops", "m"))
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
