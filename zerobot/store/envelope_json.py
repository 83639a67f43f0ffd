"""Envelopes as the inbox keeps them: JSON, strict in both directions. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import cast

from zerobot.core.envelope import Attachment, InboundEnvelope, Quote
from zerobot.core.places import ConversationKey, Identity, Place


def encode_envelope(envelope: InboundEnvelope) -> str:
    """Write an envelope as JSON. It is pure ASCII, so that whatever a platform lets through can be stored."""
    value = asdict(envelope)
    value["sent_at"] = envelope.sent_at.isoformat() if envelope.sent_at else None
    return json.dumps(value, separators=(",", ":"))


def decode_envelope(text: str) -> InboundEnvelope:
    """Read what `encode_envelope` wrote.

    Raises:
        ValueError: It is something else: not JSON, a field that is missing, unknown, or of another type.
    """
    fields = _Fields(json.loads(text))
    conversation = fields.inner("conversation")
    place = conversation.inner("place")
    sender = fields.inner("sender")
    quote = fields.inner_or_none("quote")
    sent_at = fields.text_or_none("sent_at")
    envelope = InboundEnvelope(
        conversation=ConversationKey(
            Place(place.text("channel"), place.text("chat"), place.text_or_none("thread")), conversation.text("sender")
        ),
        sender=Identity(sender.text("platform"), sender.text("id")),
        event_id=fields.text("event_id"),
        message_id=fields.text("message_id"),
        text=fields.text("text"),
        attachments=tuple(_attachment(each) for each in fields.inners("attachments")),
        sender_name=fields.text("sender_name"),
        sender_handles=fields.texts("sender_handles"),
        direct=fields.flag("direct"),
        addressed=fields.flag("addressed"),
        from_bot=fields.flag("from_bot"),
        quote=None if quote is None else Quote(author=quote.text("author"), text=quote.text("text")),
        album=fields.text("album"),
        sent_at=None if sent_at is None else datetime.fromisoformat(sent_at),
    )
    for each in (fields, conversation, place, sender, quote):
        if each is not None:
            each.done()
    return envelope


def _attachment(fields: "_Fields") -> Attachment:
    attachment = Attachment(
        kind=fields.text("kind"),
        name=fields.text("name"),
        mime=fields.text("mime"),
        size=fields.number_or_none("size"),
        ref=fields.text("ref"),
    )
    fields.done()
    return attachment


class _Fields:
    """A JSON object whose fields are taken out one by one, each with its type."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, Mapping):
            raise _wrong("value", "an object")
        self._left: dict[str, object] = dict(value)

    def text(self, key: str) -> str:
        value = self._take(key)
        if not isinstance(value, str):
            raise _wrong(key, "a text")
        return value

    def text_or_none(self, key: str) -> str | None:
        return None if self._took_null(key) else self.text(key)

    def flag(self, key: str) -> bool:
        value = self._take(key)
        if not isinstance(value, bool):
            raise _wrong(key, "true or false")
        return value

    def number_or_none(self, key: str) -> int | None:
        value = self._take(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise _wrong(key, "a whole number")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._list(key)
        if not all(isinstance(value, str) for value in values):
            raise _wrong(key, "a list of texts")
        return tuple(cast("list[str]", values))

    def inner(self, key: str) -> "_Fields":
        return _Fields(self._take(key))

    def inner_or_none(self, key: str) -> "_Fields | None":
        return None if self._took_null(key) else self.inner(key)

    def inners(self, key: str) -> list["_Fields"]:
        return [_Fields(value) for value in self._list(key)]

    def done(self) -> None:
        """Refuse what was not taken: it was written by something else."""
        if self._left:
            raise ValueError(f"an envelope has no {', '.join(map(repr, self._left))}")

    def _list(self, key: str) -> list[object]:
        value = self._take(key)
        if not isinstance(value, list):
            raise _wrong(key, "a list")
        return value

    def _took_null(self, key: str) -> bool:
        if self._left.get(key, ...) is not None:
            return False
        del self._left[key]
        return True

    def _take(self, key: str) -> object:
        if key not in self._left:
            raise ValueError(f"an envelope needs {key!r}")
        return self._left.pop(key)


def _wrong(key: str, wanted: str) -> ValueError:
    return ValueError(f"an envelope's {key!r} must be {wanted}")
