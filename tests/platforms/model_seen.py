"""What the model server saw of a question, the same for all protocols."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_CODE = re.compile(r"\[([A-Z_]+)\] ")


@dataclass(frozen=True, slots=True)
class SeenResult:
    """The result of a tool call, as it went to the model."""

    text: str
    """As the model reads it, without the code in front."""
    code: str
    """`OK`, or the code in brackets that a failed result opens with."""


@dataclass(eq=False)
class SeenRequest:
    """One question to the model."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    hung_up: bool = False
    """Whether the asker closed the connection while the answer was held back."""

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        """The system prompt."""
        for field in ("system", "instructions"):
            if field in self.body:
                return _text(self.body[field])
        return "\n".join(text for role, text in self._raw_messages() if role == "system")

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Role and text of each message with text; results have the role `tool`, the system prompt is left out."""
        return [(role, text) for role, text in self._raw_messages() if role != "system" and text]

    @property
    def newest_text(self) -> str:
        """What the model should answer: the text of the last message of a person, or of the last results."""
        messages = self.messages
        return messages[-1][1] if messages else ""

    @property
    def tool_names(self) -> list[str]:
        """The tools that the model may use, in the order given."""
        return [str((tool.get("function") or tool).get("name")) for tool in self.body.get("tools") or []]

    @property
    def call_ids(self) -> list[str]:
        """The ids of all calls in the history, oldest first."""
        ids = [item["call_id"] for item in self._items() if item["type"] == "function_call"]
        for message in self.body.get("messages", []):
            ids += [call["id"] for call in message.get("tool_calls") or []]
            content = message.get("content")
            ids += (
                [block["id"] for block in content if block["type"] == "tool_use"] if isinstance(content, list) else []
            )
        return ids

    @property
    def pictures(self) -> list[bytes]:
        """The pictures in the question, in order."""
        contents = [each.get("content") for each in (*self.body.get("messages", ()), *self._items())]
        parts = [part for content in contents if isinstance(content, list) for part in content]
        return [base64.b64decode(text) for part in parts if (text := _picture(part))]

    def result_of(self, call_id: str) -> SeenResult:
        """Return the result of a call.

        Raises:
            KeyError: The history has none.
        """
        for known_id, text in self._results():
            if known_id == call_id:
                code = _CODE.match(text)
                return SeenResult(text[code.end() :] if code else text, code[1] if code else "OK")
        raise KeyError(call_id)

    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.body.get("input", [])
        return items

    def _results(self) -> Iterator[tuple[str, str]]:
        for item in self._items():
            if item["type"] == "function_call_output":
                yield str(item["call_id"]), _text(item["output"])
        for message in self.body.get("messages", []):
            content = message.get("content")
            if message.get("role") == "tool":
                yield str(message["tool_call_id"]), _text(content)
            elif isinstance(content, list):
                for block in content:
                    if block.get("type") == "tool_result":
                        yield str(block["tool_use_id"]), _text(block.get("content"))

    def _raw_messages(self) -> Iterator[tuple[str, str]]:
        for item in self._items():
            if item["type"] == "message":
                yield item["role"], _text(item["content"])
            elif item["type"] == "function_call_output":
                yield "tool", _text(item["output"])
        for message in self.body.get("messages", []):
            content = message.get("content")
            if not isinstance(content, list):
                yield message.get("role", ""), _text(content)
                continue
            results = [_text(block.get("content")) for block in content if block.get("type") == "tool_result"]
            yield from (("tool", text) for text in results)
            yield message.get("role", ""), _text([block for block in content if block.get("type") == "text"])


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(block["text"]) for block in content if isinstance(block, dict) and "text" in block)
    return ""


def _picture(part: Mapping[str, Any]) -> str:
    """The base64 text of a picture; empty for any other part."""
    if part.get("type") == "image":
        return str(part["source"]["data"])
    url = part.get("image_url", "")
    return str(url["url"] if isinstance(url, dict) else url).partition(",")[2]
