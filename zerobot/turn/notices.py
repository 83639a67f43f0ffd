"""What the engine says in its own name: to people (Markdown), and to the model in the results that it writes itself."""

from collections.abc import Sequence

from zerobot.core.ids import TurnId
from zerobot.core.messages import RecordedCall, ResultCode, ToolResult

CUT = "_(The answer was cut off at the model's length limit. Say “go on” for the rest.)_"
FILTERED = "The model's provider blocked this answer (content filter). Please put it differently."
PROVIDER_PAUSED = "_(The model paused and did not come back to it. Say “go on”.)_"
NO_TEXT = "_(The model ended without an answer. Please ask again.)_"
STOPPED = "_(Stopped.)_"
TIMED_OUT = "_(This took too long, so I stopped. What was done so far is kept; say “go on” to continue.)_"
STEP_LIMIT = "_(I reached the limit of {steps} steps for one request, so this is what I have so far.)_"
STEP_LIMIT_SILENT = (
    "I reached the limit of {steps} steps for one request before I had an answer. "
    "Say “go on” and I continue from there."
)
REPEATED = "_(I kept doing the same thing over and over, so I stopped; this is what I have so far.)_"
REPEATED_SILENT = (
    "I kept doing the same thing over and over without getting anywhere, so I stopped. "
    "Please tell me what to do differently."
)
RESTARTED = "I was restarted twice while I worked on this, so I let it be. Please ask again if you still need it."
TOOL_ENDED = "_(Done.)_"
INTERNAL = "Something went wrong on my side; it is in the log. Please try again."
STILL_TRYING = "The model does not answer yet; I am still trying."
SHORTENING = "This conversation is too long for the model; I am shortening it."
WITHOUT_PICTURES = "The model's provider does not take these pictures; I go on without some or all of them."
UNGUARDED = (
    "I must not take messages at the moment: a part that has to check them is not there. Please try again later."
)
GUARD_BROKE = "I could not check this text, so it is withheld. Please try again."
WITHHELD_ANSWER = "The answer was withheld by a guard ({code}); people read this instead."
HOOK_BROKE = "Something that has to look at this request failed, so I stopped."
SPENT_FOR_TURN = (
    "What is left of the {limit} that one request may cost pays for no answer, so I stopped. What was done so far is "
    "kept; your next message may cost as much again."
)
SPENT_FOR_USER = (
    "What is left of the {limit} that one person may spend in a day pays for no answer. "
    "There is new money at 00:00 UTC, in {wait}."
)
SPENT_FOR_DAY = (
    "What is left of the {limit} that I may spend in a day pays for no answer. "
    "There is new money at 00:00 UTC, in {wait}."
)
UNPRICED = (
    "There is a spending limit, and nobody has told me what the model {model} costs, so I must not use it. "
    "An operator can set its price."
)
CUT_BY_BUDGET = "_(The answer was cut off: what is left of a spending limit paid for no more.)_"

CLOSING_REQUEST = (
    "You can call no more tools for this request: all its steps are used, or you repeated the same call too often. "
    "Answer now from what you have, and say plainly what is not done."
)
LEFT_OUT = "(Earlier messages were left out, because the conversation is too long.)"
PICTURE_LEFT_OUT = (
    "(The provider did not take a picture that was attached here, so you do not see it. Say so if it matters.)"
)

REPEATS = "[You have made this very call several times in a row; its result will not change by itself.]"
REPEATS_OPTIONS = (
    "[You keep making this very call. Change the arguments, use another tool, work with what you have, "
    "or tell the user what you cannot find out.]"
)
REPEATS_ANSWER_NOW = "[Stop calling tools: you repeat yourself. Answer the user now from what you have.]"


def failure(words: str, turn: TurnId) -> str:
    """A turn failed: what people read of it, with the id by which the log and the operator know it."""
    return f"⚠️ {words} ({turn})"


def receipts(calls: Sequence[tuple[RecordedCall, ToolResult]]) -> str:
    """What calls came to, each with the receipt that shows it; empty when there are none."""
    lines = [f"- {call.name}, {result.code.value}: `{result.receipt}`" for call, result in calls if result.receipt]
    return "\n".join(["_Receipts (an operator can check them):_", "", *lines]) if lines else ""


def saved(characters: int, path: str, preview: str) -> str:
    """A result that is too long is in a file; what the model reads instead."""
    return (
        f"[The result has {characters} characters and was saved whole to {path}; read parts of it there. Preview:]\n"
        f"{preview}"
    )


