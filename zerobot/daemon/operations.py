"""What operators do from the shell: the same functions, in a running daemon for the control socket, or without one.

Each takes and gives plain JSON values. The person at the shell can read and write the state directory, so he counts as
an operator; what he does is on record as done by `cli:local`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from zerobot.core.approvals import ApprovalState
from zerobot.core.budget import Payer, Scope
from zerobot.core.clock import Clock
from zerobot.core.errors import ZerobotError
from zerobot.core.ids import ApprovalId, ConversationId, TurnId
from zerobot.core.places import Identity
from zerobot.daemon.access_state import FROZEN
from zerobot.daemon.budget import reservations_of, standing
from zerobot.daemon.control_wire import Params, Result
from zerobot.daemon.costs import Costs
from zerobot.daemon.operation_forms import (
    approval_form,
    entry_form,
    flag_of,
    grant_form,
    number_of,
    odd_request,
    pairing_form,
    session_form,
    text_of,
    usage_form,
    what_happened,
)
from zerobot.daemon.receipts import check_receipt
from zerobot.daemon.routing import CLI
from zerobot.memory.operations import MemoryOperations
from zerobot.providers.catalogue import cost_text
from zerobot.store.approvals import Approvals, Decided
from zerobot.store.audit import Audit, AuditFilter
from zerobot.store.backup import backup
from zerobot.store.channel_state import DAEMON, StoredChannelState
from zerobot.store.conversations import Conversations, ConversationSummary
from zerobot.store.database import Database
from zerobot.store.grants import Grants
from zerobot.store.memory import SqliteMemory
from zerobot.store.pairing import Pairing, Pairings
from zerobot.store.usage import UsageBy, UsageFilter, UsageLog, UsageTotal

MOST_DAYS = 36_500
"""How far back one can ask."""

SendItem = Callable[[Mapping[str, object]], Awaitable[None]]
Operation = Callable[[Params, SendItem], Awaitable[Result]]
"""One operation; what may be long is sent item by item before the result."""


class OperationError(ZerobotError):
    """It cannot be done; `str(error)` says why, for the person who asked."""


class Effects(Protocol):
    """What a running daemon does about what an operation has stored. Without one, the next start does it."""

    async def decided(self, decided: Decided) -> None:
        """An approval was decided: its prompts are settled, and its turn goes on."""
        ...

    async def let_in(self, pairing: Pairing) -> None:
        """Somebody was paired and is told so."""
        ...

    async def shut_out(self, person: Identity, channels: Sequence[str]) -> Sequence[str]:
        """Somebody was shut out: what goes on for him is ended, but on the channels where the settings let him in."""
        ...

    async def reset(self, conversation: ConversationId) -> None:
        """A conversation starts afresh: what runs in it is stopped."""
        ...

    async def freeze(self, *, frozen: bool) -> None:
        """Throw the freeze switch and store it: a freeze holds at once, even if that fails.

        Raises:
            StorageError: It is not on record.
        """
        ...


class NoEffects:
    """The effects where no daemon runs.

    Args:
        database: Where the next start reads the freeze switch.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def decided(self, decided: Decided) -> None:
        """The next start takes the turn up."""

    async def let_in(self, pairing: Pairing) -> None:
        """The person sees it when he writes next."""

    async def shut_out(self, person: Identity, channels: Sequence[str]) -> Sequence[str]:  # noqa: ARG002
        """Nothing runs; the next start asks who may talk before it goes on with anything."""
        return ()

    async def reset(self, conversation: ConversationId) -> None:
        """Nothing runs."""

    async def freeze(self, *, frozen: bool) -> None:
        """The next start reads the switch."""
        await StoredChannelState(self._database, DAEMON).set(FROZEN, "yes" if frozen else "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """The operations on one state directory."""

    database: Database
    effects: Effects
    costs: Costs
    clean: Callable[[str], str]
    """Takes secrets out of a text; the daemon's own are told by their keys."""
    receipt_key: Callable[[], bytes]
    clock: Clock

    def table(self) -> dict[str, Operation]:
        """The operations by the names under which they are asked for."""
        at_once = {
            "status": self._status,
            "approvals.list": self._approvals,
            "approvals.decide": self._decide,
            "pair.list": self._pairings,
            "pair.approve": self._pair,
            "pair.revoke": self._unpair,
            "sessions.list": self._sessions,
            "sessions.reset": self._reset,
            "grants.list": self._grants,
            "grants.revoke": self._revoke,
            "memory.list": self._memories,
            "memory.search": self._search_memory,
            "memory.forget": self._forget,
            "memory.restore": self._restore,
            "memory.add": self._remember,
            "usage": self._usage,
            "audit": self._audit,
            "receipt": self._receipt,
            "freeze": self._freeze,
            "backup": self._backup,
        }
        by_items: dict[str, Operation] = {"sessions.show": self._session, "sessions.export": self._export}
        return {name: _at_once(work) for name, work in at_once.items()} | by_items

    async def _status(self, params: Params) -> Result:  # noqa: ARG002 - one signature for all
        frozen = await StoredChannelState(self.database, DAEMON).get(FROZEN) == "yes"
        return {"version": version("zerobot"), "frozen": frozen, "budget": await self._budget()}

    async def _budget(self) -> list[Mapping[str, str]]:
        """How the limit of the day stands, if there is one; those of persons and turns are theirs to ask for."""
        reservations = reservations_of(self.costs, self.database, self.clock)
        if reservations is None:
            return []
        nobody = Payer(turn=TurnId(""), conversation=ConversationId(0), channel="", asker=CLI)
        return [standing(each) for each in await reservations.spendings(nobody) if each.scope is Scope.DAY]

    async def _approvals(self, params: Params) -> Result:  # noqa: ARG002
        now = self.clock.now()
        pending = await Approvals(self.database, self.clock).pending()
        return {"approvals": [approval_form(each, self.clean) for each in pending if each.expires_at > now]}

    async def _decide(self, params: Params) -> Result:
        approvals = Approvals(self.database, self.clock)
        ident, approve = text_of(params, "id"), flag_of(params, "approve")
        reason = text_of(params, "reason", default="")
        found = await approvals.by_code(ident) or await approvals.get(ApprovalId(ident))
        if found is None:
            raise OperationError(f"there is no approval {ident}; see: zerobot approvals list")
        state = ApprovalState.APPROVED if approve else ApprovalState.DENIED
        decided = await approvals.decide(found.id, state, CLI, "", reason, self.clock.now())
        if decided is None or not decided.won:
            raise OperationError(f"too late: {what_happened(found if decided is None else decided.approval)}")
        await self.effects.decided(decided)
        return {"state": decided.approval.state.value, "tool": found.tool, "code": found.code}

    async def _pairings(self, params: Params) -> Result:  # noqa: ARG002
        pairings = Pairings(self.database, self.clock)
        handles = [
            {"channel": each.channel, "handle": each.handle, "identity": str(each.identity)}
            for each in await pairings.handles()
        ]
        return {"pairings": [pairing_form(each) for each in await pairings.list()], "handles": handles}

    async def _pair(self, params: Params) -> Result:
        pairing = await Pairings(self.database, self.clock).approve(text_of(params, "code"), CLI, self.clock.now())
        if pairing is None:
            raise OperationError(
                "that code is wrong, used or older than an hour, or too many wrong ones were typed lately; "
                "see: zerobot pair list"
            )
        await self.effects.let_in(pairing)
        return pairing_form(pairing)

    async def _unpair(self, params: Params) -> Result:
        text = text_of(params, "identity")
        try:
            identity = Identity.parse(text)
        except ValueError as error:
            raise odd_request(str(error)) from None
        channels = await Pairings(self.database, self.clock).revoke(identity, CLI)
        still = await self.effects.shut_out(identity, channels)
        if not channels:
            raise OperationError(f"{identity} was not let in by pairing or by a name; see: zerobot pair list")
        return {"identity": str(identity), "channels": channels, "still_in": list(still)}

    async def _sessions(self, params: Params) -> Result:  # noqa: ARG002
        return {"sessions": [session_form(each) for each in await Conversations(self.database).list()]}

    async def _session(self, params: Params, send: SendItem) -> Result:
        """A conversation and the last of what was said in it, each message an item."""
        last = number_of(params, "last", default=20)
        found = await self._find(params)
        for message in await Conversations(self.database).export(found.conversation.id, last):
            await send(message)
        return session_form(found)

    async def _export(self, params: Params, send: SendItem) -> Result:
        """All that was said in a conversation, each message an item."""
        found = await self._find(params)
        for message in await Conversations(self.database).export(found.conversation.id):
            await send(message)
        return session_form(found)

    async def _reset(self, params: Params) -> Result:
        found = await self._find(params)
        conversation = found.conversation.id
        await Conversations(self.database).reset(conversation)
        await Audit(self.database, self.clock).note(str(CLI), "session.reset", str(conversation))
        await self.effects.reset(conversation)
        return session_form(found)

    async def _find(self, params: Params) -> ConversationSummary:
        """The conversation that is meant: by its id, or by its chat as the list shows it, if that has only one."""
        conversations = Conversations(self.database)
        chat = params.get("chat")
        if isinstance(chat, str):
            found = [each for each in await conversations.list() if str(each.conversation.key.place) == chat]
            if len(found) > 1:
                ids = ", ".join(str(each.conversation.id) for each in found)
                raise OperationError(f"{chat} has several conversations; name one by its id: {ids}")
        else:
            ident = number_of(params, "id")
            found = await conversations.list(ConversationId(ident))
            chat = str(ident)
        if not found:
            raise OperationError(f"there is no conversation {chat}; see: zerobot sessions list")
        return found[0]

    async def _grants(self, params: Params) -> Result:  # noqa: ARG002
        now = self.clock.now()
        records = await Grants(self.database, self.clock).list()
        active = [each for each in records if each.revoked_at is None and each.expires_at > now]
        return {"grants": [grant_form(each) for each in active]}

    async def _revoke(self, params: Params) -> Result:
        ident = number_of(params, "id")
        if not await Grants(self.database, self.clock).revoke(ident, CLI):
            raise OperationError(f"there is no grant {ident}, or it is revoked; see: zerobot grants list")
        return {"id": ident}

    @property
    def _memory(self) -> MemoryOperations:
        """What is remembered can be seen and deleted also while memory is switched off."""
        backend = SqliteMemory(self.database, self.clock)
        return MemoryOperations(backend=backend, audit=Audit(self.database, self.clock))

    async def _memories(self, params: Params) -> Result:
        owner, superseded = text_of(params, "owner", default=""), flag_of(params, "all", default=False)
        return {"memories": list(await self._memory.list(owner, superseded=superseded))}

    async def _search_memory(self, params: Params) -> Result:
        found = await self._memory.search(text_of(params, "text"), text_of(params, "owner", default=""))
        return {"memories": list(found)}

    async def _forget(self, params: Params) -> Result:
        return await self._memory.forget(number_of(params, "id"), CLI)

    async def _restore(self, params: Params) -> Result:
        return await self._memory.restore(number_of(params, "id"), CLI)

    async def _remember(self, params: Params) -> Result:
        owner, key, text = (text_of(params, name) for name in ("owner", "key", "text"))
        return await self._memory.add(owner, key, text, CLI)

    async def _usage(self, params: Params) -> Result:
        names = params.get("by", [])
        if not isinstance(names, list) or any(name not in set(UsageBy) for name in names):
            raise odd_request(f"usage goes by: {', '.join(UsageBy)}")
        now = self.clock.now()
        since = now - timedelta(days=number_of(params, "days", default=30, most=MOST_DAYS))
        by = [UsageBy(name) for name in names]
        totals = await UsageLog(self.database).totals(by, UsageFilter(since=since, until=now))
        return {
            "since": since.isoformat(timespec="seconds"),
            "by": names,
            "budget": await self._budget(),
            "totals": [self._total(by, each) for each in totals],
        }

    def _total(self, by: list[UsageBy], calls: UsageTotal) -> dict[str, object]:
        return {**usage_form(by, calls), "cost": cost_text(self.costs.of_calls(calls))}

    async def _audit(self, params: Params) -> Result:
        days = number_of(params, "days", default=MOST_DAYS, most=MOST_DAYS)
        only = AuditFilter(
            who=text_of(params, "who", default=""),
            action=text_of(params, "did", default=""),
            since=self.clock.now() - timedelta(days=days),
        )
        found = await Audit(self.database, self.clock).latest(number_of(params, "limit", default=50), only)
        return {"entries": [entry_form(each) for each in found]}

    async def _receipt(self, params: Params) -> Result:
        return await check_receipt(self.database, self.receipt_key, text_of(params, "receipt"))

    async def _freeze(self, params: Params) -> Result:
        frozen = flag_of(params, "frozen")
        await self.effects.freeze(frozen=frozen)
        await Audit(self.database, self.clock).note(str(CLI), "freeze" if frozen else "unfreeze", "tools")
        return {"frozen": frozen}

    async def _backup(self, params: Params) -> Result:
        path = Path(text_of(params, "path"))
        if not path.is_absolute():
            raise odd_request(f"{path} is no absolute path")
        return {"path": str(path), "bytes": await backup(self.database, path)}


def _at_once(work: Callable[[Params], Awaitable[Result]]) -> Operation:
    """An operation that has nothing to send before its result."""

    async def operation(params: Params, send: SendItem) -> Result:  # noqa: ARG001 - the shape of the others
        return await work(params)

    return operation
