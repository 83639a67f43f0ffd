"""An answer as a mail."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.mail import Mailbox
from channels.email.own_ids import own_id
from channels.email.writing.compose import LOOP_FIELD, REFERENCES, AddressError, compose, one_line, pack, reply_subject
from channels.email.writing.letter import Enclosure
from tests.channels.email.letters import ANN, ASKED, BEN, BOT, letter
from tests.channels.text.strategies import anything, markdown
from tests.platforms.smtp_checks import complaints, mailboxes, read
from zerobot.core.channel import MessageBody

addresses = st.from_regex(r"[a-z0-9!#$%&'*+/=?^_`{|}~.\"\\,;: @-]{1,40}@[a-z0-9.-]{1,20}", fullmatch=True)
ids = st.one_of(anything, st.from_regex(r"<[!-;=?-~]{1,200}@[a-z.]{1,80}>", fullmatch=True))


def lines(text: str) -> str:
    """A text without its last line ends, which a mail program may add or leave out."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


@given(name=anything, subject=anything, body=anything, references=st.lists(ids, max_size=30), answered=ids)
def test_any_words_make_a_well_formed_mail(
    name: str, subject: str, body: str, references: list[str], answered: str
) -> None:
    """Whatever comes from outside, the mail is one that every server takes, and reads as it was meant."""
    made = letter(
        body=MessageBody(body, {"html": "<p>x</p>\n"}),
        to=Mailbox(name, "ann@example.com"),
        subject=subject,
        references=tuple(references),
        in_reply_to=answered,
    )
    raw = compose(made)
    assert complaints(raw) == []
    mail = read(raw)
    assert mail["Subject"] == one_line(subject, 200)
    assert mailboxes(raw, "To") == [(one_line(name, 100), "ann@example.com")]
    assert {*str(mail.get("References", "")).split()} <= {*references, answered}


@given(anything)
def test_encoded_words_within_words_are_words(inside: str) -> None:
    """A subject that was encoded twice, a file that is called so: nobody decodes the inner ones, into lines say."""
    told = (
        f"=?utf-8?q?a=0D=0ABcc:_eve=40evil=2Etest?==?utf-8?b?{b64encode(inside.encode('utf-8', 'replace')).decode()}?="
    )
    file = Enclosure(name=f"{told}.txt", mime="text/plain", data=b"x")
    raw = compose(letter(subject=told, to=Mailbox(told, "ann@example.com"), files=(file,)))
    assert complaints(raw) == []
    assert not re.search(rb"(?im)^bcc", raw)
    mail = read(raw)
    assert mail["Subject"] == one_line(told, 200)
    (part,) = [each for each in mail.walk() if each.get_filename()]
    assert part.get_payload(decode=True) == b"x"


@given(text=markdown, name=anything, mime=anything, data=st.binary(max_size=300))
def test_any_text_and_any_file_arrive_as_they_are(text: str, name: str, mime: str, data: bytes) -> None:
    """The plain text and the file are read back letter by letter, byte by byte."""
    raw = compose(letter(body=MessageBody(text), files=(Enclosure(name=name, mime=mime, data=data),)))
    assert complaints(raw) == []
    words, file = read(raw).iter_parts()
    assert lines(words.get_content()) == lines(text.encode("utf-8", "replace").decode())
    assert file.get_payload(decode=True) == data
    assert file.get_content_disposition() == "attachment"
    assert file.get_filename()
    assert not {"/", "\\", "\n"} & set(file.get_filename() or "")


@given(addresses)
def test_an_address_is_written_so_that_it_is_read_as_itself_or_refused(address: str) -> None:
    """No address from outside becomes two, or another one."""
    try:
        parcel = pack(letter(to=Mailbox("Ann", address)))
    except AddressError:
        return
    assert complaints(parcel.raw) == []
    (box,) = read(parcel.raw)["To"].addresses
    assert (box.addr_spec,) == parcel.recipients
    assert box.domain == address.rpartition("@")[2]


@pytest.mark.parametrize(
    "address", ["", "ann", "@example.com", '""@x.test', "ann@", "a\r\nb@x.test", "a@b c", "a@x>", "a@x\r\nQUIT"]
)
def test_what_is_no_address_gets_no_mail(address: str) -> None:
    """A mail is not sent to something that only looks like an address."""
    with pytest.raises(AddressError):
        pack(letter(to=Mailbox("", address)))


def test_the_fields_of_an_answer() -> None:
    """It names what it answers, says that a machine wrote it, and is known when it comes back."""
    mail = read(compose(letter(references=("<first@x.test>",), cc=(BEN,))))
    assert mail["From"] == "Zero <bot@example.com>"
    assert (mail["To"], mail["Cc"]) == ("Ann <ann@example.com>", "Ben <ben@example.com>")
    assert mail["In-Reply-To"] == ASKED
    assert mail["References"] == f"<first@x.test> {ASKED}"
    assert mail["Date"] == "Sun, 01 Mar 2026 12:00:00 +0000"
    assert mail["Auto-Submitted"] == "auto-replied"
    assert mail["X-Auto-Response-Suppress"] == "All"
    assert mail[LOOP_FIELD] == "bot@example.com"
    assert "Precedence" not in mail
    assert mail.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]


def test_a_mail_that_answers_none_says_so() -> None:
    """A timed message is no reply (RFC 3834, section 5)."""
    mail = read(compose(letter(in_reply_to="")))
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "In-Reply-To" not in mail
    assert "References" not in mail


def test_the_same_letter_gives_the_same_bytes() -> None:
    """A try after a crash sends what the first one sent."""
    files = (Enclosure(name="a.txt", mime="text/plain", data=b"x"),)
    assert compose(letter(files=files)) == compose(letter(files=files))


