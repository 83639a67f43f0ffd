"""What Slack's refusals mean to the one who sends; pure.

Words: https://docs.slack.dev/reference/methods/chat.postMessage and the pages of the other methods.
"""

from __future__ import annotations

from channels.slack.web import LinkError, WebError
from zerobot.core.errors import (
    DeliveryError,
    GoneError,
    RefusedError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)

BAD_TOKEN = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type"}
)
"""The token is none, or none any more."""
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"})
_CLOSED = frozenset(
    {"channel_not_found", "not_in_channel", "is_archived", "is_inactive", "restricted_action", "user_not_found",
     "restricted_action_read_only_channel", "restricted_action_thread_only_channel", "user_not_visible",
     "no_permission", "restricted_action_thread_locked", "restricted_action_non_threadable_channel",
     "messages_tab_disabled", "cannot_dm_bot", "user_disabled", "ekm_access_denied", "access_denied",
     "user_not_in_channel", "slack_connect_blocked_file_type", "team_access_not_granted", "not_in_thread",
     "team_not_found"}
)  # fmt: skip
# "It is possible that some aspect of the operation succeeded": nobody knows what became of it.
_UNCLEAR = frozenset({"internal_error", "fatal_error"})
_LATER = frozenset(
    {"service_unavailable", "request_timeout", "team_added_to_org", "accesslimited", "external_channel_migrating",
     "update_failed"}
)  # fmt: skip


def as_delivery_error(error: WebError | LinkError, call: str) -> DeliveryError:
    """Say what a failed call means for its sender.

    A limit of `chat.postMessage` is the channel's, one of any other method the whole workspace's. After 5xx nobody
    knows what became of a request.

    Args:
        error: What our client raised.
        call: The method, for the log.
    """
    text = f"{call}: {error}"
    if isinstance(error, LinkError):
        return TryLaterError(text) if error.never_sent else UnclearError(text)
    if error.retry_after is not None:
        return TryLaterError(text, retry_after=error.retry_after, whole_bot=call != "chat.postMessage")
    return _kind(error)(text)


def _kind(
    error: WebError,
) -> type[GoneError | UnreachableError | RefusedError | TryLaterError | UnclearError]:
    kind: type[GoneError | UnreachableError | RefusedError | TryLaterError | UnclearError] = RefusedError
    if error.code in BAD_TOKEN or error.code in _LATER:
        # The receiving side meets a bad token too and parks the channel; what is queued waits for a good one.
        kind = TryLaterError
    elif error.code in _UNCLEAR or error.status >= 500:
        kind = UnclearError
    elif error.code in _GONE:
        kind = GoneError
    elif error.code in _CLOSED:
        kind = UnreachableError
    return kind
