"""Envelopes survive storage, and nothing else is taken for one."""

import json
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.rows import envelope
from zerobot.core.envelope import Attachment, InboundEnvelope, Quote
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.store.envelope_json import decode_envelope, encode_envelope

texts = st.text(st.characters(), max_size=20)
attachments = st.builds(Attachment, kind=texts, name=texts, mime=texts, size=st.none() | st.integers(0), ref=texts)
envelopes = st.builds(
    InboundEnvelope,
    conversation=st.builds(ConversationKey, st.builds(Place, texts, texts, st.none() | texts), texts),
    sender=st.builds(Identity, texts, texts),
    event_id=texts,
    message_id=texts,
    text=texts,
    attachments=st.lists(attachments, max_size=2).map(tuple),
    sender_name=texts,
    sender_handles=st.lists(texts, max_size=2).map(tuple),
    direct=st.booleans(),
    addressed=st.booleans(),
    from_bot=st.booleans(),
    quote=st.none() | st.builds(Quote, author=texts, text=texts),
    album=texts,
    sent_at=st.none() | st.datetimes(timezones=st.just(UTC)),
)


@settings(max_examples=60, deadline=None)
@given(envelopes)
def test_an_envelope_is_read_as_it_was_written(original: InboundEnvelope) -> None:
    """Every field survives, whatever characters a platform lets through; the stored text is ASCII."""
    text = encode_envelope(original)
    assert text.isascii()
    assert decode_envelope(text) == original


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("text", 5),
        ("text", None),
        ("direct", 1),
        ("direct", "yes"),
        ("attachments", {}),
        ("attachments", ["a"]),
        ("sender_handles", [1]),
        ("sender", "pigeon:1"),
        ("sender", {"platform": "pigeon"}),
        ("sender", {"platform": "pigeon", "id": "1", "admin": True}),
        ("quote", {"author": "ann"}),
        ("sent_at", "yesterday"),
        ("unheard_of", 1),
    ],
)
def test_something_else_is_refused(key: str, value: object) -> None:
    """A field that is unknown, missing or of another type is an error, not a guess."""
    fields = json.loads(encode_envelope(envelope()))
    fields[key] = value
    with pytest.raises(ValueError, match=r".+"):
        decode_envelope(json.dumps(fields))


@pytest.mark.parametrize("key", sorted(json.loads(encode_envelope(envelope()))))
def test_no_field_may_be_missing(key: str) -> None:
    """What was cut off is not filled up with defaults."""
    fields = json.loads(encode_envelope(envelope()))
    del fields[key]
    with pytest.raises(ValueError, match=key):
        decode_envelope(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "null", "[]", '"x"', "{", "{}"])
def test_no_object_is_no_envelope(text: str) -> None:
    """An emptied row of the inbox is not an envelope either."""
    with pytest.raises(ValueError, match=r".+"):
        decode_envelope(text)
