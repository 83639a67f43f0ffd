"""Phase A: is this a call of a tool that we have, with arguments that are a JSON object? Pure."""

import json
import math
from collections.abc import Mapping
from typing import TypeVar

from zerobot.core.messages import RecordedCall, ToolResult
from zerobot.core.tools import BadArgumentsError, BlockedByToolError, Execution, Tool
from zerobot.turn import notices

T = TypeVar("T")

DEEPEST_NESTING = 100
"""Beyond it no tool means it, and what walks the arguments later may run out of stack."""


def parse_arguments(raw: str) -> Mapping[str, object] | None:
    """Read arguments as they were streamed: nothing means `{}`; None when they are not a JSON object. No repair.

    NaN and the infinities are no JSON (RFC 8259, section 6); a number too large for a float would become one.
    """
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    if value is None:
        return {}
    return value if isinstance(value, dict) and not _too_deep(value) else None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no JSON number")
    return number


def _too_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(DEEPEST_NESTING):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def resolve(call: RecordedCall, tools: Mapping[str, Tool]) -> Execution | ToolResult:
    """Find a call's tool and let it say what the call would do; a call that cannot run gets its error result."""
    tool = tools.get(call.name)
    if tool is None:
        return notices.unknown_tool(call.name, sorted(tools))
    try:
        return tool.resolve(call.arguments)
    except BadArgumentsError as error:
        return notices.bad_arguments(str(error))
    except BlockedByToolError as error:
        return notices.blocked(str(error))
    except Exception as error:  # noqa: BLE001 - a tool's own bug costs its call, not the batch
        return notices.blocked(f"the tool could not say what it would do ({type(error).__name__})")


def expect(said: T, *kinds: type) -> T:
    """Take what a plug-in said, if it is of a kind that it may say.

    Raises:
        TypeError: It is something else, whatever the plug-in's annotations promise.
    """
    if isinstance(said, kinds):
        return said
    raise TypeError(f"a hook must not answer with {type(said).__name__}")
