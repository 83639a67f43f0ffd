"""Tool results that are too long for a conversation, saved where the tools can read them."""

import asyncio

from zerobot.core.log import EventLog
from zerobot.core.messages import RecordedCall
from zerobot.security.paths import BadPathError, GuardedFiles, PathRefusedError
from zerobot.store.turn_rows import Turn

FOLDER = "results"


class ResultFiles:
    """Saves results into the workspace: a folder a turn, a file a call. A `SaveResult` of the turn's kit.

    Args:
        files: Writes into the workspace, and nowhere else.
        log: Gets a line for what could not be saved.
    """

    def __init__(self, files: GuardedFiles, log: EventLog) -> None:
        self._files = files
        self._log = log

    async def __call__(self, turn: Turn, call: RecordedCall, text: str) -> str | None:
        """Save a whole result; returns its path in the workspace, None when it could not be saved."""
        target = f"{FOLDER}/{turn.id}/{call.id}.txt"
        try:
            path = self._files.canonical(target)
            await asyncio.to_thread(self._files.write_text, path, text)
        except (PathRefusedError, BadPathError, OSError) as error:
            self._log("result.not_saved", level="warning", error=error, turn=turn.id, tool_call=call.id)
            return None
        return target