def unknown_tool(name: str, known: list[str]) -> ToolResult:
    """The model asked for a tool that there is not."""
    return ToolResult(
        code=ResultCode.UNKNOWN_TOOL,
        text=f"There is no tool {name!r}; nothing ran. Tools: {', '.join(known) or 'none'}.",
    )


def bad_arguments(why: str) -> ToolResult:
    """The arguments cannot be used."""
    return ToolResult(code=ResultCode.BAD_ARGS, text=f"The call did not run, its arguments do not fit: {why}")


def blocked(why: str) -> ToolResult:
    """The access policy or a hook refused."""
    return ToolResult(code=ResultCode.BLOCKED, text=f"The call did not run, it is not allowed: {why}.")


def denied(reason: str) -> ToolResult:
    """An operator said no."""
    because = f" The reason given: “{reason}”." if reason else ""
    return ToolResult(
        code=ResultCode.DENIED,
        text=f"An operator denied this call; it did not run.{because} "
        "Do not ask for the same again; find another way, or ask the user.",
    )


EXPIRED = ToolResult(
    code=ResultCode.EXPIRED, text="No operator decided in time; the call did not run. Tell the user so."
)
UNREACHABLE = ToolResult(
    code=ResultCode.BLOCKED,
    text="This call needs an operator's approval, and no operator can be reached; it did not run. Tell the user so.",
)
TOO_MANY = ToolResult(
    code=ResultCode.NOT_RUN,
    text="The call did not run, and nobody was asked: too many requests of this person wait for operators already. "
    "Ask for fewer at a time, when those are decided.",
)
DENIED_TOO_OFTEN = ToolResult(
    code=ResultCode.DENIED,
    text="The call did not run, and nobody was asked: operators have denied too many calls of this turn. "
    "Do without, or ask the user.",
)
FROZEN_BEFORE = ToolResult(
    code=ResultCode.BLOCKED, text="An operator has stopped all tools; the call did not run. Tell the user so."
)
FROZEN_AFTER = ToolResult(
    code=ResultCode.CANCELLED,
    text="An operator stopped all tools while the call ran; what it did is not known. Tell the user so.",
)
WITHDRAWN = ToolResult(code=ResultCode.NOT_RUN, text="The request for approval was withdrawn; the call did not run.")
NOT_SAVED = ToolResult(
    code=ResultCode.NOT_RUN, text="The request for approval could not be saved; the call did not run."
)
SKIPPED = ToolResult(
    code=ResultCode.SKIPPED,
    text="The call did not run: an earlier call of the same step ended it. Ask again if it is still needed.",
)
OVER_BUDGET = ToolResult(
    code=ResultCode.SKIPPED,
    text="The call did not run: a spending limit was used up before it. Ask again if it is still needed.",
)
CUT_OFF = ToolResult(
    code=ResultCode.CUT_OFF,
    text="The call did not run: the answer broke off before it was complete. Ask again if it is still needed.",
)
STOPPED_BEFORE = ToolResult(
    code=ResultCode.CANCELLED,
    text="The user stopped this; the call did not run. It is no fault: do not try again, wait for the user.",
)
STOPPED_AFTER = ToolResult(
    code=ResultCode.CANCELLED,
    text="The user stopped this while the call ran; what it did is not known. Do not try again, wait for the user.",
)
SHUT_DOWN_BEFORE = ToolResult(
    code=ResultCode.NOT_RUN, text="The bot was stopped before the call ran. Ask again if it is still needed."
)
FAILED_BEFORE = ToolResult(
    code=ResultCode.NOT_RUN, text="The call did not run: something else failed before. Ask again if it is still needed."
)
TIMED_OUT_BEFORE = ToolResult(code=ResultCode.CANCELLED, text="The turn ran out of time; the call did not run.")
TIMED_OUT_AFTER = ToolResult(
    code=ResultCode.CANCELLED, text="The turn ran out of time while the call ran; what it did is not known."
)
CHANGED = ToolResult(
    code=ResultCode.BLOCKED,
    text="What would run is no longer what the operator approved (a file or a setting changed); it did not run. "
    "Ask again.",
)
NO_OPERATORS_YES = ToolResult(
    code=ResultCode.BLOCKED,
    text="Whoever approved this call may not approve it any more, so it did not run. Ask again if it is still needed.",
)
WITHHELD = ToolResult(
    code=ResultCode.WITHHELD, text="The tool ran, but its result could not be checked and is withheld."
)
UNCHECKED_REFUSAL = ToolResult(
    code=ResultCode.BLOCKED, text="The call did not run; the reason could not be checked and is withheld."
)
UNCHECKED_UNCLEAR = (
    "The call did not come to its end; whether it took effect is not known, and what it said could not be checked."
)
EMPTY_OUTPUT = "(no output)"
