"""Server-sent events, read piece by piece: bytes go in, events come out, nothing else happens here."""

import re
from dataclasses import dataclass

MAX_LINE_BYTES = 8 * 1024 * 1024
"""Longest line. Some servers send a whole answer, or a whole file as an argument, in one line."""
MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Most data that one event may gather over its lines."""
MAX_PARTS = 1000
"""Most calls, blocks or items that one answer may have; no model means more, and what gathers them would grow slow."""

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseLimitError(Exception):
    """A line or an event is longer than the limit; nothing that comes after it can be trusted."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One dispatched event."""

    name: str
    """What `event:` said, else `message`."""
    data: str
    """The `data:` lines, joined by line feeds."""


class SseParser:
    """An incremental reader of the event stream format (WHATWG HTML, section 9.2.6).

    How the bytes are cut into pieces makes no difference. Invalid UTF-8 is replaced. `id:` and `retry:` are of no
    use here, since a model's stream cannot be resumed. `error:` is no field of the format, but older servers of
    llama.cpp tell of a failure by it (tools/server, `server_sent_event`): it is data of an event named `error`.
    """

    def __init__(self, *, max_line: int = MAX_LINE_BYTES, max_event: int = MAX_EVENT_BYTES) -> None:
        self._max_line = max_line
        self._max_event = max_event
        self._rest = bytearray()
        self._after_cr = False
        self._first_line = True
        self._name = ""
        self._data: list[str] = []
        self._data_bytes = 0

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete.

        Raises:
            SseLimitError: A line or an event grows beyond its limit.
        """
        if not piece:
            return []
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        # A carriage return ends a line at once; if a line feed follows in the next piece, it belongs to that end.
        self._after_cr = piece.endswith(b"\r") if piece else False
        *lines, rest = _LINE_END.split(piece)
        events: list[SseEvent] = []
        for line in lines:
            self._take_line(bytes(self._rest) + line, events)
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > self._max_line:
            raise SseLimitError(f"a line of more than {self._max_line} bytes")
        return events

    def end(self) -> list[SseEvent]:
        """Take the end of the stream: an event that lacks only its blank line counts, as proxies often cut that off.

        The format says to drop it; whether it is whole is for the protocol to judge, whose data must be JSON.
        """
        events: list[SseEvent] = []
        if self._rest:
            self._take_line(bytes(self._rest), events)
            self._rest.clear()
        self._dispatch(events)
        return events

    def _take_line(self, line: bytes, events: list[SseEvent]) -> None:
        if len(line) > self._max_line:
            raise SseLimitError(f"a line of more than {self._max_line} bytes")
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"error":
            self._name = "error"
        if field in {b"data", b"error"}:
            self._data_bytes += len(value) + 1
            if self._data_bytes > self._max_event:
                raise SseLimitError(f"an event of more than {self._max_event} bytes")
            self._data.append(value.decode("utf-8", "replace"))
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            events.append(SseEvent(self._name or "message", "\n".join(self._data)))
        self._name = ""
        self._data = []
        self._data_bytes = 0
