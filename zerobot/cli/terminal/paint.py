"""Messages and prompts as styled text. Every text passes the escaper once more, right where it is written."""

from rich.console import Console, RenderableType
from rich.text import Text

from zerobot.cli.terminal.transcript import Asked, Message, Note
from zerobot.security.visible import escape

_STYLES = {
    "bold": "bold",
    "italic": "italic",
    "underline": "underline",
    "strike": "strike",
    "code": "cyan",
    "pre": "cyan",
    "link": "underline blue",
    "quote": "italic dim",
}
_LINE_STYLES = {"title": "bold yellow", "outcome": "bold", "note": "yellow"}


def message_text(message: Message) -> Text:
    """A message with its formatting; a bare one where its spans do not fit the text."""
    safe = escape(message.text)
    text = Text(safe)
    if safe == message.text:
        for start, end, kind, _ in message.spans:
            text.stylize(_STYLES.get(kind, ""), start, end)
    if message.file:
        text.append(f"{chr(10) if safe else ''}[file] {escape(message.file)}", style="dim")
    return text


def asked_text(asked: Asked, *, seen: bool = False) -> Text:
    """All lines of a prompt, and the whole request below those of an open one when some line was cut.

    Args:
        asked: The prompt.
        seen: Whether it stands on the screen already: of a settled one the outcome is enough then.
    """
    text = Text()
    outcome = [line for line in asked.lines if line[0] == "outcome"]
    for kind, label, line in outcome if seen and outcome and not asked.open else asked.lines:
        if text:
            text.append("\n")
        if label:
            text.append(f"  {escape(label)}: ", style="dim")
        text.append(escape(line), style=_LINE_STYLES.get(kind, ""))
    if asked.whole and asked.open:
        text.append("\n  the whole request:\n", style="dim")
        text.append("\n".join(f"  | {line}" for line in escape(asked.whole).splitlines()))
    return text


def note_text(note: Note) -> Text:
    """A note, set apart from what the bot says."""
    return Text(escape(note.text), style="yellow")


def to_ansi(text: Text, console: Console, lines: int) -> str:
    """The last lines of a text as a terminal takes them, for a part of the screen that is drawn again and again.

    Args:
        text: Any text.
        console: Gives the width and the colours.
        lines: How many at most.
    """
    rows = text.wrap(console, max(console.width - 1, 10))
    shown: list[RenderableType] = list(rows[-lines:])
    with console.capture() as capture:
        console.print(*shown, sep="\n", soft_wrap=True)
    return capture.get()
