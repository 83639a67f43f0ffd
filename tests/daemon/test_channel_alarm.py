"""What channels tell the operators: once a day about one subject."""

from zerobot.core.places import Place
from zerobot.daemon.channel_alarm import SUBJECTS, ChannelAlarms
from zerobot.testing.clock import ManualClock
from zerobot.testing.intake import MemoryState

OLGA, OTTO = Place("fake", "olga"), Place("fake", "otto")
HOUR = 3_600.0


class Desk:
    """An alarm, and what it has said."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.state = MemoryState()
        self.said: list[tuple[Place, str]] = []

    async def tell(self, subject: str, text: str) -> None:
        """Tell it by the alarm of a new process."""
        await ChannelAlarms(lambda: (OLGA, OTTO), self._say, lambda _: self.state, self.clock).tell(
            "mail", subject, text
        )

    async def _say(self, place: Place, text: str) -> None:
        self.said.append((place, text))


async def test_each_operator_is_told_once_a_day_about_one_subject() -> None:
    """A restart is no reason to tell it again; another subject is."""
    desk = Desk()
    await desk.tell("refused", "one")
    await desk.tell("refused", "two")
    assert desk.said == [(OLGA, "one"), (OTTO, "one")]
    await desk.tell("full", "three")
    await desk.clock.advance(23 * HOUR)
    await desk.tell("refused", "four")
    assert [text for place, text in desk.said if place == OLGA] == ["one", "three"]
    await desk.clock.advance(1 * HOUR)
    await desk.tell("refused", "five")
    assert [text for place, text in desk.said if place == OLGA] == ["one", "three", "five"]


async def test_what_is_remembered_of_subjects_is_bounded() -> None:
    """However many there are, the state stays small, and the newest ones are remembered."""
    desk = Desk()
    for number in range(SUBJECTS + 50):
        await desk.tell(f"subject {number}", "text")
        await desk.clock.advance(1)
    (kept,) = desk.state.values.values()
    assert kept.count("subject") == SUBJECTS
    before = len(desk.said)
    await desk.tell(f"subject {SUBJECTS + 49}", "again")
    assert len(desk.said) == before
