"""Raw mails with right answers: what is read out of each, and whether it is answered."""

from __future__ import annotations

from typing import Any

import pytest

from channels.email.correspondence import thread_root
from channels.email.reading.automatic import why_unanswered
from channels.email.reading.fingerprint import fingerprint
from channels.email.reading.mime import part_bytes, read_mail
from channels.email.said.words import spoken
from channels.email.subjects import base_subject
from tests.channels.email.eml_cases import Case, faults, load

OWN = frozenset({"bot@example.test"})
CASES = load("abcdefghijklnp")


def reading(raw: bytes) -> dict[str, Any]:
    """What is made of a mail, as the cases name it."""
    mail = read_mail(raw)
    reason = why_unanswered(mail, OWN)
    return {
        "ignore": reason is not None,
        "reason": reason,
        "from": mail.sender.address if mail.sender else None,
        "from_name": mail.sender.name if mail.sender else "",
        "to": [box.address for box in mail.to],
        "cc": [box.address for box in mail.cc],
        "text": spoken(mail.bodies, subject=mail.subject).new,
        "flowed": any(body.flowed and body.delsp for body in mail.bodies),
        "subject": mail.subject,
        "base_subject": base_subject(mail.subject),
        "message_id": mail.message_id,
        "in_reply_to": mail.in_reply_to,
        "references": list(mail.references),
        "thread_root": thread_root(mail),
        "sent_at": mail.sent_at.isoformat() if mail.sent_at else None,
        "attachments": [{"name": file.name, "type": file.mime} for file in mail.files],
        "paths": [file.path for file in mail.files],
        "named": list(mail.named),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_mail_is_read_as_it_is_meant(case: Case) -> None:
    """Characters, structure, names, ids, and whether a person may have written it."""
    assert faults(case.want, reading(case.raw)) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_listed_as_a_file_can_be_fetched(case: Case) -> None:
    """By its number, in the size that was said."""
    for file in read_mail(case.raw).files:
        content = part_bytes(case.raw, file.path, file.size)
        assert content is not None
        assert len(content) == file.size


def test_mails_with_one_id_and_other_words_are_two() -> None:
    """Also where none has an id."""
    cases = load("g")
    prints = {fingerprint(read_mail(case.raw), case.raw) for case in cases}
    assert len(prints) == len(cases)
