"""What a line that was typed means: an answer to the request that is asked, or something to say. Pure.

An answer decides only what the person can have read: it is a line of its own, begun after the request stood on the
screen for a moment. Whatever else is typed meanwhile neither decides nor is sent.
"""

from dataclasses import dataclass

from zerobot.cli.terminal.transcript import Asked
from zerobot.daemon.chat_commands import is_command

TIME_TO_READ = 0.7
"""Seconds from showing a request until a key can begin an answer: what is typed sooner was meant for something else."""
SAY = "/say"
"""Says what follows it although a request waits for its answer."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The line answers the request."""

    button: str
    """`approve`, `always` or `deny`."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Say:
    """The line is for the bot."""

    text: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """The line does nothing."""

    why: str


def choices(asked: Asked) -> str:
    """How a request is answered, for the question."""
    always = "[A]lways in this chat, " if asked.grantable else ""
    return f"[a]pprove, {always}[d]eny (a reason may follow), then Enter"


def read_answer(line: str, asked: Asked) -> Decision | Nothing:
    """Read a line as an answer to a request."""
    word, _, rest = line.strip().partition(" ")
    keys = "a, A or d" if asked.grantable else "a or d"
    if word == "d":
        return Decision("deny", rest.strip())
    if word == "a" and not rest:
        return Decision("approve")
    if word == "A" and not rest:
        return Decision("always") if asked.grantable else Nothing(f"Always is not offered for this one; type {keys}.")
    return Nothing(f"That is no answer; type {keys}, then Enter.")


def read_line(line: str, asked: Asked | None, *, in_time: bool) -> Decision | Say | Nothing:
    """Read a line that was typed at the prompt.

    Args:
        line: Not empty.
        asked: The request that is asked at the moment.
        in_time: Whether the line was begun after the request could be read.
    """
    text = line.strip()
    word, _, rest = text.partition(" ")
    if word == SAY:
        return Say(rest.strip()) if rest.strip() else Nothing(f"{SAY} TEXT says TEXT to the bot.")
    if asked is None or is_command(text):
        return Say(line)
    answer = read_answer(text, asked)
    if isinstance(answer, Decision):
        return answer if in_time else Nothing("You began that before the request could be read: read it, then answer.")
    return Nothing(
        f"Not sent: {text}\n{answer.why} To say it to the bot instead: {SAY} TEXT; that withdraws the request."
    )
