"""What can go wrong by circumstance; a bug is never one of these."""


class ZerobotError(Exception):
    """`str(error)` is for the log; `user_text` is for the chat: no secret, no path, and what to do next."""

    user_text = "Something went wrong on my side; it is in the log."


class ConfigError(ZerobotError):
    """The configuration cannot be used; a line a fault: `file:line: key: what is wrong, what is allowed`."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class StateLockedError(ZerobotError):
    """Another daemon holds the state directory."""


class StorageError(ZerobotError):
    """The database refused to store: a full disk, a broken file."""

    user_text = (
        "I cannot store anything at the moment (is the disk full?), so I must not take new work. Please try later."
    )


class ProviderError(ZerobotError):
    """A model attempt failed.

    Attributes:
        code: A short stable word for the log and the final: `rate_limited`, `quota`, `auth`, `overloaded`, ...
        status: The HTTP status, if there was one.
        retryable: Whether the same request may be sent again.
        retry_after: Seconds that the server asked us to wait.
    """

    user_text = "The model does not answer at the moment. Please try again in a few minutes."

    def __init__(
        self,
        message: str,
        *,
        code: str = "provider_error",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class RateLimitError(ProviderError):
    """The provider asks us to slow down, or a quota is used up (then it is not retryable)."""

    user_text = "The model's provider limits us at the moment. Please try again in a few minutes."


class CredentialError(ProviderError):
    """The provider refused the key; `str(error)` names the key's setting."""

    user_text = "The model's provider refuses my key; the operator has to mend the configuration."


class ContextOverflowError(ProviderError):
    """The request is longer than the model's window."""

    user_text = "This conversation is too long for the model. Send /new to start afresh."


class BodyTooLargeError(ContextOverflowError):
    """The request has too many bytes, or too many pictures. Without any pictures it is its text that is too long."""


class HistoryRejectedError(ProviderError):
    """The provider says that the messages themselves are malformed."""

    user_text = "The model refused our conversation as malformed. Send /new to start afresh."


class PictureRejectedError(HistoryRejectedError):
    """The provider takes no pictures, or not these."""


class DeliveryError(ZerobotError):
    """A platform did not take a message. Subclasses say what to do next."""


class TryLaterError(DeliveryError):
    """The platform asks us to wait, or answered with a passing fault: it surely did not take the message."""

    def __init__(self, message: str, *, retry_after: float | None = None, whole_bot: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds in which the chat must get no call at all."""
        self.whole_bot = whole_bot
        """Whether the limit holds for the bot and not only for the chat."""


class UnclearError(DeliveryError):
    """The connection broke after the request: the platform may have taken the message or not."""


class CannotTellError(DeliveryError):
    """The platform cannot say whether it took a message whose sending ended unclear."""


class RefusedError(DeliveryError):
    """The platform will never take this message as it is (bad markup, too long)."""


class GoneError(DeliveryError):
    """What should be edited or answered no longer exists."""


class UnreachableError(DeliveryError):
    """Nothing will be taken in this chat: blocked, kicked, deleted. Permanent until the person writes again."""


class MovedError(DeliveryError):
    """The chat has a new id; send there."""

    def __init__(self, message: str, *, chat: str) -> None:
        super().__init__(message)
        self.chat = chat


class ChannelFaultError(ZerobotError):
    """A channel cannot go on with what it is configured with (a refused token): it is parked, the daemon lives."""

    def __init__(self, message: str, *, advice: str) -> None:
        super().__init__(message)
        self.advice = advice
        """What the operator should do, naming the key."""
