"""Receiving: from the folder to the inbox, each mail once, and marked as read only when it is stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from channels._wire.backoff import Backoff
from channels.email.buttons import answer
from channels.email.decode import Reading, envelope_of, names_us, says_nothing
from channels.email.imap.answers import Folder
from channels.email.imap.errors import ImapError, ImapNoError
from channels.email.imap.idle import wait_for_mail
from channels.email.imap.mailbox import Imap
from channels.email.letterbook import Letterbook, TooManyError
from channels.email.mail import Mail
from channels.email.position import OVERLAP, Position, arrival, is_stale, load_position, store_position
from channels.email.proof.authenticity import Proof, ProofRules, SignatureCheck, prove
from channels.email.reading.automatic import why_unanswered
from channels.email.reading.fingerprint import fingerprint
from channels.email.reading.mime import read_mail
from channels.email.refusals import Refusals
from channels.email.said.words import spoken
from channels.email.settings import EmailSettings
from channels.email.whereabouts import Whereabouts
from zerobot.core.channel import ChannelServices, Intake
from zerobot.core.envelope import Acceptance
from zerobot.core.errors import ChannelFaultError, StorageError

PASSING_TRIES = 20
"""Looks at a mail whose sender could not be proved for a passing reason (the DNS), one at each search for new mail."""
LOOKED_AT_AGAIN = 3
"""How many of those, one after the other, at each search: who has a slow DNS must not keep others waiting."""
BREAKS = 5
"""Connections that break over the same mail before it is given up."""
_MISSING = frozenset({"NONEXISTENT", "TRYCREATE"})
_ANSWERED = frozenset({Acceptance.ACCEPTED, Acceptance.FULL, Acceptance.BLOCKED})
"""What is followed by a mail of ours, and so counts."""


class UnreadableError(Exception):
    """A mail cannot be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverParts:
    """What a receiver works with."""

    settings: EmailSettings
    services: ChannelServices
    connect: Callable[[], Awaitable[Imap]]
    """Opens the mailbox: logged in, no folder selected."""
    letterbook: Letterbook
    refusals: Refusals
    check: SignatureCheck


