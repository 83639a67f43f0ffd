"""Phase A: is this a call of a tool that we have, with arguments that are a JSON object? Pure."""

import json
from collections.abc import Mapping

from zerobot.core.messages import RecordedCall, ToolResult
from zerobot.core.tools import BadArgumentsError, BlockedByToolError, Execution, Tool
from zerobot.turn import notices

LONGEST_NESTING = 100


def parse_arguments(raw: str) -> Mapping[str, object] | None:
    """Read arguments as they were streamed: nothing means `{}`; None when they are not a JSON object. No repair."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


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
