"""Takes our own secrets out of tool results before they are stored or reach a model. A `Finalize` hook."""

from dataclasses import replace

from zerobot.core.messages import RecordedCall, ToolResult
from zerobot.security.redact import Redactor


class RedactResults:
    """Masks what the redactor knows."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    async def finalize(self, call: RecordedCall, result: ToolResult) -> ToolResult:  # noqa: ARG002 - the hook's shape
        """The result without secrets."""
        return replace(result, text=self._redactor.clean(result.text))
