"""An intake that remembers what a channel hands over, for tests of an adapter without a daemon."""

import asyncio
from collections.abc import Callable

from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.envelope import Acceptance, ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.errors import StorageError
from zerobot.core.places import Place


class RecordingIntake:
    """An `Intake` that accepts everything once, unless told to fail.

    Attributes:
        accepted: Envelopes in the order in which they came; a second one with the same event id is a duplicate.
        duplicates: Those second ones.
        edits: Edits and deletions.
        presses: Button presses.
        moves: Chats that moved, as (old place, new chat).
        alarms: What operators were told, as (subject, text).
        reply: The answer to each press.
        refusal: The answer to each question whether a press would count; None: it would.
    """

    def __init__(self) -> None:
        self.accepted: list[InboundEnvelope] = []
        self.duplicates: list[InboundEnvelope] = []
        self.edits: list[EnvelopeEdit] = []
        self.presses: list[ButtonPress] = []
        self.moves: list[tuple[Place, str]] = []
        self.alarms: list[tuple[str, str]] = []
        self._signs: list[str] = []
        """Of life: empty when it works, else why it broke."""
        self.reply = PressReply(PressOutcome.APPROVED, "Approved.")
        self.refusal: PressReply | None = None
        self._failures = 0
        self._held: set[str] = set()
        self._changed = asyncio.Event()

    @property
    def texts(self) -> list[str]:
        """The texts of what was accepted."""
        return [envelope.text for envelope in self.accepted]

    @property
    def connects(self) -> int:
        """How often the channel gave a sign of life."""
        return self._signs.count("")

    @property
    def breaks(self) -> list[str]:
        """Why its connection broke, each time."""
        return [why for why in self._signs if why]

    def fail(self, times: int = 1) -> None:
        """Let the next calls that have to store something fail, as a full disk does."""
        self._failures += times

    def hold(self, *, presses: bool = False) -> None:
        """Let whoever hands an envelope over (or with `presses` also whoever presses) wait until `release`."""
        self._held = {"accept", "press"} if presses else {"accept"}

    def release(self) -> None:
        """Go on."""
        self._held = set()
        self._notify()

    async def until(self, condition: Callable[[], object], patience: float = 15.0) -> None:
        """Wait until something holds; looked at after each call.

        Args:
            condition: What is waited for.
            patience: Seconds.

        Raises:
            AssertionError: It did not come to hold.
        """
        try:
            async with asyncio.timeout(patience):
                while not condition():
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"it did not happen; accepted: {self.texts}, breaks: {self.breaks}") from None

    async def accept(self, envelope: InboundEnvelope) -> Acceptance:
        """Remember an envelope; see `Intake`."""
        await self._released("accept")
        self._store()
        known = any(
            (one.conversation.place.channel, one.event_id) == (envelope.conversation.place.channel, envelope.event_id)
            for one in self.accepted
        )
        (self.duplicates if known else self.accepted).append(envelope)
        self._notify()
        return Acceptance.DUPLICATE if known else Acceptance.ACCEPTED

    async def edited(self, edit: EnvelopeEdit) -> None:
        """Remember an edit; see `Intake`."""
        self._store()
        self.edits.append(edit)
        self._notify()

    async def press(self, press: ButtonPress) -> PressReply:
        """Remember a press and give the prepared answer; see `Intake`."""
        await self._released("press")
        self._store()
        self.presses.append(press)
        self._notify()
        return self.reply

    async def may_press(self, press: ButtonPress) -> PressReply | None:
        """Give the prepared answer; see `Intake`."""
        del press
        return self.refusal

    async def moved(self, old: Place, new_chat: str) -> None:
        """Remember a move; see `Intake`."""
        self._store()
        self.moves.append((old, new_chat))
        self._notify()

    async def alarm(self, subject: str, text: str) -> None:
        """Remember what operators are told; see `Intake`."""
        self._store()
        self.alarms.append((subject, text))
        self._notify()

    def connected(self) -> None:
        """Count a sign of life; see `Intake`."""
        self._signs.append("")
        self._notify()

    def disconnected(self, why: str) -> None:
        """Remember why; see `Intake`."""
        self._signs.append(why)
        self._notify()

    async def _released(self, what: str) -> None:
        while what in self._held:
            await self._changed.wait()

    def _store(self) -> None:
        if self._failures:
            self._failures -= 1
            self._notify()
            raise StorageError("the disk is full, for this test")

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class MemoryState:
    """A `ChannelState` in memory; hand the same one to a second channel and it is a restart."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    async def get(self, key: str) -> str | None:
        """The value, or None."""
        return self.values.get(key)

    async def set(self, key: str, value: str) -> None:
        """Keep a value."""
        self.values[key] = value

    async def forget(self, key: str) -> None:
        """Remove a value."""
        self.values.pop(key, None)
