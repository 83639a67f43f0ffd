"""The line between a terminal and the channel that serves it."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Protocol


class Link(Protocol):
    """The terminal's end. A request on the control socket fits it as it is."""

    async def send(self, value: Mapping[str, object], /) -> None:
        """Tell the channel what the person did.

        Raises:
            ControlError: The daemon is gone.
        """
        ...

    def items(self) -> AsyncGenerator[Mapping[str, object], None]:
        """What the channel gives the terminal to show, until it hangs up.

        Raises:
            ControlError: The daemon refused, or is gone.
        """
        ...


class LocalLink:
    """Both ends, in one process: this is the terminal's, `terminal` is the channel's."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()
        self.terminal = LocalTerminal(self._items)

    async def send(self, value: Mapping[str, object], /) -> None:
        """See `Link.send`."""
        self.terminal.said.put_nowait(value)

    async def items(self) -> AsyncGenerator[Mapping[str, object], None]:
        """See `Link.items`."""
        while (item := await self._items.get()) is not None:
            yield item

    def close(self) -> None:
        """End `items`: the channel's side is gone."""
        self._items.put_nowait(None)


class LocalTerminal:
    """The channel's end of a `LocalLink`."""

    def __init__(self, items: asyncio.Queue[Mapping[str, object] | None]) -> None:
        self._items = items
        self.said: asyncio.Queue[Mapping[str, object]] = asyncio.Queue()

    async def send(self, item: Mapping[str, object]) -> None:
        """See `core.terminal.Terminal.send`; a terminal in this process is never gone."""
        self._items.put_nowait(item)

    async def inputs(self) -> AsyncIterator[Mapping[str, object]]:
        """See `core.terminal.Terminal.inputs`."""
        while True:
            yield await self.said.get()


NO_ANSWERS: Mapping[str, object] = {"answers": False}
"""Said first by a terminal at which nobody sits who could answer a request."""


def new_message(text: str) -> dict[str, object]:
    """What a person said, under an id that no other terminal uses."""
    return {"id": uuid.uuid4().hex, "text": text}


def new_press(approval: str, button: str, reason: str = "") -> dict[str, object]:
    """A press of `approve`, `always` or `deny`."""
    return {"approval": approval, "button": button, "reason": reason}
