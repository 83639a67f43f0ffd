"""Threads, subjects, and when two mails are one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.reading.fingerprint import fingerprint
from channels.email.reading.mime import read_mail
from channels.email.reading.msgids import MOST_REFERENCES, ids_in, references_in
from channels.email.subjects import base_subject
from tests.channels.email.eml_cases import load
from tests.channels.email.signed import SIGNED, checked, sign

ORDER = next(case.raw for case in load("g") if case.id == "g03-dup-a")
WITHOUT_ID = next(case.raw for case in load("g") if case.id == "g01-no-message-id")


def printed(raw: bytes) -> str:
    return fingerprint(read_mail(raw), raw)


@pytest.mark.parametrize("raw", [ORDER, WITHOUT_ID])
def test_a_mail_that_arrives_twice_is_one_mail(raw: bytes) -> None:
    """By another way, with what other servers wrote on top, and with empty lines at its end."""
    trace = (
        b"Return-Path: <alice@example.test>\r\nDelivered-To: bot@example.test\r\n"
        b"Received: from a.test by b.test; Mon, 2 Mar 2026 10:00:01 +0000\r\n"
        b"DKIM-Signature: v=1; a=rsa-sha256; d=example.test\r\nARC-Seal: i=1\r\n"
        b"Authentication-Results: b.test; dkim=pass\r\nX-Spam-Score: 0\r\n"
    )
    assert printed(trace + raw + b"\r\n\r\n") == printed(raw)


@pytest.mark.parametrize("raw", [ORDER, WITHOUT_ID])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"alice@example.test", b"mallory@evil.test"),
        (b"Subject: Question", b"Subject: Questions"),
        (b"10:00:00", b"10:00:01"),
        (b"8bit\r\n\r\n", b"8bit\r\n\r\nNot "),
    ],
)
def test_another_mail_is_another_mail(raw: bytes, old: bytes, new: bytes) -> None:
    """By another sender, at another time, or with other words, even if it has the same id."""
    assert old in raw
    assert printed(raw.replace(old, new)) != printed(raw)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Message-ID: <1@good.test>", b"Message-ID: <2@good.test>"),
        (b"Message-ID: <1@good.test>", b"Message-ID: <1@good.test>\r\nIn-Reply-To: <other@good.test>"),
        (b"Message-ID: <1@good.test>\r\n", b""),
        (b"Subject: Hello", b"Subject:   Hello "),
        (b"Mon, 5 Jan", b"Mon,\r\n  5\t Jan"),
        (b"Run the  report. ", b"Run the report.\t\t"),
        (b"Ann\r\n", b"Ann\r\n\r\n\r\n"),
    ],
)
async def test_what_its_signature_leaves_open_makes_no_other_mail(old: bytes, new: bytes) -> None:
    """Somebody sends a signed mail once more, changed as far as the signature lets him: it is the one it was."""
    first = sign(names=[name for name in SIGNED if name != "message-id"])
    again = first.replace(old, new)
    assert again != first
    assert (await checked(again)).domain == "good.test"
    assert printed(again) == printed(first)


@pytest.mark.parametrize("raw", [ORDER, WITHOUT_ID])
def test_mails_without_a_date_are_told_by_their_ids(raw: bytes) -> None:
    """They have nothing else."""
    undated = b"".join(line for line in raw.splitlines(keepends=True) if not line.startswith(b"Date:"))
    assert printed(undated) != printed(b"Message-ID: <other@example.test>\r\n" + undated)


@given(st.text(max_size=60))
def test_a_base_subject_is_its_own_base(subject: str) -> None:
    """Nothing is left to take away, and an answer to it has the same one."""
    base = base_subject(subject)
    assert base_subject(base) == base
    assert base_subject(f"Re: {base}") == base
    assert base_subject(f"AW: Fwd: {base}") == base


@given(st.lists(st.from_regex(r"<[a-z0-9.+$]{1,20}@[a-z0-9.-]{1,20}>", fullmatch=True), unique=True, max_size=150))
def test_references_keep_the_root_and_the_newest(ids: list[str]) -> None:
    """Of very many those in the middle are left out."""
    kept = references_in(" ".join(ids))
    assert len(kept) == min(len(ids), MOST_REFERENCES)
    assert kept[:1] == tuple(ids[:1])
    assert kept[-50:] == tuple(ids[-50:])


@given(st.text(max_size=200))
def test_an_id_is_one_word_in_brackets(value: str) -> None:
    """Whatever the field holds, an id can stand in a header again."""
    for each in ids_in(f"<{value}@x> {value} <a@{value}>"):
        assert each.isascii()
        assert each.isprintable()
        assert " " not in each
        assert each.count("<") == each.count(">") == each.count("@") == 1
