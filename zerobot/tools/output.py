"""Output of a command, kept within bounds: its beginning and its end."""


class CappedOutput:
    """Takes bytes as they come, keeps the first `head` and the last `tail` of them."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """Take more output."""
        self._total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Cut only now and then: each cut copies what stays.
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def text(self) -> str:
        """What was kept, as text; bytes that are no UTF-8 become replacement characters."""
        tail = self._tail[-self._tail_limit :]
        dropped = self._total - len(self._head) - len(tail)
        if dropped <= 0:
            return (self._head + tail).decode("utf-8", "replace")
        head = self._head.decode("utf-8", "replace")
        return f"{head}\n[… {dropped} bytes left out …]\n{tail.decode('utf-8', 'replace')}"
