"""Discord does what every adapter does."""

from tests.channels.conformance import Conformance


class TestDiscord(Conformance):
    """The suite."""
