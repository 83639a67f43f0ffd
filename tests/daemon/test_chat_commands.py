"""Which messages are commands, and which commands are refused before anybody looks who wrote them."""

import pytest

from zerobot.daemon.chat_commands import COMMANDS, UNKNOWN, is_command, read_command_line, refusal


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/help", "help", ""),
        ("  /HELP ", "help", ""),
        ("!help", "help", ""),
        ("/stop@bot", "stop", ""),
        ("/deny AB12 not today", "deny", "AB12 not today"),
        ("/start", "help", ""),
    ],
)
def test_a_command_is_its_name_and_the_rest(text: str, name: str, rest: str) -> None:
    """In any case, with either prefix, with a bot's name behind it."""
    line = read_command_line(text)
    assert line is not None
    assert (line.command.name, line.rest, refusal(line)) == (name, rest, "")


@pytest.mark.parametrize("text", ["/usr/bin is full", "/hepl me please", "hello /help", "/", "!wow", "/help!", "//x"])
def test_a_sentence_is_no_command(text: str) -> None:
    """It is something to answer."""
    assert not is_command(text)


@pytest.mark.parametrize(("text", "meant"), [("/hepl", "`/help`"), ("/aprove", "`/approve`"), ("/xyzzy", "no command")])
def test_a_mistyped_command_is_told(text: str, meant: str) -> None:
    """It does not go to the model, and the nearest one is named."""
    line = read_command_line(text)
    assert line is not None
    assert line.command is UNKNOWN
    assert meant in refusal(line)


@pytest.mark.parametrize("text", ["/freeze off", "/unfreeze no", "/new topic: tea", "!freeze off"])
def test_what_changes_much_takes_no_words(text: str) -> None:
    """It might be meant the other way round, so nothing is done."""
    line = read_command_line(text)
    assert line is not None
    assert "Nothing was done" in refusal(line)


def test_no_command_has_the_name_of_the_unknown_one() -> None:
    """What is refused is never in the menu."""
    assert UNKNOWN not in COMMANDS
