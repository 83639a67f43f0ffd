"""Carries out the commands of the chat, beside the queues: they act at once however busy the bot is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from zerobot.config.schema import AgentSettings
from zerobot.core.budget import Payer
from zerobot.core.channel import ChatCommand
from zerobot.core.clock import Clock
from zerobot.core.command_text import with_prefix
from zerobot.core.envelope import Button, ButtonPress, InboundEnvelope
from zerobot.core.errors import ZerobotError
from zerobot.core.ids import ConversationId, InboxId, ReplyId, TurnId
from zerobot.core.log import EventLog
from zerobot.core.memory import MemoryBackend
from zerobot.core.places import Identity
from zerobot.daemon.access_state import DaemonAccess
from zerobot.daemon.books import Books
from zerobot.daemon.budget import left_text
from zerobot.daemon.chat_commands import COMMANDS, read_command_line, refusal
from zerobot.daemon.costs import Costs
from zerobot.daemon.dispatcher import Dispatcher
from zerobot.daemon.kits import KitMaker
from zerobot.daemon.memory_command import memory_command
from zerobot.daemon.models import Models
from zerobot.daemon.wards import Wards
from zerobot.providers.catalogue import cost_text
from zerobot.security.access import grant_text
from zerobot.security.pairing_prompt import MAX_NAME
from zerobot.security.visible import as_code
from zerobot.store.inbox import WaitingCommand
from zerobot.store.pairing import Pairing
from zerobot.store.reservations import Reservations
from zerobot.store.usage import UsageFilter
from zerobot.turn.summary import compact

USAGE_DAYS = 30
HELP = "Write to me as you would to a colleague. What I may do by myself I do; for the rest I ask an operator."
NOT_OPERATOR = "Only an operator can do that. Your id is `{who}`; operators are listed in `[operators] users`."
NEW = "We start afresh: I no longer see what was said here before."
DROPPED = " What still waited for an answer ({count}) I dropped with it; send it again if you still want it."
_DOING = {"running": "working", "paused": "waiting for an operator", "suspended": "about to go on"}
STILL_IN = "The settings still let `{who}` in on {channels}, by `allowed_users` or as an operator."
NO_PROVIDER = "I know no such provider. Write `/model PROVIDER/MODEL`, the provider being a table of `[providers]`."
NOT_YOURS = "Only who asked for what I am doing, or an operator, can do that."


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWires:
    """What commands act on."""

    books: Books
    dispatcher: Dispatcher
    access: DaemonAccess
    wards: Wards
    answered: Callable[[ReplyId], None]
    """The answer to a command is in the store, to be delivered."""
    models: Models
    kits: KitMaker
    memory: MemoryBackend | None
    """None: it is switched off."""
    costs: Costs
    budget: Reservations | None
    """None: no spending limit is set."""
    command_prefix: Callable[[str], str]
    """What our texts name commands by on a channel."""
    agent_for: Callable[[str], AgentSettings]
    """The agent of a channel, by the channel's name."""
    clock: Clock
    log: EventLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command on its way."""

    id: InboxId
    envelope: InboundEnvelope
    conversation: ConversationId
    rest: str
    """What follows the command's name."""
    prefix: str
    """What commands begin with here."""


