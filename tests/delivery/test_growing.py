"""Drafts on a channel that lets them grow otherwise than by edits."""

from tests.delivery.house import ANN, Houses
from zerobot.core.channel import MessageBody, OutboundMessage, SentMessage
from zerobot.core.events import TextShown
from zerobot.testing.channel import FakeChannel
from zerobot.testing.clock import ManualClock


class GrowingChannel(FakeChannel):
    """Shows a draft's words only when they have come twice, and its formatting in the end."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.growing: dict[str, str] = {}

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Begin a draft."""
        sent = await super().send(message)
        if message.growing:
            self.growing[sent.id] = ""
        return sent

    async def grow(self, sent: SentMessage, body: MessageBody) -> bool:
        """Take words."""
        settled = self.growing[sent.id] == body.text
        self.growing[sent.id] = body.text
        if settled:
            await super().edit(sent, MessageBody(f"({body.text})"))
        return settled

    def is_growing(self, sent: SentMessage) -> bool:
        """Until it is edited."""
        return sent.id in self.growing

    async def edit(self, sent: SentMessage, body: MessageBody) -> None:
        """Make it whole."""
        self.growing.pop(sent.id, None)
        await super().edit(sent, body)


async def test_a_draft_that_grows_by_itself_is_given_its_text_until_it_stands_there(houses: Houses) -> None:
    """And its final by an edit, although no word is new."""
    channel = GrowingChannel(houses.clock)
    async with houses.open(channel) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            show(TextShown("Hello"))
            await house.clock.advance(60)
            assert channel.texts(ANN) == ["(Hello)"]
            assert len(channel.of("edit")) == 1
            await house.finish(ref, show, "Hello")
            await house.clock.advance(5)
    assert channel.texts(ANN) == ["Hello"]
