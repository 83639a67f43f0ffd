"""What the demo model makes of a sentence: plain patterns, no understanding."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from zerobot.core.memory import KEY_CHARACTERS
from zerobot.core.messages import AssistantMessage, RecordedCall, ResultCode
from zerobot.core.model import ToolSpec

EXCERPT_LINES = 20
EXCERPT_CHARACTERS = 800
KEY_WORDS = 4
"""Words of a fact that name it."""

ABILITIES = """\
- `read README.md`: reads a file
- `list` or `list docs`: lists a folder
- `search TODO in src`: searches files
- `write notes.txt: buy milk`: writes a file
- `run touch notes.txt`: runs a command, if an operator allows it
- `remember that tea is at four`: keeps a note
- `what time is it`: tells the time"""

HOW_TO_CONFIGURE = """\
For a real model run `zerobot init`, or write it into the configuration yourself: \
a table `[providers.main]` with `kind` (`anthropic` or `openai`) and `api_key`, \
and `model = "main/…"` under `[agent]`."""

HELP = f"""\
I am the **demo model** that comes with zerobot. I work without a network and I understand nothing: I look for a few \
plain patterns, so that you can see streaming, tools and approvals at work. Write one of these:

{ABILITIES}

{HOW_TO_CONFIGURE}"""

GREETING = f"""\
Hello! I am zerobot's **demo model**. I don't understand language, but I know a few plain requests:

{ABILITIES}

{HOW_TO_CONFIGURE}"""

UNKNOWN = f"""\
I can't really answer that. I am the **demo model**: a handful of patterns without any understanding.

What you see here is nevertheless the real thing. These words arrive *one by one*, the way a model's answer does, and \
the message grows in place. Anything risky that I ask for waits until an operator has allowed it.

Things I can do:

{ABILITIES}

