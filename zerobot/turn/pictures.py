"""The pictures in a history that a model is shown (pure); which of them fit a request is the provider's to say."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from zerobot.core.messages import Message, StoredFile, UserMessage


def pictures(messages: Sequence[Message]) -> list[StoredFile]:
    """The pictures that people have attached, oldest first."""
    return [file for message in messages if isinstance(message, UserMessage) for file in message.files if file.digest]


def newest_pictures(messages: Sequence[Message]) -> list[StoredFile]:
    """Those of the newest message that has some."""
    return next((own for message in reversed(messages) if (own := pictures([message]))), [])


def without_pictures(messages: Sequence[Message], gone: Collection[str], note: str = "") -> list[Message]:
    """The same messages, but the model only reads about some of the pictures.

    Args:
        messages: Oldest first.
        gone: The digests of the pictures that are not shown.
        note: What the model is told beside each message that loses one; empty: nothing.
    """
    return [_without(message, gone, note) if isinstance(message, UserMessage) else message for message in messages]


def _without(message: UserMessage, gone: Collection[str], note: str) -> UserMessage:
    if not any(file.digest in gone for file in message.files):
        return message
    files = tuple(replace(file, digest="") if file.digest in gone else file for file in message.files)
    return replace(message, files=files, note="\n".join(each for each in (message.note, note) if each))
