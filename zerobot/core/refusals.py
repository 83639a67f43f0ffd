"""What somebody is told privately, where a platform can, whose message was not accepted."""

from collections.abc import Mapping

from zerobot.core.envelope import Acceptance

PRIVATE_REFUSALS: Mapping[Acceptance, str] = {
    Acceptance.NOT_ALLOWED: "You may not talk to me here; whoever runs me can let you in.",
    Acceptance.PAIRING: "I don't know you yet; the code that lets you in stands in my message to you.",
    Acceptance.FULL: "I have too much waiting here already. Please send it again later.",
    Acceptance.BLOCKED: "I may not take this; my message in the chat says why.",
}
"""Refusals that people who used a command of the platform's own are told of; the others need no words."""
