"""What is written to the screen: whatever a model or a sender wrote, it moves no cursor and changes no title."""

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

from zerobot.cli.output import as_json, table
from zerobot.cli.terminal.paint import asked_text, message_text, note_text, to_ansi
from zerobot.cli.terminal.transcript import Asked, Message, Note

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\r\b\u202e[bold]x[/bold][link=https://evil.test]y[/link]:warning:"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def written(text: Text) -> str:
    """What a terminal gets for a text."""
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, color_system="truecolor", width=100).print(text, highlight=False)
    return stream.getvalue()


def is_harmless(output: str) -> bool:
    """Whether nothing is in it but text, line feeds and colours."""
    return all(char == "\n" or char.isprintable() for char in COLOURS.sub("", output))


@pytest.mark.parametrize(
    "text",
    [
        message_text(Message(id="1", text=HOSTILE, file=HOSTILE)),
        note_text(Note(HOSTILE)),
        asked_text(Asked(id="1", approval="a", lines=(("argument", HOSTILE, HOSTILE),), whole=HOSTILE)),
        asked_text(Asked(id="1", approval="a", lines=(("outcome", "", HOSTILE),), open=False)),
    ],
    ids=["message", "note", "asked", "settled"],
)
def test_hostile_text_is_only_text(text: Text) -> None:
    """Control sequences come out as visible escapes; the library's own markup is not read from it."""
    output = written(text)
    assert is_harmless(output)
    assert "[bold]x[/bold]" in COLOURS.sub("", output)


def test_formatting_is_shown() -> None:
    """A span colours its own characters and no others."""
    output = written(message_text(Message(id="1", text="run ls now", spans=((4, 6, "code", ""),))))
    assert re.search(r"run \x1b\[[0-9;]*mls\x1b\[0m now", output)


def test_spans_that_do_not_fit_harm_nothing() -> None:
    """Formatting that lies outside its text is left out."""
    message = Message(id="1", text="ab", spans=((1, 99, "bold", ""), (-5, 1, "nonsense", ""), (7, 3, "pre", "")))
    assert message_text(message).plain == "ab"


def test_a_draft_keeps_to_its_room() -> None:
    """Of a long draft the last lines are drawn, wrapped to the width."""
    console = Console(file=io.StringIO(), width=20, force_terminal=True)
    drawn = to_ansi(Text(" ".join(f"word{number}" for number in range(100))), console, 5)
    lines = COLOURS.sub("", drawn).rstrip("\n").split("\n")
    assert len(lines) <= 5
    assert all(len(line) < 20 for line in lines)
    assert "word99" in lines[-1]


def test_tables_and_json_are_harmless() -> None:
    """A name that somebody chose does not act on the operator's terminal."""
    assert is_harmless(table([{"name": HOSTILE, "n": 1234}], {"name": "NAME", "n": "N"}, "nothing"))
    assert is_harmless(as_json({"name": HOSTILE}))
