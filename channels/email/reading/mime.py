"""A mail as bytes to a mail as values: nothing in it raises, and nothing in it is without a limit."""

from __future__ import annotations

from channels.email.mail import Mail
from channels.email.reading.addresses import mailboxes, one_mailbox
from channels.email.reading.content import read_content
from channels.email.reading.dates import read_date
from channels.email.reading.encoded_words import decode_words, header_text, one_line
from channels.email.reading.msgids import ids_in, references_in
from channels.email.reading.parts import read_tree
from channels.email.reading.transfer import decode_transfer

MOST_SUBJECT_CHARACTERS = 1_000


def read_mail(raw: bytes) -> Mail:
    """Read a mail, whatever it is; what can't be read is left out."""
    tree = read_tree(raw)
    header = tree.root.header
    content = read_content(raw, tree.root)
    fields = tuple((name, header_text(value)) for name, value in header.fields)

    def values(name: str) -> tuple[str, ...]:
        return tuple(value for field, value in fields if field == name)

    def first(name: str) -> str:
        return next(iter(values(name)), "")

    return Mail(
        fields=fields,
        # A second From may be among the fields that were left out.
        sender=None if header.missing else one_mailbox(values("from")),
        to=mailboxes(values("to")),
        cc=mailboxes(values("cc")),
        subject=one_line(decode_words(first("subject")))[:MOST_SUBJECT_CHARACTERS].rstrip(),
        message_id=next(iter(ids_in(first("message-id"))), ""),
        in_reply_to=next(iter(ids_in(first("in-reply-to"))), ""),
        references=references_in(first("references")),
        sent_at=read_date(first("date")),
        bodies=content.bodies,
        files=content.files,
        named=content.named,
        calendar=content.calendar,
        cut=tree.cut or content.cut,
    )


def part_bytes(raw: bytes, path: str, limit: int) -> bytes | None:
    """The content of one part of a mail, decoded.

    Args:
        raw: The whole mail.
        path: As `MailFile.path` has it.
        limit: Bytes.

    Returns:
        None when there is no such part, or it is larger than the limit.
    """
    part = next((leaf for leaf in read_tree(raw).root.leaves() if leaf.number == path), None)
    if part is None:
        return None
    content = bytearray()
    for piece in decode_transfer(raw, part.start, part.end, part.encoding):
        content += piece
        if len(content) > limit:
            return None
    return bytes(content)
