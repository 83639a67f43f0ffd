"""Slack does what every adapter does."""

from tests.channels.conformance import Conformance


class TestSlack(Conformance):
    """The suite."""
