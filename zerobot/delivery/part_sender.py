"""Brings one part of a reply to its place, whatever the platform does: `queued -> sending -> sent | failed`."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from zerobot.core.channel import AnswersProbe, MessageBody, OutboundMessage, SentMessage, SettlesUnclear
from zerobot.core.errors import (
    CannotTellError,
    DeliveryError,
    GoneError,
    MovedError,
    RefusedError,
    StorageError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)
from zerobot.delivery.line import Bench, Line, part_key
from zerobot.delivery.pacing import Priority
from zerobot.delivery.patience import Patience
from zerobot.store.outbox import Reply, ReplyPart

KEPT = 86_400.0
"""Seconds that a part is tried: an answer of yesterday helps nobody."""
REPEAT_AFTER = 32.0
"""Seconds before the one repeat of a message whose connection broke, where the platform cannot be probed. There is no
second repeat, so it must not fall into the same outage. After a crash it is done at once."""
STALE_TRIES = 5
REFUSED = "(The rest of this message was refused here.)"
REFUSED_KEPT = 500
"""Characters of a message that was refused in its plain form too; they go out with the notice instead of it."""


class GivenUpError(Exception):
    """A reply can't be delivered at all; `str(error)` says why."""


@dataclass(slots=True, kw_only=True)
class Job:
    """One part on its way."""

    reply: Reply
    position: int
    body: MessageBody | None
    """None: the message is to be deleted."""
    id: str
    """Of the message that is there; empty: there is none that we know of."""
    reply_to: str
    unclear: bool
    """A send ended without an answer."""
    live: bool
    """It did so in this process: the outage may still be on."""
    repeat: bool
    """It may be the second copy, and says so."""
    stands: bool
    """The message shows its body already."""
    form: int = 0
    """0: as rendered, 1: plain, 2: shortened."""
    stale: list[str] = field(default_factory=list)
    """Messages that could not be edited: they go once there is a new one."""
    faults: int = 0


def job_of(reply: Reply, part: ReplyPart, *, live: bool, stands: bool) -> Job:
    """Begin with what the store says of a part."""
    return Job(
        reply=reply,
        position=part.position,
        body=part.body,
        id=part.platform_id,
        reply_to=reply.reply_to if part.position == 0 else "",
        unclear=part.unclear and not part.platform_id,
        live=live,
        repeat=part.repeated,
        stands=stands,
    )


