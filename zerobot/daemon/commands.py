"""Carries out the commands of the chat, beside the queues: they act at once however busy the bot is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from zerobot.config.schema import AgentSettings
from zerobot.core.clock import Clock
from zerobot.core.envelope import Button, ButtonPress, InboundEnvelope
from zerobot.core.errors import ZerobotError
from zerobot.core.ids import ConversationId, ReplyId
from zerobot.core.log import EventLog
from zerobot.core.places import Identity, Place
from zerobot.daemon.access_state import DaemonAccess
from zerobot.daemon.chat_commands import COMMANDS, CommandLine, read_command_line
from zerobot.daemon.costs import Costs
from zerobot.daemon.desk import ApprovalDesk
from zerobot.daemon.dispatcher import Dispatcher
from zerobot.daemon.models import Models
from zerobot.providers.catalogue import cost_text
from zerobot.store.audit import Audit
from zerobot.store.conversations import Conversations
from zerobot.store.grants import Grants
from zerobot.store.inbox import Inbox, WaitingCommand
from zerobot.store.pairing import Pairings
from zerobot.store.turns import Turns
from zerobot.store.usage import UsageLog

USAGE_DAYS = 30
HELP = "Write to me as you would to a colleague. What I may do by myself I do; for the rest I ask an operator."
NOT_OPERATOR = "Only an operator can do that. Your id is `{who}`; operators are listed in `[operators] users`."
NEW = "We start afresh: I no longer see what was said here before."
DROPPED = " What still waited for an answer ({count}) I dropped with it; send it again if you still want it."
_DOING = {"running": "working", "paused": "waiting for an operator", "suspended": "about to go on"}
NOT_YOURS = "Only who asked for what I am doing, or an operator, can do that."


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandBooks:
    """The parts of the store that commands look into."""

    inbox: Inbox
    turns: Turns
    conversations: Conversations
    grants: Grants
    pairings: Pairings
    usage: UsageLog
    audit: Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWires:
    """What commands act on."""

    books: CommandBooks
    dispatcher: Dispatcher
    desk: ApprovalDesk
    access: DaemonAccess
    notice: Callable[[Place, str, str], Awaitable[object]]
    answered: Callable[[ReplyId], None]
    """The answer to a command is in the store, to be delivered."""
    models: Models
    costs: Costs
    agent_for: Callable[[str], AgentSettings]
    """The agent of a channel, by the channel's name."""
    clock: Clock
    log: EventLog