class Receiver:
    """See the module.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: ReceiverParts) -> None:
        self._parts = parts
        self._rules = ProofRules.of(parts.settings)
        self._own = parts.settings.own_addresses
        self._commands = frozenset(command.name for command in parts.services.commands)
        self._breaks = Counter[tuple[int, int]]()
        """Of mails, by UIDVALIDITY and UID: how many connections broke while they were worked on."""

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled.

        Raises:
            ChannelFaultError: The account or the folder needs a person.
        """
        backoff = Backoff(self._parts.services.clock)
        while True:
            try:
                await self._session(intake)
            except (ImapError, StorageError) as error:
                intake.disconnected(str(error))
                self._parts.services.log(
                    "email.broken", level="warning", error=error, channel=self._parts.services.name
                )
                await backoff.wait()

    async def _session(self, intake: Intake) -> None:
        """One connection, until it breaks."""
        settings = self._parts.settings
        imap = await self._parts.connect()
        try:
            folder = await self._select(imap)
            position = await self._begin(intake, imap, folder)
            # From here on no mail is missed. What waits may take minutes, and the connection works all the while.
            intake.connected()
            while True:
                position = await self._take_new(intake, imap, folder, position)
                await wait_for_mail(
                    imap, self._parts.services.clock, renewal=settings.idle_renewal, poll=settings.poll_interval
                )
        finally:
            await imap.close()

    async def _select(self, imap: Imap) -> Folder:
        name = self._parts.settings.folder
        try:
            return await imap.select(name)
        except ImapNoError as error:
            if error.code not in _MISSING:
                raise
            key = f"[channels.{self._parts.services.name}]"
            raise ChannelFaultError(f"there is no folder {name}: {error}", advice=f"check folder in {key}") from error

    async def _begin(self, intake: Intake, imap: Imap, folder: Folder) -> Position:
        """Where reading goes on; at the first start, and when the folder was numbered anew, earlier mail is seen to."""
        state, now = self._parts.services.state, self._parts.services.clock.now()
        known = await load_position(state, folder.name)
        if known is not None and known.validity == folder.validity:
            return known
        last = folder.next_uid - 1 if folder.next_uid else max(await imap.new_uids(0), default=0)
        if known is None:
            position = Position(
                folder=folder.name, validity=folder.validity, uid=last, began=now, newest=now, postponed=()
            )
            earlier = await imap.new_uids(0, unseen=True) if self._parts.settings.answer_backlog else []
        else:
            self._parts.services.log(
                "email.renumbered", level="warning", channel=self._parts.services.name, folder=folder.name
            )
            position = replace(known, validity=folder.validity, uid=last, postponed=())
            earlier = await imap.new_uids(0, since=(known.newest - OVERLAP).date())
        for uid in earlier:
            if uid <= last:
                position = await self._take(intake, imap, folder, position, uid)
        await store_position(state, position)
        return position

    async def _take_new(self, intake: Intake, imap: Imap, folder: Folder, position: Position) -> Position:
        """Take in what is new, and look again at some of what could not be judged before."""
        again = position.postponed[:LOOKED_AT_AGAIN]
        for uid in await imap.new_uids(position.uid):
            position = await self._take(intake, imap, folder, replace(position, uid=uid), uid)
            await store_position(self._parts.services.state, position)
        for each in again:
            position = await self._take(intake, imap, folder, position, each.uid)
            await store_position(self._parts.services.state, position)
        return position

    async def _take(self, intake: Intake, imap: Imap, folder: Folder, position: Position, uid: int) -> Position:
        """Take in one mail, or refuse it; whatever is odd about it, it keeps no others out.

        Returns:
            The position, with what is to be looked at again.
        """
        key = (folder.validity, uid)
        try:
            position = await self._take_one(intake, imap, folder, position, uid)
        except StorageError:
            raise
        except ImapError:
            self._breaks[key] += 1
            raise
        except Exception as error:  # noqa: BLE001 - see above
            await self._give_up(intake, uid, error)
            position = position.without(uid)
        del self._breaks[key]
        return position

    async def _give_up(self, intake: Intake, uid: int, error: Exception) -> None:
        """Leave a mail where it is, unread, and say so."""
        parts = self._parts
        parts.services.log("email.unreadable", level="error", error=error, channel=parts.services.name, uid=uid)
        await parts.refusals.alarm_unreadable(intake, parts.settings.folder)

    async def _take_one(self, intake: Intake, imap: Imap, folder: Folder, position: Position, uid: int) -> Position:
        if self._breaks[folder.validity, uid] >= BREAKS:
            raise UnreadableError(f"{BREAKS} connections broke over it")
        fetched = await imap.fetch(uid, self._parts.settings.most_of_a_mail)
        if fetched is None:
            return position.without(uid)
        now = self._parts.services.clock.now()
        mail = await asyncio.to_thread(read_mail, fetched.raw)
        if not fetched.whole:
            mail = replace(mail, cut=True)
        proof = await prove(mail, fetched.raw, self._rules, self._parts.check)
        if proof.address is None and proof.temporary and position.tries(uid) < PASSING_TRIES:
            return position.with_try(uid)
        position = replace(position.without(uid), newest=max(min(position.newest, now), arrival(mail, now)))
        stale = is_stale(mail, position, now, backlog=self._parts.settings.answer_backlog)
        refusal = self._refusal(mail, proof, stale=stale)
        if refusal is not None:
            await self._refuse(intake, mail, proof, *refusal)
            return position
        # This takes the most time by far, so strangers do not get it.
        reading = await asyncio.to_thread(_read, mail, fetched.raw)
        if says_nothing(reading):
            await self._refuse(intake, mail, proof, Acceptance.NOT_ADDRESSED, "empty")
        elif await self._hand_over(intake, reading, Whereabouts.of(folder, uid)):
            await self._done_with(imap, folder, uid)
        return position

    async def _refuse(self, intake: Intake, mail: Mail, proof: Proof, reason: Acceptance, why: str) -> None:
        """Let a mail be: not a word to its sender, and one a day to operators if it is not proved."""
        says = mail.sender.address if mail.sender is not None else ""
        await self._parts.refusals.note(reason, why, says)
        if reason is Acceptance.NOT_ALLOWED:
            await self._parts.refusals.alarm_unproved(intake, proof.reason, says)

    async def _hand_over(self, intake: Intake, reading: Reading, where: Whereabouts) -> bool:
        """Give a mail to the inbox; True: it is stored there."""
        parts, mail = self._parts, reading.mail
        assert mail.sender is not None, "who is proved is known"
        says = mail.sender.address
        try:
            decides = reading.spoken.seen and answer(mail, reading.spoken.new) is not None
            entry = await parts.letterbook.add(await parts.letterbook.of(reading, says), reading, says, decides=decides)
        except TooManyError:
            await parts.refusals.note(Acceptance.LOOP, "too_many", says)
            await parts.refusals.alarm_loop(intake, says, parts.settings.answers_per_hour)
            return False
        envelope = envelope_of(
            reading, entry.thread, where, parts.services.name, self._own, self._commands, parts.services.escape
        )
        accepted = await intake.accept(envelope)
        if accepted is Acceptance.PAIRING:
            await parts.letterbook.keep_outside(entry)
        elif accepted not in _ANSWERED:
            await parts.letterbook.take_back(entry)
        return accepted in (Acceptance.ACCEPTED, Acceptance.DUPLICATE)

    def _refusal(self, mail: Mail, proof: Proof, *, stale: bool) -> tuple[Acceptance, str] | None:
        """Why a mail is not even shown to the inbox; None: nothing speaks against it."""
        if stale:
            return Acceptance.STALE, "stale"
        if (why := why_unanswered(mail, self._own)) is not None:
            return (Acceptance.OWN_MESSAGE if why == "own_mail" else Acceptance.LOOP), why
        if proof.address is None:
            return Acceptance.NOT_ALLOWED, proof.reason
        return None if names_us(mail, self._own) else (Acceptance.NOT_ADDRESSED, "not_named")

    async def _done_with(self, imap: Imap, folder: Folder, uid: int) -> None:
        """Mark a mail that is stored as read, or move it away. That it cannot be done costs nothing but the mark."""
        target = self._parts.settings.processed_folder
        try:
            if not target:
                await imap.mark_seen(uid)
                return
            try:
                await imap.move(uid, target)
            except ImapNoError as error:
                if error.code not in _MISSING:
                    raise
                await imap.create(target)
                await imap.move(uid, target)
        except ImapNoError as error:
            self._parts.services.log(
                "email.not_marked",
                level="warning",
                error=error,
                channel=self._parts.services.name,
                folder=folder.name,
                uid=uid,
            )


def _read(mail: Mail, raw: bytes) -> Reading:
    """Find what a mail says; it takes processor time, so it is done in a thread."""
    return Reading(mail=mail, spoken=spoken(mail.bodies, subject=mail.subject), fingerprint=fingerprint(mail, raw))