class PartSender:
    """Sends parts on one line.

    Args:
        bench: The outbox, the clock, the log.
        line: The channel and its gate.
        patience: Waits between tries.
    """

    def __init__(self, bench: Bench, line: Line, patience: Patience) -> None:
        self._outbox = bench.outbox
        self._log = bench.log
        self._line = line
        self._patience = patience

    async def deliver(self, job: Job) -> bool:
        """Work on a part until it is settled.

        Returns:
            Whether people see it; False: it failed for good, and the next part goes on.

        Raises:
            UnreachableError, MovedError: Nothing can be sent in this place.
            GivenUpError: It was tried for a day.
        """
        clock = self._patience.clock
        end = clock.monotonic() + KEPT
        while clock.monotonic() < end:
            try:
                delivered = await self._attempt(job)
            except (UnreachableError, MovedError):
                raise
            except Exception as error:  # noqa: BLE001 -- a fault of an adapter must not silence a chat: see `_recover`
                if not await self._recover(job, error):
                    return await self._failed(job, error)
            else:
                await self._clean_up(job)
                return delivered
        raise GivenUpError("it was tried for a day")

    async def _recover(self, job: Job, error: Exception) -> bool:
        """Choose what to try next after an error; False: there is nothing else."""
        match error:
            case TryLaterError() | StorageError():
                await self._wait(job, error)
            case UnclearError() if job.id:
                # Doing it again changes nothing if it was done.
                await self._wait(job, error)
            case UnclearError():
                job.unclear = job.live = True
            case GoneError():
                return await self._without_what_is_gone(job)
            case _:
                # A refusal, or a fault of the adapter: a simpler form of the message may pass.
                return await self._in_another_form(job)
        return True

    async def _attempt(self, job: Job) -> bool:
        """Make the one call that the part needs now."""
        if job.unclear and job.body is not None and not await self._told(job):
            if job.repeat:
                return await self._failed(job, UnclearError("the repeat ended unclear as well"))
            if job.live:
                await self._outage()
        if job.body is None:
            return await self._delete(job)
        if job.id and (job.stands or self._line.editor is None):
            return await self._sent(job, job.id)
        if job.id:
            return await self._edit(job, job.body)
        return await self._send(job, job.body)

    async def _outage(self) -> None:
        """Wait until the outage in which a message broke is over: the one repeat must not break too."""
        channel = self._line.channel
        if not isinstance(channel, AnswersProbe):
            await self._patience.clock.sleep(REPEAT_AFTER)
            return
        faults = 0
        while True:
            try:
                await channel.probe()
            except DeliveryError:
                faults += 1
                await self._patience.back_off(faults)
            else:
                return

    async def _told(self, job: Job) -> bool:
        """Ask the platform whether it has an unclear message; False: it cannot say."""
        channel = self._line.channel
        if not isinstance(channel, SettlesUnclear):
            return False
        try:
            await self._find(job, channel)
        except CannotTellError:
            return False
        return True

    async def _find(self, job: Job, channel: SettlesUnclear) -> None:
        """Ask the platform whether it has an unclear message."""
        assert job.body is not None, "a deletion is never unclear"
        async with self._turn(job):
            try:
                found = await channel.find(self._message(job, job.body))
            except UnclearError as error:
                raise TryLaterError(f"the platform could not be asked: {error}") from error
        if found is None:
            await self._patience.stored(lambda: self._outbox.release_part(job.reply.id, job.position))
        else:
            job.id = found.id
        job.unclear = False

    async def _send(self, job: Job, body: MessageBody) -> bool:
        async with self._turn(job):
            if job.unclear:
                if not await self._outbox.mark_repeated(job.reply.id, job.position):
                    return await self._failed(job, UnclearError("it was repeated before"))
                job.repeat, job.unclear = True, False
            else:
                await self._outbox.begin_part(job.reply.id, job.position, self._shaped(job, body))
            try:
                sent = await self._line.channel.send(self._message(job, body))
            except UnclearError:
                raise
            except DeliveryError:
                await self._patience.stored(lambda: self._outbox.release_part(job.reply.id, job.position))
                raise
        return await self._sent(job, sent.id)

    async def _edit(self, job: Job, body: MessageBody) -> bool:
        editor = self._line.editor
        assert editor is not None, "only what can be edited is"
        async with self._turn(job):
            await editor.edit(SentMessage(job.reply.place, job.id), self._shaped(job, body))
        return await self._sent(job, job.id)

    async def _delete(self, job: Job) -> bool:
        editor = self._line.editor
        if editor is None or not job.id:
            return await self._failed(job, RefusedError("it can't be taken back"))
        async with self._turn(job):
            await editor.delete(SentMessage(job.reply.place, job.id))
        return await self._sent(job, job.id)

    async def _sent(self, job: Job, ident: str) -> bool:
        await self._patience.stored(lambda: self._outbox.part_sent(job.reply.id, job.position, ident))
        return True

    async def _failed(self, job: Job, error: Exception) -> bool:
        await self._patience.stored(lambda: self._outbox.part_failed(job.reply.id, job.position, str(error)))
        self._note("delivery.failed", job, error)
        return False

    async def _wait(self, job: Job, error: Exception) -> None:
        """Wait until it may be tried again."""
        job.faults += 1
        at_least = 0.0
        if isinstance(error, TryLaterError):
            self._line.gate.hold_for(job.reply.place, error)
            at_least = error.retry_after or 0.0
        self._note("delivery.delayed", job, error)
        await self._patience.back_off(job.faults, at_least)

    async def _without_what_is_gone(self, job: Job) -> bool:
        """Go on without the message that no longer exists; False: nothing else is left to leave out."""
        if job.id:
            await self._anew(job)
        elif job.reply_to:
            job.reply_to = ""
        else:
            return False
        return True

    async def _in_another_form(self, job: Job) -> bool:
        """Choose what to try after a refusal; False: there is nothing else."""
        if job.body is None:
            return False
        if job.id and job.form >= 1:
            job.stale.append(job.id)
            await self._anew(job)
            job.form = 0
        elif job.form >= 2:
            return False
        else:
            job.form += 1
        return True

    async def _anew(self, job: Job) -> None:
        """Forget a message: what it should show is sent as a new one."""
        await self._patience.stored(lambda: self._outbox.part_gone(job.reply.id, job.position))
        job.id = ""

    async def _clean_up(self, job: Job) -> None:
        """Take back what could not be edited, now that its text stands elsewhere. The reply does not depend on it."""
        editor = self._line.editor
        while job.stale and editor is not None:
            ident = job.stale.pop()
            for faults in range(1, STALE_TRIES + 1):
                try:
                    async with self._turn(job):
                        await editor.delete(SentMessage(job.reply.place, ident))
                except (TryLaterError, UnclearError) as error:
                    if isinstance(error, TryLaterError):
                        self._line.gate.hold_for(job.reply.place, error)
                    await self._patience.back_off(faults)
                except DeliveryError as error:
                    self._note("delivery.stale", job, error)
                    break
                else:
                    break

    def _turn(self, job: Job) -> AbstractAsyncContextManager[object]:
        answers = job.position == 0 and not (job.id or job.faults or job.stale)
        return self._line.gate.turn_to_call(job.reply.place, Priority.ANSWER if answers else Priority.FINAL)

    def _message(self, job: Job, body: MessageBody) -> OutboundMessage:
        return OutboundMessage(
            place=job.reply.place,
            body=self._shaped(job, body),
            key=part_key(job.reply.id, job.position, job.reply.turn, job.reply.created_at),
            reply_to=job.reply_to,
            answers=job.reply.reply_to,
            not_before=job.reply.created_at,
        )

    def _shaped(self, job: Job, body: MessageBody) -> MessageBody:
        """The message in the form that is tried now."""
        channel = self._line.channel
        if job.form:
            body = channel.plain(body)
        if job.form >= 2 and len(body.text) > REFUSED_KEPT:
            body = MessageBody(f"{body.text[:REFUSED_KEPT]}…\n\n{REFUSED}")
        elif job.form >= 2:
            body = MessageBody(REFUSED)
        return channel.mark_repeat(body) if job.repeat else body

    def _note(self, event: str, job: Job, error: Exception) -> None:
        self._log(
            event,
            level="warning",
            error=error,
            channel=job.reply.place.channel,
            conversation=job.reply.conversation,
            turn=job.reply.turn,
            reply=job.reply.id,
            part=job.position,
            tries=job.faults,
        )