class ChatCommands:
    """Carries out commands; each answers with a notice in its chat."""

    def __init__(self, wires: CommandWires) -> None:
        self._wires = wires
        self._handlers: dict[str, Callable[[Asked], Awaitable[str]]] = {
            "help": self._help,
            "new": self._new,
            "compact": self._compact,
            "memory": self._memory,
            "stop": self._stop,
            "status": self._status,
            "usage": self._usage,
            "whoami": self._whoami,
            "approve": self._approve,
            "deny": self._deny,
            "pair": self._pair,
            "grants": self._grants,
            "model": self._model,
            "freeze": self._freeze,
            "unfreeze": self._unfreeze,
        }
        assert self._handlers.keys() == {command.name for command in COMMANDS}, "each command has its handler"

    async def carry_out(self, waiting: WaitingCommand) -> None:
        """Carry out a stored command and mark it done. After a crash before that it is done again: all can be."""
        envelope = waiting.envelope
        line = read_command_line(envelope.text)
        if line is not None and await self._wires.wards.door.welcome(envelope.sender, envelope.place.channel):
            prefix = self._wires.command_prefix(envelope.place.channel)
            asked = Asked(
                id=waiting.id, envelope=envelope, conversation=waiting.conversation, rest=line.rest, prefix=prefix
            )
            text = with_prefix(refusal(line), prefix) or await self._answer(line.command, asked)
            reply = await self._wires.books.inbox.answer_command(waiting, text)
            if reply is not None:
                self._wires.answered(reply)
        else:
            await self._wires.books.inbox.command_done(waiting.id)

    async def _answer(self, command: ChatCommand, asked: Asked) -> str:
        if command.operators_only and not self._is_operator(asked.envelope):
            return NOT_OPERATOR.format(who=asked.envelope.sender)
        self._wires.log("command.received", command=command.name, conversation=asked.conversation)
        try:
            return await self._handlers[command.name](asked)
        except ZerobotError as error:
            self._wires.log("command.failed", level="warning", error=error, command=command.name)
            return with_prefix(error.user_text, asked.prefix)
        except Exception as error:  # noqa: BLE001 - a bug gets an answer too, and the command is not done for ever
            self._wires.log("command.crashed", level="error", error=error, command=command.name)
            return ZerobotError.user_text

    def _is_operator(self, envelope: InboundEnvelope) -> bool:
        return self._wires.wards.desk.is_operator(envelope.sender, envelope.place)

    async def _may_steer(self, asked: Asked) -> bool:
        """In a group, what is under way belongs to whoever asked for it, and to operators."""
        if asked.envelope.direct or self._is_operator(asked.envelope):
            return True
        opened = await self._wires.books.turns.open_turn(asked.conversation)
        return opened is None or opened.asker == asked.envelope.sender

    async def _help(self, asked: Asked) -> str:
        operator = self._is_operator(asked.envelope)
        shown = [command for command in COMMANDS if operator or not command.operators_only]
        lines = "\n".join(f"- `/{command.name}`: {command.summary}" for command in shown)
        return with_prefix(f"{HELP}\n\n{lines}", asked.prefix)

    async def _whoami(self, asked: Asked) -> str:
        role = "an operator" if self._is_operator(asked.envelope) else "a user"
        return f"You are `{asked.envelope.sender}`, {role}. This place is `{asked.envelope.place}`."

    async def _status(self, asked: Asked) -> str:
        found = await self._wires.books.conversations.get(asked.conversation)
        model = self._model_of(asked.envelope.place.channel, found.model if found else "")
        waiting = await self._wires.books.inbox.waiting_count(asked.conversation)
        opened = await self._wires.books.turns.open_turn(asked.conversation)
        doing = _DOING[opened.state] if opened else "idle"
        lines = [f"I am {doing} here; {waiting} messages wait.", f"Model: `{model}`."]
        if self._wires.access.policy().frozen:
            lines.append("All tools are frozen by an operator.")
        return "\n\n".join(lines)

    async def _usage(self, asked: Asked) -> str:
        now = self._wires.clock.now()
        own = UsageFilter(since=now - timedelta(days=USAGE_DAYS), until=now, asker=asked.envelope.sender)
        totals = await self._wires.books.usage.totals((), own)
        lines = [
            f"- `{each.model}`: {each.usage.input_tokens:,} tokens in, {each.usage.output_tokens:,} out, "
            f"{each.calls} calls, {cost_text(self._wires.costs.of_calls(each))}"
            for each in totals
        ]
        told = f"Your last {USAGE_DAYS} days:\n\n" + ("\n".join(lines) or "nothing yet.")
        return "\n\n".join([told, *await self._left(asked)])

    async def _left(self, asked: Asked) -> list[str]:
        """How the limits of this day stand for whoever asks, a paragraph each."""
        if self._wires.budget is None:
            return []
        payer = _payer(asked)
        return [left_text(each) for each in await self._wires.budget.spendings(payer)]

    async def _stop(self, asked: Asked) -> str:
        if not await self._may_steer(asked):
            return NOT_YOURS
        if await self._wires.dispatcher.stop(asked.conversation, before=asked.id):
            return "Stopping."
        if await self._wires.books.inbox.cancel_next(asked.conversation, before=asked.id):
            return "Stopped before I began."
        # It may have begun just between the two.
        stopped = await self._wires.dispatcher.stop(asked.conversation, before=asked.id)
        return "Stopping." if stopped else "There is nothing to stop."

    async def _new(self, asked: Asked) -> str:
        if not await self._may_steer(asked):
            return NOT_YOURS
        dropped = await self._wires.books.conversations.reset(asked.conversation, before=asked.id)
        await self._wires.dispatcher.stop(asked.conversation, before=asked.id)
        return NEW + (DROPPED.format(count=dropped) if dropped else "")

    async def _compact(self, asked: Asked) -> str:
        if not await self._may_steer(asked):
            return NOT_YOURS
        if await self._wires.books.turns.open_turn(asked.conversation) is not None:
            return "I am at work here; please ask for it when I am done."
        found = await self._wires.books.conversations.get(asked.conversation)
        channel = asked.envelope.place.channel
        kit = self._wires.kits.kit_at(channel, found.model if found else "")
        count = await compact(kit, _payer(asked))
        return f"{count} messages are summed up now." if count else "There is nothing to sum up yet."

    async def _memory(self, asked: Asked) -> str:
        return await memory_command(self._wires.memory, asked.envelope, asked.conversation, asked.rest, asked.prefix)

    async def _approve(self, asked: Asked) -> str:
        return await self._decide(Button.APPROVE, asked)

    async def _deny(self, asked: Asked) -> str:
        return await self._decide(Button.DENY, asked)

    async def _decide(self, button: Button, asked: Asked) -> str:
        envelope = asked.envelope
        code, _, reason = asked.rest.partition(" ")
        if not code:
            return f"Which one? Write `{asked.prefix}{button} CODE`, with the code that the request shows."
        always = button is Button.APPROVE and reason.strip().lower() == Button.ALWAYS
        press = ButtonPress(
            channel=envelope.place.channel,
            presser=envelope.sender,
            presser_name=envelope.sender_name,
            code=code,
            button=Button.ALWAYS if always else button,
            reason="" if always else reason.strip(),
            place=envelope.place,
        )
        return (await self._wires.wards.press(press)).text

    async def _pair(self, asked: Asked) -> str:
        word, _, who = asked.rest.partition(" ")
        if word == "revoke" and who:
            return await self._shut_out(who.strip(), asked.envelope.sender)
        if asked.rest:
            let_in = await self._wires.books.pairings.approve(
                asked.rest, asked.envelope.sender, self._wires.clock.now()
            )
            if let_in is None:
                return "That code is wrong, used or too old; or too many wrong ones were typed lately."
            await self._wires.wards.doorbell.let_in(let_in)
            return f"{_person(let_in)} may talk to me now."
        known = await self._wires.books.pairings.list()
        lines = [f"- {_person(each)}: {each.state} on {each.channel} {each.code}".rstrip() for each in known]
        return "\n".join(lines) or "Nobody has asked to be let in."

    async def _shut_out(self, who: str, by: Identity) -> str:
        try:
            person = Identity.parse(who)
        except ValueError as error:
            return f"That is no id: {error}"
        channels = await self._wires.books.pairings.revoke(person, by)
        still = await self._wires.wards.door.shut_out(person, channels)
        if not channels:
            return f"`{person}` was not let in by pairing or by a name; the lists in the settings decide about them."
        if still:
            return STILL_IN.format(who=person, channels=", ".join(still))
        return f"`{person}` may no longer talk to me."

    async def _grants(self, asked: Asked) -> str:
        words = asked.rest.split()
        if len(words) == 2 and words[0] == "revoke" and words[1].isdecimal():
            # A longer number is none that the store could look for.
            gone = len(words[1]) < 19 and await self._wires.books.grants.revoke(int(words[1]), asked.envelope.sender)
            return "Revoked." if gone else "There is no such grant."
        active = await self._wires.books.grants.active(asked.conversation, self._wires.clock.now())
        lines = [
            f"- {g.id}: {as_code(grant_text(g.tool, g.pattern))} until {g.expires_at[:10]}, by {g.granted_by}"
            for g in active
        ]
        return "\n".join(lines) or "Nothing is granted in this chat."

    async def _model(self, asked: Asked) -> str:
        if asked.rest and not self._wires.models.knows(asked.rest):
            return with_prefix(NO_PROVIDER, asked.prefix)
        if asked.rest:
            await self._wires.books.conversations.set_model(asked.conversation, asked.rest)
        found = await self._wires.books.conversations.get(asked.conversation)
        return f"Model: `{self._model_of(asked.envelope.place.channel, found.model if found else '')}`."

    def _model_of(self, channel: str, chosen: str) -> str:
        return str(self._wires.models.route(self._wires.agent_for(channel), chosen).choices[0])

    async def _freeze(self, asked: Asked) -> str:
        await self._throw(asked.envelope, frozen=True)
        return f"Frozen: no tool runs until {asked.prefix}unfreeze."

    async def _unfreeze(self, asked: Asked) -> str:
        await self._throw(asked.envelope, frozen=False)
        return "Tools may run again, within their rules."

    async def _throw(self, envelope: InboundEnvelope, *, frozen: bool) -> None:
        await self._wires.wards.emergency.throw(frozen=frozen, here=envelope.place)
        await self._wires.books.audit.note(str(envelope.sender), "freeze" if frozen else "unfreeze", "tools")


def _person(pairing: Pairing) -> str:
    """Somebody for operators: the id, and the name that he has chosen."""
    name = f" {as_code(pairing.name[:MAX_NAME])}" if pairing.name else ""
    return f"{as_code(str(pairing.identity))}{name}"


def _payer(asked: Asked) -> Payer:
    """On whose account goes what belongs to no turn."""
    envelope = asked.envelope
    return Payer(
        turn=TurnId(""), conversation=asked.conversation, channel=envelope.place.channel, asker=envelope.sender
    )
