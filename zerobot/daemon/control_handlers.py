"""What the control socket can do in a running daemon: every operation of the shell, and attached terminals."""

from collections.abc import Mapping, Sequence

from zerobot.core.ids import ConversationId
from zerobot.core.places import Identity
from zerobot.core.terminal import TakesTerminals
from zerobot.daemon.control import Exchange, Handler
from zerobot.daemon.control_wire import ControlError, Params, Result
from zerobot.daemon.operations import Operation, Operations
from zerobot.daemon.parts import Parts
from zerobot.security.own_secrets import without_secrets
from zerobot.store.approvals import Decided
from zerobot.store.pairing import Pairing


class DaemonEffects:
    """What this daemon does about what an operation has stored. `operations.Effects`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def decided(self, decided: Decided) -> None:
        """The prompts are settled, and the turn goes on."""
        self._parts.wards.desk.decided_elsewhere(decided)

    async def let_in(self, pairing: Pairing) -> None:
        """Somebody was let in and is told so."""
        await self._parts.wards.doorbell.let_in(pairing)

    async def shut_out(self, person: Identity, channels: Sequence[str]) -> Sequence[str]:
        """What goes on for somebody who may not talk any more is ended."""
        return await self._parts.wards.door.shut_out(person, channels)

    async def reset(self, conversation: ConversationId) -> None:
        """What runs in the conversation is stopped."""
        await self._parts.dispatcher.stop(conversation)

    async def freeze(self, *, frozen: bool) -> None:
        """The switch holds from now on, and the chats are told."""
        await self._parts.wards.emergency.throw(frozen=frozen)


def control_handlers(parts: Parts) -> dict[str, Handler]:
    """The methods of the control socket by name."""
    foundation = parts.foundation
    operations = Operations(
        database=foundation.database,
        effects=DaemonEffects(parts),
        costs=parts.costs,
        clean=without_secrets(foundation.redactor, foundation.own_secrets),
        receipt_key=foundation.state.receipt_key,
        clock=foundation.clock,
    )
    handlers = {name: _handler(operation) for name, operation in operations.table().items()}

    async def chat(params: Params, exchange: Exchange) -> Result:  # noqa: ARG001 - a terminal brings nothing but itself
        for each in foundation.channels.values():
            if isinstance(each.channel, TakesTerminals):
                await each.channel.attach(exchange)
                return {}
        raise ControlError("refused", "this daemon serves no terminals")

    async def health(params: Params, exchange: Exchange) -> Result:  # noqa: ARG001
        states: Mapping[str, object] = parts.supervisor.health()
        workspace = str(foundation.config.workspace)
        return {"channels": states, "turns": parts.dispatcher.running, "workspace": workspace}

    return {**handlers, "chat.open": chat, "health": health}


def _handler(operation: Operation) -> Handler:
    async def handle(params: Params, exchange: Exchange) -> Result:
        return await operation(params, exchange.send)

    return handle
