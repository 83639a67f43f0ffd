"""The parts of the store that several parts of the daemon look into, opened once."""

from dataclasses import dataclass

from zerobot.core.clock import Clock
from zerobot.store.audit import Audit
from zerobot.store.conversations import Conversations
from zerobot.store.database import Database
from zerobot.store.grants import Grants
from zerobot.store.inbox import Inbox
from zerobot.store.pairing import Pairings
from zerobot.store.turns import Turns
from zerobot.store.usage import UsageLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """An aggregate each."""

    inbox: Inbox
    turns: Turns
    conversations: Conversations
    grants: Grants
    pairings: Pairings
    usage: UsageLog
    audit: Audit


def books_of(database: Database, clock: Clock) -> Books:
    """The books of a store."""
    return Books(
        inbox=Inbox(database, clock),
        turns=Turns(database, clock),
        conversations=Conversations(database),
        grants=Grants(database, clock),
        pairings=Pairings(database, clock),
        usage=UsageLog(database),
        audit=Audit(database, clock),
    )
