"""What can go wrong with a mailbox, by what to do next. A server's words in a text are on one line and cut."""

from __future__ import annotations

from zerobot.core.errors import ZerobotError


class ImapError(ZerobotError):
    """The mailbox cannot be used. Subclasses say what to do."""


class ImapLostError(ImapError):
    """The connection is gone, was given up, or did not come about: wait and connect again."""


class ImapUntrustedError(ImapLostError):
    """The connection would not be as safe as it is configured to be; nothing secret was said over it.

    Somebody in between can bring this about, and stop doing so: connecting again later is right, going on is not.
    """


class ImapNoError(ImapError):
    """The server refused one command; the connection is fine.

    Args:
        message: What was asked and what was answered.
        code: The response code in upper case (RFC 3501, section 7.1, and RFC 5530): `TRYCREATE`, `NONEXISTENT`,
            `OVERQUOTA`, ...; empty: none.
    """

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class ImapRefusedError(ImapError):
    """The server does not let the account in.

    Args:
        message: What was answered.
        code: As for `ImapNoError`; `LOGINDISABLED`: it takes no passwords, or not this way.
        passing: Whether the same credentials may do later: the server is overburdened or has counted too many
            connections. Otherwise a person has to mend something.
    """

    def __init__(self, message: str, *, code: str = "", passing: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.passing = passing
