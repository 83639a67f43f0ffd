"""Where a mail lies, and a file in it; an envelope keeps that until the file is wanted. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self

from channels.email.imap.answers import Folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Where a mail lies."""

    folder: str
    validity: int
    uid: int

    @classmethod
    def of(cls, folder: Folder, uid: int) -> Self:
        """Of a mail in a selected folder."""
        return cls(folder=folder.name, validity=folder.validity, uid=uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """Where a file lies."""

    mail: Whereabouts
    message_id: str
    """By which the mail is found when it is not there any more; empty: it has none."""
    path: str
    """See `MailFile`."""


def write_ref(ref: FileRef) -> str:
    """A reference as text, for `Attachment.ref`."""
    mail = ref.mail
    return json.dumps([mail.folder, mail.validity, mail.uid, ref.message_id, ref.path])


def read_ref(text: str) -> FileRef:
    """What `write_ref` has written."""
    folder, validity, uid, message_id, path = json.loads(text)
    return FileRef(mail=Whereabouts(folder=folder, validity=validity, uid=uid), message_id=message_id, path=path)