def test_an_id_is_the_keys_own() -> None:
    """Every try has the same id, every other mail another one."""
    assert own_id("t.1.0", "bot@example.com") == own_id("t.1.0", "bot@EXAMPLE.com")
    assert own_id("t.1.0", "bot@example.com") != own_id("t.1.1", "bot@example.com")
    assert own_id("t.1.0", "bot@example.com") == read(compose(letter(key="t.1.0")))["Message-ID"]


def test_long_ids_stay_ids() -> None:
    """Servers write ids of over 78 characters; folded as words they would name no mail any more."""
    long = f"<{'x' * 200}@{'y' * 60}.example.com>"
    raw = compose(letter(in_reply_to=long, references=(long, "<a@b>")))
    assert f"In-Reply-To: {long}\r\n".encode() in raw
    assert read(raw)["References"].split() == [long, "<a@b>"]


def test_an_id_that_reads_as_an_encoded_word_is_left_out() -> None:
    """The library would decode it, and so name another mail."""
    mail = read(compose(letter(in_reply_to="<=?utf-8?q?x?=@y.test>", references=("<a@b>",))))
    assert "In-Reply-To" not in mail
    assert mail["References"] == "<a@b>"


def test_of_many_references_the_first_and_the_last_stay() -> None:
    """The first names the thread; the last ones place the answer in it."""
    many = tuple(f"<{number}@x.test>" for number in range(100))
    kept = read(compose(letter(references=many)))["References"].split()
    assert len(kept) == REFERENCES
    assert kept[0] == "<0@x.test>"
    assert kept[-2:] == ["<99@x.test>", ASKED]


@pytest.mark.parametrize(
    "subject",
    ["hello", "Re: hello", "RE: Re: hello", "AW: Re: hello", "Re[2]: hello", "re : hello", "回复：hello",
     "SV: VS: hello", "Antw: hello", "R\u200bE: hello"],
)  # fmt: skip
def test_re_stands_once(subject: str) -> None:
    """Mail programs of all languages have put theirs before a subject; one remains."""
    assert reply_subject(subject) == "Re: hello"


@pytest.mark.parametrize(
    ("subject", "answer"),
    [("", "Re: (no subject)"), ("Re:", "Re: (no subject)"), ("Fwd: x", "Re: Fwd: x"), ("Reform: x", "Re: Reform: x")],
)
def test_what_is_no_re_stays(subject: str, answer: str) -> None:
    """A forwarded mail stays one, a word is a word."""
    assert reply_subject(subject) == answer


def test_no_subject_writes_a_field_of_its_own() -> None:
    """A subject from outside with line ends in it stays one field (R29)."""
    mail = read(compose(letter(subject="x\r\nBcc: everyone@example.com\r\n\r\nbody")))
    assert "Bcc" not in mail
    assert mail["Subject"] == "x Bcc: everyone@example.com body"


@pytest.mark.parametrize(
    "name", ["Ann, Ben", "Ann <ben@example.com>", 'A "B" C', "ä" * 90, "=?utf-8?q?x?=", "ann@evil.test,"]
)
def test_a_name_is_only_a_name(name: str) -> None:
    """However a name is written, the mail goes to one address."""
    raw = compose(letter(to=Mailbox(name, "ann@example.com")))
    assert mailboxes(raw, "To") == [(name, "ann@example.com")]


def test_a_domain_in_another_script_is_written_in_ascii() -> None:
    """No extension is needed for it (RFC 5891)."""
    parcel = pack(letter(to=Mailbox("Jörg", "joerg@bücher.example"), sender=Mailbox("", "bot@пример.example")))
    assert parcel.recipients == ("joerg@xn--bcher-kva.example",)
    assert parcel.raw.isascii()
    assert not parcel.needs_utf8
    assert parcel.message_id.encode() in parcel.raw


def test_letters_beyond_ascii_before_the_at_sign_need_the_extension() -> None:
    """Such an address has no other form (RFC 6531)."""
    parcel = pack(letter(to=Mailbox("", "jörg@example.com")))
    assert parcel.needs_utf8
    assert complaints(parcel.raw, eight_bit=True, utf8=True) == []
    assert "To: jörg@example.com\r\n".encode() in parcel.raw


def test_nobody_gets_a_mail_twice() -> None:
    """Who is answered and in CC too is one recipient."""
    assert pack(letter(cc=(BEN, ANN, BEN))).recipients == ("ann@example.com", "ben@example.com")


def test_a_message_without_html_is_one_plain_part() -> None:
    """The last resort after a refusal is as plain as can be."""
    mail = read(compose(letter(body=MessageBody("only words"))))
    assert mail.get_content_type() == "text/plain"
    assert lines(mail.get_content()) == "only words"


def test_files_stand_behind_the_words() -> None:
    """The words stay an alternative of two; a long name keeps what says its kind."""
    file = Enclosure(name="ä" * 300 + ".xlsx", mime="application/vnd.ms-excel", data=b"\0\1" * 500)
    mail = read(compose(letter(files=(file, replace(file, name="../../etc/passwd", mime="message/rfc822")))))
    words, first, second = mail.iter_parts()
    assert words.get_content_type() == "multipart/alternative"
    assert (first.get_filename() or "").endswith(".xlsx")
    assert first.get_payload(decode=True) == file.data
    assert (second.get_filename(), second.get_content_type()) == (".._.._etc_passwd", "application/octet-stream")


def test_the_sender_is_the_bot() -> None:
    """The envelope and the header say the same."""
    parcel = pack(letter())
    assert parcel.sender == BOT.address
