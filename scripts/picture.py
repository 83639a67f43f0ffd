"""Holds a conversation with the demo model in a pseudo terminal, and draws what stands on the screen at the end."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import tempfile
import termios
import time
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 92, 60
PATIENCE = 60.0
"""Seconds for the whole conversation."""
QUESTION = "[a]pprove, [A]lways in this chat, [d]eny (a reason may follow), then Enter ›"
UNDER_WAY = "working (Ctrl-C"

FILES = {"todo.md": "- water the tomatoes\n- buy string\n- call Ann\n", "seeds.txt": "basil\nchard\nleek\n"}
SAID = (
    ("list", ""),
    ("run cp -v todo.md done.md", "a\r"),
)
"""What is typed, and the line that answers the approval."""

_SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


class Screen:
    """As much of a terminal as the conversation needs: text, line feeds, cursor moves, erasing, colours."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, str]]] = [[]]
        self._row = 0
        self._column = 0
        self._style = ""

    def feed(self, text: str) -> None:
        """Take output in."""
        place = 0
        while place < len(text):
            match = _SEQUENCE.match(text, place)
            if match:
                self._act(match[1], match[2])
                place = match.end()
                continue
            self._put(text[place])
            place += 1

    def text(self) -> Text:
        """What stands there, with its colours, without the empty rows at the end."""
        lines = [
            Text.assemble(*(Text.from_ansi(f"{style}{''.join(char for char, _ in run)}\x1b[0m") for style, run in runs))
            for runs in (groupby(row, key=itemgetter(1)) for row in self.rows)
        ]
        for line in lines:
            line.rstrip()
        while lines and not lines[-1].plain:
            lines.pop()
        return Text("\n").join(lines)

    def _put(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\n":
            self._row += 1
        elif char == "\b":
            self._column = max(self._column - 1, 0)
        elif char >= " ":
            row = self._current()
            row[self._column] = (char, self._style)
            self._column += 1

    def _current(self) -> list[tuple[str, str]]:
        """The row under the cursor, long enough."""
        while len(self.rows) <= self._row:
            self.rows.append([])
        row = self.rows[self._row]
        row += [(" ", "")] * (self._column + 1 - len(row))
        return row

    def _act(self, parameters: str, final: str) -> None:
        count = int(parameters) if parameters.isdecimal() else 1
        match final:
            case "A":
                self._row = max(self._row - count, 0)
            case "B":
                self._row += count
            case "C":
                self._column += count
            case "D":
                self._column = max(self._column - count, 0)
            case "m":
                self._style = "" if parameters in {"", "0"} else self._style + f"\x1b[{parameters}m"
                if parameters.startswith("0;"):
                    self._style = f"\x1b[{parameters}m"
            case "K":
                del self._current()[self._column :]
            case "J":
                del self._current()[self._column :]
                del self.rows[self._row + 1 :]


class Conversation:
    """A `zerobot chat` in a pseudo terminal."""

    def __init__(self, here: Path) -> None:
        self.screen = Screen()
        self._end = time.monotonic() + PATIENCE
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(here / "garden")
            surroundings = {"PATH": os.environ["PATH"], "HOME": str(here), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
            command = str(Path(sys.executable).with_name("zerobot"))
            os.execve(  # noqa: S606 - the program of this checkout
                command, [command, "chat"], surroundings | {"ZEROBOT_STATE_DIR": str(here / "state")}
            )
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    def until(self, wanted: str) -> None:
        """Read until the last row that is not empty is this one, and nothing is under way.

        Raises:
            TimeoutError: It does not come.
        """
        while not (self._last() == wanted and UNDER_WAY not in self.screen.text().plain):
            if not self._read():
                raise TimeoutError(f"{wanted!r} did not come; the screen shows:\n{self.screen.text().plain}")

    def finish(self) -> None:
        """Read to the end."""
        while self._read():
            pass
        os.waitpid(self._pid, 0)

    def _last(self) -> str:
        return self.screen.text().plain.rpartition("\n")[2]

    def _read(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], max(self._end - time.monotonic(), 0))
        try:
            output = os.read(self._terminal, 65536) if ready else b""
        except OSError:
            # How Linux says that the other end is closed.
            return False
        self.screen.feed(output.decode("utf-8", "replace"))
        return bool(output)


def hold(here: Path) -> Text:
    """Hold the conversation in a folder of its own; the screen at its end."""
    (here / "garden").mkdir()
    for name, text in FILES.items():
        (here / "garden" / name).write_text(text, encoding="utf-8")
    conversation = Conversation(here)
    conversation.until("›")
    for line, answer in SAID:
        conversation.type(line)
        conversation.until(f"› {line}")
        conversation.type("\r")
        if answer:
            conversation.until(QUESTION)
            conversation.type(answer)
        conversation.until("›")
    conversation.type("/quit\r")
    conversation.finish()
    return conversation.screen.text()


def main(target: Path) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="zerobot-picture-") as here:
        shown = hold(Path(here))
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(shown)
        target.write_text(console.export_svg(title="zerobot chat", unique_id="zerobot-chat"), encoding="utf-8")
    sys.stderr.write(f"wrote {target}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
