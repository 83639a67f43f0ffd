"""E-mail does what every adapter does, but for what mail cannot: a mail that was sent stays as it is."""

from tests.channels.conformance import Conversing


class TestEmail(Conversing):
    """The suite."""
