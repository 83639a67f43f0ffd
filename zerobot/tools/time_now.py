"""The time, for a model that has no clock."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from zerobot.core.clock import Clock
from zerobot.core.tools import NOTHING, BadArgumentsError, Effect, Execution, Risk, Tool, ToolContext, ToolOutput
from zerobot.tools.base import Arguments, ModelTool


class TimeArguments(Arguments):
    """Arguments of `time_now`."""

    timezone: str = Field(default="UTC", description="IANA name, for example Europe/Berlin.")


def time_tool(clock: Clock) -> Tool:
    """The tool `time_now`."""

    def resolve(arguments: TimeArguments) -> Execution:
        try:
            zone = ZoneInfo(arguments.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise BadArgumentsError("timezone is not a known IANA name, such as Europe/Berlin") from error

        async def run(_context: ToolContext) -> ToolOutput:
            now = clock.now().astimezone(zone)
            return ToolOutput(text=f"{now:%A}, {now.isoformat(timespec='seconds')} ({arguments.timezone})")

        return Execution(
            run=run,
            description="Look at the clock",
            effects=frozenset({Effect.READ}),
            risk=Risk.LOW,
            accesses=NOTHING,
        )

    return ModelTool("time_now", "The current date and time.", TimeArguments, resolve)