class ChatCommands:
    """Carries out commands; each answers with a notice in its chat."""

    def __init__(self, wires: CommandWires) -> None:
        self._wires = wires

    async def carry_out(self, waiting: WaitingCommand) -> None:
        """Carry out a stored command and mark it done. After a crash before that it is done again: all can be."""
        envelope = waiting.envelope
        line = read_command_line(envelope.text)
        if line is not None:
            text = await self._answer(line, envelope, waiting.conversation)
            reply = await self._wires.books.inbox.answer_command(waiting, text)
            if reply is not None:
                self._wires.answered(reply)
        else:
            await self._wires.books.inbox.command_done(waiting.id)

    async def _answer(self, line: CommandLine, envelope: InboundEnvelope, conversation: ConversationId) -> str:
        if line.command.operators_only and not self._is_operator(envelope):
            return NOT_OPERATOR.format(who=envelope.sender)
        handler = _HANDLERS[line.command.name]
        self._wires.log("command.received", command=line.command.name, conversation=conversation)
        try:
            return await handler(self, line.rest, envelope, conversation)
        except ZerobotError as error:
            self._wires.log("command.failed", level="warning", error=error, command=line.command.name)
            return error.user_text
        except Exception as error:  # noqa: BLE001 - a bug gets an answer too, and the command is not done for ever
            self._wires.log("command.crashed", level="error", error=error, command=line.command.name)
            return ZerobotError.user_text

    def _is_operator(self, envelope: InboundEnvelope) -> bool:
        return self._wires.desk.is_operator(envelope.sender, envelope.place)

    async def _may_steer(self, envelope: InboundEnvelope, conversation: ConversationId) -> bool:
        """In a group, what is under way belongs to whoever asked for it, and to operators."""
        if envelope.direct or self._is_operator(envelope):
            return True
        opened = await self._wires.books.turns.open_turn(conversation)
        return opened is None or opened.asker == envelope.sender

    async def _help(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        operator = self._is_operator(envelope)
        shown = [command for command in COMMANDS if operator or not command.operators_only]
        lines = "\n".join(f"- `/{command.name}`: {command.summary}" for command in shown)
        return f"{HELP}\n\n{lines}"

    async def _whoami(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        role = "an operator" if self._is_operator(envelope) else "a user"
        return f"You are `{envelope.sender}`, {role}. This place is `{envelope.place}`."

    async def _status(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        found = await self._wires.books.conversations.get(conversation)
        model = self._model_of(envelope.place.channel, found.model if found else "")
        waiting = await self._wires.books.inbox.waiting_count(conversation)
        opened = await self._wires.books.turns.open_turn(conversation)
        doing = _DOING[opened.state] if opened else "idle"
        lines = [f"I am {doing} here; {waiting} messages wait.", f"Model: `{model}`."]
        if self._wires.access.policy().frozen:
            lines.append("All tools are frozen by an operator.")
        return "\n\n".join(lines)

    async def _usage(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        now = self._wires.clock.now()
        since = now - timedelta(days=USAGE_DAYS)
        totals = await self._wires.books.usage.totals((), since=since, until=now, asker=envelope.sender)
        lines = [
            f"- `{each.model}`: {each.usage.input_tokens:,} tokens in, {each.usage.output_tokens:,} out, "
            f"{each.calls} calls, {cost_text(self._wires.costs.of_calls(each))}"
            for each in totals
        ]
        return f"Your last {USAGE_DAYS} days:\n\n" + ("\n".join(lines) or "nothing yet.")

    async def _stop(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        if not await self._may_steer(envelope, conversation):
            return NOT_YOURS
        stopped = await self._wires.dispatcher.stop(conversation)
        return "Stopping." if stopped else "There is nothing to stop."

    async def _new(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        if not await self._may_steer(envelope, conversation):
            return NOT_YOURS
        # First what waits, so that none of it begins in the new history; what runs already stays out of that by itself.
        dropped = await self._wires.books.inbox.cancel_waiting(conversation)
        await self._wires.books.conversations.reset(conversation)
        await self._wires.dispatcher.stop(conversation)
        return NEW + (DROPPED.format(count=dropped) if dropped else "")

    async def _approve(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        return await self._decide(Button.APPROVE, rest, envelope)

    async def _deny(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        return await self._decide(Button.DENY, rest, envelope)

    async def _decide(self, button: Button, rest: str, envelope: InboundEnvelope) -> str:
        code, _, reason = rest.partition(" ")
        if not code:
            return f"Which one? Write `/{button} CODE`, with the code that the request shows."
        press = ButtonPress(
            channel=envelope.place.channel,
            presser=envelope.sender,
            presser_name=envelope.sender_name,
            code=code,
            button=button,
            reason=reason.strip(),
            place=envelope.place,
        )
        return (await self._wires.desk.press(press)).text

    async def _pair(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        if rest:
            let_in = await self._wires.books.pairings.approve(rest, envelope.sender, self._wires.clock.now())
            if let_in is None:
                return "That code is wrong, used or too old; or too many wrong ones were typed lately."
            if let_in.chat:
                place = Place(let_in.channel, let_in.chat)
                await self._wires.notice(place, "You are in. Write to me whenever you like; /help says more.", "")
            return f"{let_in.name or let_in.identity} (`{let_in.identity}`) may talk to me now."
        known = await self._wires.books.pairings.list()
        lines = [
            f"- `{each.identity}` {each.name}: {each.state} on {each.channel} {each.code}".rstrip() for each in known
        ]
        return "\n".join(lines) or "Nobody has asked to be let in."

    async def _grants(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:
        words = rest.split()
        if len(words) == 2 and words[0] == "revoke" and words[1].isdecimal():
            gone = await self._wires.books.grants.revoke(int(words[1]), envelope.sender)
            return "Revoked." if gone else "There is no such grant."
        active = await self._wires.books.grants.active(conversation, self._wires.clock.now())
        lines = [
            f"- {g.id}: `{g.tool}` `{g.pattern or '*'}` until {g.expires_at[:10]}, by {g.granted_by}" for g in active
        ]
        return "\n".join(lines) or "Nothing is granted in this chat."

    async def _model(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:
        if rest and not self._wires.models.knows(rest):
            return (
                "I know no such provider. Write `/model PROVIDER/MODEL`, the provider being a table of `[providers]`."
            )
        if rest:
            await self._wires.books.conversations.set_model(conversation, rest)
        found = await self._wires.books.conversations.get(conversation)
        return f"Model: `{self._model_of(envelope.place.channel, found.model if found else '')}`."

    def _model_of(self, channel: str, chosen: str) -> str:
        return str(self._wires.models.route(self._wires.agent_for(channel), chosen).choices[0])

    async def _freeze(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        await self._throw(envelope.sender, frozen=True)
        return "Frozen: no tool runs until /unfreeze."

    async def _unfreeze(self, rest: str, envelope: InboundEnvelope, conversation: ConversationId) -> str:  # noqa: ARG002
        await self._throw(envelope.sender, frozen=False)
        return "Tools may run again, within their rules."

    async def _throw(self, by: Identity, *, frozen: bool) -> None:
        await self._wires.access.freeze(frozen=frozen)
        await self._wires.books.audit.note(str(by), "freeze" if frozen else "unfreeze", "tools")


Handler = Callable[[ChatCommands, str, InboundEnvelope, ConversationId], Awaitable[str]]
_HANDLERS: dict[str, Handler] = {
    "help": ChatCommands._help,  # noqa: SLF001 - its own table
    "new": ChatCommands._new,  # noqa: SLF001
    "stop": ChatCommands._stop,  # noqa: SLF001
    "status": ChatCommands._status,  # noqa: SLF001
    "usage": ChatCommands._usage,  # noqa: SLF001
    "whoami": ChatCommands._whoami,  # noqa: SLF001
    "approve": ChatCommands._approve,  # noqa: SLF001
    "deny": ChatCommands._deny,  # noqa: SLF001
    "pair": ChatCommands._pair,  # noqa: SLF001
    "grants": ChatCommands._grants,  # noqa: SLF001
    "model": ChatCommands._model,  # noqa: SLF001
    "freeze": ChatCommands._freeze,  # noqa: SLF001
    "unfreeze": ChatCommands._unfreeze,  # noqa: SLF001
}
