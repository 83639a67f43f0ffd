"""Showing a model the pictures that people attached: which of them, and their bytes, read for each request anew."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from zerobot.core.messages import Message, StoredFile, UserMessage
from zerobot.core.model import ModelEvent, ModelProvider, ModelRequest, Picture
from zerobot.providers.picture_limits import PictureLimits

ReadPicture = Callable[[StoredFile], Awaitable[Picture | None]]
"""Reads an attached picture; None: it is not there any more as it was sent. Never raises for circumstances."""
_HALF = 0.5


class SeeingModel:
    """A provider that shows its model the pictures of a request.

    Args:
        inner: Puts `ModelRequest.pictures` into the form of its protocol.
        limits: What its server takes.
        read: Reads them.
    """

    def __init__(self, inner: ModelProvider, limits: PictureLimits, read: ReadPicture) -> None:
        self.name = inner.name
        self._inner = inner
        self._limits = limits
        self._read = read

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask once; see `ModelProvider`."""
        found = [(file.path, await self._read(file)) for file in chosen(request.messages, self._limits)]
        request = replace(request, pictures={path: picture for path, picture in found if picture is not None})
        stream = cast("AsyncGenerator[ModelEvent, None]", self._inner.stream(request))
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    async def check(self, model: str) -> str:
        """Ask the provider; see `ModelProvider`."""
        return await self._inner.check(model)


def chosen(messages: Sequence[Message], limits: PictureLimits) -> list[StoredFile]:
    """Choose the pictures that a request shows: the newest ones that fit, oldest first.

    When one message more would be too many, older pictures go until half of the limits is free (but never for those of
    the same message). So the choice moves in jumps, and between two jumps each request begins with the one before it.

    Args:
        messages: Oldest first; a file with a digest is a picture.
        limits: What the server takes.
    """
    shown: list[StoredFile] = []
    for message in messages:
        if not isinstance(message, UserMessage):
            continue
        own = [file for file in message.files if file.digest and limits.takes(file)]
        shown += own
        if not limits.hold(shown):
            while len(shown) > len(own) and not limits.hold(shown, _HALF):
                del shown[0]
            while not limits.hold(shown):
                del shown[0]
    return shown
