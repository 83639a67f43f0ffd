"""Wrong codes, counted in the store: a restart gives nobody new tries."""

import sqlite3
from datetime import datetime, timedelta

from zerobot.store.columns import stamp

SENDER_TRIES = 5
SENDER_WINDOW = timedelta(minutes=15)
ALL_TRIES = 30
ALL_WINDOW = timedelta(hours=1)
EVERYBODY = "*"
"""The subject under which all wrong codes are counted together."""

_COUNT = "SELECT count(*) FROM wrong_codes WHERE subject = :subject AND at > :since"
_INSERT = "INSERT INTO wrong_codes (subject, at) VALUES (:subject, :now), (:everybody, :now)"
_PRUNE = "DELETE FROM wrong_codes WHERE at <= :before"


def code_locked(db: sqlite3.Connection, subject: str, now: datetime) -> bool:
    """Whether no code of this person is looked at, not even a right one: else the lock would tell which was right.

    `subject` is the identity as text. The lock ends when enough of the wrong codes are older than their window.
    """
    limits = ((subject, SENDER_TRIES, SENDER_WINDOW), (EVERYBODY, ALL_TRIES, ALL_WINDOW))
    return any(_count(db, who, now - window) >= tries for who, tries, window in limits)


def note_wrong_code(db: sqlite3.Connection, subject: str, now: datetime) -> None:
    """Count a wrong code. Nothing is counted while the lock holds, so that nobody can keep it shut for others."""
    if code_locked(db, subject, now):
        return
    db.execute(_PRUNE, {"before": stamp(now - ALL_WINDOW)})
    db.execute(_INSERT, {"subject": subject, "everybody": EVERYBODY, "now": stamp(now)})


def _count(db: sqlite3.Connection, subject: str, since: datetime) -> int:
    row = db.execute(_COUNT, {"subject": subject, "since": stamp(since)}).fetchone()
    return int(row[0])
