"""The JSON values that operations take and give: how parameters are read, and what the store has is written."""

from collections.abc import Callable

from zerobot.core.approvals import Approval, ApprovalState
from zerobot.daemon.control_wire import ControlError, Params
from zerobot.security.access import grant_text
from zerobot.security.own_secrets import cleaned
from zerobot.security.prompt import withdrawal_text
from zerobot.store.audit import AuditEntry
from zerobot.store.conversations import MAX_ID, ConversationSummary
from zerobot.store.grants import GrantRecord
from zerobot.store.pairing import Pairing
from zerobot.store.usage import UsageBy, UsageTotal


def odd_request(text: str) -> ControlError:
    """What a request is answered whose parameters make no sense: whoever wrote it has to change it."""
    return ControlError("bad_request", text)


def text_of(params: Params, key: str, *, default: str | None = None) -> str:
    """A parameter that is a text; without a default it must be there."""
    value = params.get(key, default)
    if not isinstance(value, str):
        raise odd_request(f"{key} is missing or no text")
    return value


def number_of(params: Params, key: str, *, default: int | None = None, most: int = MAX_ID) -> int:
    """A parameter that is a number from 1 to `most`; without a default it must be there."""
    value = params.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
        raise odd_request(f"{key} is missing or no number from 1 to {most}")
    return value


def flag_of(params: Params, key: str, *, default: bool | None = None) -> bool:
    """A parameter that is true or false; without a default it must be there."""
    value = params.get(key, default)
    if not isinstance(value, bool):
        raise odd_request(f"{key} is missing or neither true nor false")
    return value


def approval_form(approval: Approval, clean: Callable[[str], str]) -> dict[str, object]:
    """An approval that waits; `clean` takes secrets out of what a model has written."""
    return {
        "code": approval.code,
        "tool": approval.tool,
        "arguments": cleaned(dict(approval.arguments), clean),
        "does": clean(approval.description),
        "why": clean(approval.why),
        "held_by": approval.sandbox,
        "asked_by": str(approval.asker),
        "chat": str(approval.place),
        "requested_at": approval.requested_at.isoformat(timespec="seconds"),
        "expires_at": approval.expires_at.isoformat(timespec="seconds"),
    }


def entry_form(entry: AuditEntry) -> dict[str, object]:
    """An entry of the audit."""
    return {
        "at": entry.at.isoformat(timespec="seconds"),
        "by": entry.actor,
        "did": entry.action,
        "to": entry.subject,
        "asked_by": entry.asked_by,
        "rule": entry.rule,
        "digest": entry.digest,
        "outcome": entry.outcome,
        "reason": withdrawal_text(entry.reason),
    }


def what_happened(approval: Approval) -> str:
    """Why an approval cannot be decided any more, as the end of a sentence."""
    if approval.state is ApprovalState.PENDING:
        return "its time is over"
    by = f" by {approval.decided_by}" if approval.decided_by else ""
    return f"it was {approval.state}{by}"


def pairing_form(pairing: Pairing) -> dict[str, object]:
    """Somebody who asked to be let in, or was."""
    return {
        "channel": pairing.channel,
        "identity": str(pairing.identity),
        "name": pairing.name,
        "state": pairing.state,
        "code": pairing.code,
        "expires_at": pairing.expires_at.isoformat(timespec="seconds") if pairing.expires_at else "",
    }


def session_form(summary: ConversationSummary) -> dict[str, object]:
    """A conversation in a list."""
    conversation = summary.conversation
    return {
        "id": conversation.id,
        "chat": str(conversation.key.place),
        "sender": conversation.key.sender,
        "state": summary.state,
        "messages": summary.messages,
        "waiting": summary.waiting,
        "model": conversation.model,
        "last_activity": summary.last_activity.isoformat(timespec="seconds"),
    }


def grant_form(record: GrantRecord) -> dict[str, object]:
    """What an operator has granted."""
    return {
        "id": record.grant.id,
        "chat": str(record.place),
        "tool": record.grant.tool,
        "pattern": record.grant.pattern,
        "covers": grant_text(record.grant.tool, record.grant.pattern),
        "granted_by": record.grant.granted_by,
        "expires_at": record.expires_at.isoformat(timespec="seconds"),
    }


def usage_form(by: list[UsageBy], total: UsageTotal) -> dict[str, object]:
    """A sum of model calls, with the keys of its group."""
    keys = {str(name): value for name, value in zip(by, total.key, strict=True)}
    return {
        **keys,
        "model": total.model,
        "calls": total.calls,
        "failed": total.failed,
        "unreported": total.unreported,
        "input_tokens": total.usage.input_tokens,
        "output_tokens": total.usage.output_tokens,
        "cache_read_tokens": total.usage.cache_read_tokens,
        "cache_write_tokens": total.usage.cache_write_tokens,
    }