{HOW_TO_CONFIGURE}"""

_POLITE = re.compile(r"^(please|hey|ok|now|then|zero|(can|could|would|will|i want) you( to)?)[\s,:]+", re.IGNORECASE)
_GREETING = re.compile(
    r"^(hi|hello|hey|hallo|moin|servus|good (morning|afternoon|evening|day)|/start)\b.{0,20}$", re.IGNORECASE
)
_HELP = re.compile(r"^(/?help|\?|what can you do|who are you|what are you)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A tool that a sentence plainly asks for."""

    tool: str
    arguments: Mapping[str, str]
    saying: str
    """What the demo says while it asks for the tool."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    tool: str
    saying: str


def _rule(pattern: str, tool: str, saying: str) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE | re.DOTALL), tool, saying)


_RULES = (
    _rule(
        r"(run|execute)\s+(the command\s+)?`(?P<command>[^`]+)`[\s.?!]*", "shell", "I would like to run `{command}`."
    ),
    _rule(r"(run|execute)\s+(the command\s+)?(?P<command>.+)", "shell", "I would like to run `{command}`."),
    _rule(r"write\s+(to\s+)?(?P<path>[^\s:]+)\s*:\s*(?P<content>.+)", "write_file", "I would like to write `{path}`."),
    _rule(r"(search|grep|find)\s+(for\s+)?(?P<query>.+?)\s+in\s+(?P<path>\S+)", "search_files", "I'll search there."),
    _rule(r"(search|grep|find)\s+(for\s+)?(?P<query>.+)", "search_files", "I'll search the files."),
    _rule(r"(list|ls)(\s+(the\s+)?files)?", "list_files", "I'll see what is there."),
    _rule(r"(list|ls)(\s+(the\s+)?files)?(\s+(in|of|under))?\s+(?P<path>\S+)", "list_files", "I'll look into that."),
    _rule(r"(fetch|get|read|show|open)\s+(me\s+)?(?P<url>https?://\S+)", "fetch_url", "I would like to fetch {url}."),
    _rule(r"(read|show|open|cat)\s+(me\s+)?(the\s+)?(file\s+)?(?P<path>\S+)", "read_file", "I'll read `{path}`."),
    _rule(r"remember\s+(that\s+)?(?P<text>.+)", "remember", "I would like to remember that."),
    _rule(r"(what('s|\s+is)?\s+(the\s+)?)?(current\s+)?(time|date)(\s+is\s+it)?(\s+now)?", "time_now", "Let me see."),
)
_VERBATIM = frozenset({"command", "content", "text"})

# The parameters are other people's: what the demo calls `query` may be called `pattern` there.
_OTHER_NAMES = {
    "path": ("file", "directory", "folder"),
    "query": ("pattern", "text", "regex"),
    "content": ("text", "contents"),
    "text": ("content", "fact", "note", "memory"),
    "command": ("cmd", "line"),
}

_OUTCOMES = {
    ResultCode.DENIED: "An operator said no, so `{tool}` did not run.",
    ResultCode.EXPIRED: "Nobody decided in time, so `{tool}` did not run.",
    ResultCode.BLOCKED: "`{tool}` did not run.",
    ResultCode.UNKNOWN_TOOL: "There is no tool `{tool}` here.",
    ResultCode.BAD_ARGS: "The tool `{tool}` did not accept what I gave it, so it did not run.",
    ResultCode.NOT_RUN: "Nobody decided about `{tool}`, so it did not run.",
    ResultCode.SKIPPED: "`{tool}` was skipped.",
    ResultCode.CUT_OFF: "My request for `{tool}` was cut off, so it did not run.",
    ResultCode.CANCELLED: "`{tool}` was stopped.",
    ResultCode.INTERRUPTED: "`{tool}` was interrupted, and I don't know how far it came.",
    ResultCode.TIMEOUT: "`{tool}` took too long and was ended.",
    ResultCode.WITHHELD: "`{tool}` ran, but its output is withheld.",
}


def wishes_in(text: str) -> list[Wish]:
    """Read what a message asks for: one wish a line, or none at all unless every line is one."""
    lines = [line for line in map(_plain, text.strip().splitlines()) if line]
    wishes = [_wish(line) for line in lines]
    found = [wish for wish in wishes if wish is not None]
    if len(found) == len(lines):
        return found
    # A text to write may have many lines.
    whole = _wish(_plain(text))
    return [whole] if whole and whole.tool in {"write_file", "remember"} else []


def talk(text: str) -> str:
    """Answer a message that asks for no tool."""
    plain = _plain(text)
    if _GREETING.match(plain):
        return GREETING
    return HELP if _HELP.match(plain) or not plain else UNKNOWN


def fitted(wish: Wish, tool: ToolSpec) -> dict[str, str]:
    """Name the arguments as the tool does."""
    properties = tool.parameters.get("properties")
    known = list(properties) if isinstance(properties, dict) else []
    return {_known_as(name, known): value for name, value in wish.arguments.items()}


def missing(tools: Sequence[str]) -> str:
    """Say that tools are not there."""
    names = ", ".join(f"`{tool}`" for tool in tools)
    return f"For this I would need {names}, which I don't have here. (I am the demo model; `help` says what I know.)"


def report(message: AssistantMessage) -> str:
    """Tell honestly what came of the calls of one step."""
    return "\n\n".join(_outcome(call) for call in message.calls)


def _known_as(name: str, known: Sequence[str]) -> str:
    return next((other for other in (name, *_OTHER_NAMES.get(name, ())) if other in known), name)


def _plain(text: str) -> str:
    text = text.strip()
    while (shorter := _POLITE.sub("", text)) != text:
        text = shorter
    return text


def _wish(line: str) -> Wish | None:
    bare = line.rstrip("?!. ").removesuffix(" please").rstrip(", ")
    for rule in _RULES:
        # What is run, written or remembered is taken to the letter; only a path may lose the sentence's full stop.
        match = rule.pattern.fullmatch(line) if rule.tool in {"shell", "write_file", "remember"} else None
        match = match or rule.pattern.fullmatch(bare)
        if match:
            given = {name: _unquoted(name, value) for name, value in match.groupdict().items() if value}
            if rule.tool == "list_files":
                given.setdefault("path", ".")
            elif rule.tool == "remember":
                given["key"] = " ".join(given["text"].split()[:KEY_WORDS])[:KEY_CHARACTERS]
            return Wish(tool=rule.tool, arguments=given, saying=rule.saying.format_map(given))
    return None


def _unquoted(name: str, value: str) -> str:
    value = value.strip()
    quotes = "`" if name in _VERBATIM else "`\"'"
    return value[1:-1] if len(value) > 2 and value[0] == value[-1] and value[0] in quotes else value


def _outcome(call: RecordedCall) -> str:
    result = call.result
    assert result is not None, "the engine asks only when every call has its result"
    text = result.text.strip()
    if result.ok:
        head = f"`{call.name}` says:" if text else f"`{call.name}` is done; it had nothing to say."
    else:
        default = "`{tool}` reports a failure."
        head = _OUTCOMES.get(result.code, default).format(tool=call.name)
    return f"{head}\n\n{_fenced(_excerpt(text))}" if text else head


def _excerpt(text: str) -> str:
    lines = text.splitlines()
    short = "\n".join(lines[:EXCERPT_LINES])[:EXCERPT_CHARACTERS]
    return short if len(short) >= len("\n".join(lines)) else f"{short}\n… (the rest is left out)"


def _fenced(text: str) -> str:
    longest: Callable[[str], int] = len
    runs = max(map(longest, re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (runs + 1)
    return f"{fence}\n{text}\n{fence}"
