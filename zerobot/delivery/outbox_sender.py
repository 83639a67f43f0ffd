"""Brings a reply of the outbox to its place: its parts in order, each of them once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from zerobot.core.channel import MessageBody
from zerobot.core.errors import DeliveryError, MovedError, UnreachableError
from zerobot.core.ids import ReplyId
from zerobot.delivery.line import Bench, Line, Shown
from zerobot.delivery.part_sender import GivenUpError, PartSender, job_of
from zerobot.delivery.patience import Patience
from zerobot.store.outbox import PartState, Reply, ReplyPart, ReplyState

NOTHING_VISIBLE = "(The answer has no text that can be shown.)"


class OutboxSender:
    """Delivers replies; who calls it keeps the order in a place.

    Args:
        bench: The outbox, the clock, the log, and who is told of a chat's new id.
        patience: Waits between tries.
    """

    def __init__(self, bench: Bench, patience: Patience) -> None:
        self._bench = bench
        self._patience = patience

    async def deliver(self, reply: Reply, line: Line, shown: Mapping[int, Shown] | None) -> ReplyId | None:
        """Deliver a queued reply to its end: sent, or failed for good. Any other reply is left alone.

        Args:
            reply: Its text is final.
            line: The channel of its place.
            shown: What its draft left on the platform; None: no draft of this process showed it.

        Returns:
            A notice that it left in the outbox: nobody knows whether all of it has arrived. None: there is none.
        """
        if reply.state is not ReplyState.QUEUED:
            return None
        outbox = self._bench.outbox
        bodies = _bodies(reply, line)
        reply = await self._patience.stored(lambda: outbox.plan(reply.id, bodies))
        try:
            failed = await self._deliver_parts(reply, line, shown)
        except (DeliveryError, GivenUpError) as error:
            why = str(error)
            await self._patience.stored(lambda: outbox.fail(reply.id, why))
            reason = "unreachable" if isinstance(error, UnreachableError) else "given_up"
            self._log_failed(reply, reason, error=error)
            return None
        return await self._finish(reply.id, failed)

    async def _finish(self, ident: ReplyId, failed: int) -> ReplyId | None:
        """End a reply that was delivered, but for some parts; what may be missing is said in its place."""
        outbox = self._bench.outbox
        reply = await self._patience.stored(lambda: outbox.get(ident))
        missing = [part.position for part in reply.parts if part.maybe_missing]
        # A notice has no turn: should it get lost as well, nothing more is said about it.
        text = _missing_text(reply, missing) if missing and reply.turn else ""
        notice = await self._patience.stored(lambda: outbox.finish(reply.id, text))
        parts = len(reply.parts) - failed
        if missing:
            self._log_failed(reply, "unclear", parts=parts, failed=failed)
        else:
            self._bench.log("delivery.sent", **_fields(reply), parts=parts, failed=failed)
        return notice

    async def _follow(self, reply: Reply, chat: str) -> Reply:
        """Tell that a chat has a new id, and go on there."""
        old = reply.place
        await self._patience.stored(lambda: self._bench.on_moved(old, chat))
        return replace(reply, place=replace(old, chat=chat))

    def _log_failed(self, reply: Reply, reason: str, *, error: Exception | None = None, **counts: int) -> None:
        self._bench.log("delivery.failed", level="warning", error=error, **_fields(reply), reason=reason, **counts)

    async def _deliver_parts(self, reply: Reply, line: Line, shown: Mapping[int, Shown] | None) -> int:
        """Deliver the parts in order; a chat that moves is followed, once for each part.

        Returns:
            How many failed.
        """
        parts = PartSender(self._bench, line, self._patience)
        failed = 0
        for part in reply.parts:
            if part.state in (PartState.SENT, PartState.FAILED):
                failed += part.state is PartState.FAILED
                continue
            job = job_of(reply, part, live=shown is not None, stands=_stands(part, shown))
            try:
                delivered = await parts.deliver(job)
            except MovedError as error:
                reply = job.reply = await self._follow(reply, error.chat)
                delivered = await parts.deliver(job)
            failed += not delivered
        return failed


def _fields(reply: Reply) -> dict[str, Any]:
    """What every event about a reply says."""
    return {
        "channel": reply.place.channel,
        "conversation": reply.conversation,
        "turn": reply.turn,
        "reply": reply.id,
    }


def _missing_text(reply: Reply, missing: Sequence[int]) -> str:
    """Tell a chat which parts of an answer it may not have got."""
    ask = "say “go on” or ask me to repeat it."
    if sum(part.body is not None for part in reply.parts) == 1:
        return f"⚠️ My answer may not have arrived; {ask}"
    *others, last = (str(position + 1) for position in missing)
    named = f"Parts {', '.join(others)} and {last}" if others else f"Part {last}"
    return f"⚠️ {named} of my answer may not have arrived; {ask}"


def _bodies(reply: Reply, line: Line) -> Sequence[MessageBody]:
    """The messages that a reply becomes. A chat never stays silent, unless what was shown is to be taken back."""
    bodies = line.channel.render(reply.text)
    if bodies or (not reply.text and reply.parts):
        return bodies
    return line.channel.render(NOTHING_VISIBLE)


def _stands(part: ReplyPart, shown: Mapping[int, Shown] | None) -> bool:
    """Whether the draft's last call has shown just this, so that no call is needed."""
    draft = (shown or {}).get(part.position)
    return draft is not None and draft.id == part.platform_id and draft.body is not None and draft.body == part.body
