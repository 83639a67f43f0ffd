"""The command `/memory`: people see, export, correct and delete what is remembered about them."""

from collections.abc import Sequence

from zerobot.core.command_text import USUAL_PREFIX, with_prefix
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.ids import ConversationId
from zerobot.core.memory import MemoryBackend, MemoryEntry, MemoryOwner, MemorySource, NewMemory
from zerobot.memory.markers import poses

SHOWN = 50
"""Entries that are listed; `/memory export` has them all."""
EXPORTED = 10_000

NOTHING = "I remember nothing here yet."
NO_SUCH = "I remember nothing of yours under that number."
HOW = "`/memory` lists it, `/memory export` tells all of it, `/memory correct NUMBER TEXT`, `/memory forget NUMBER`."


async def memory_command(
    memory: MemoryBackend | None,
    envelope: InboundEnvelope,
    conversation: ConversationId,
    rest: str,
    command_prefix: str = USUAL_PREFIX,
) -> str:
    """Carry it out; returns the answer (Markdown).

    A person's own entries are spoken of only where nobody else reads along.

    Args:
        memory: What is remembered; None: memory is switched off.
        envelope: Who asks, and where.
        conversation: The row of that place.
        rest: What stands behind the command.
        command_prefix: What commands begin with there.
    """
    if memory is None:
        return "I keep no memory here; it is switched off."
    here = MemoryOwner.conversation(conversation)
    owners = (MemoryOwner.person(envelope.sender), here) if envelope.direct else (here,)
    word, _, more = rest.partition(" ")
    number, _, text = more.strip().partition(" ")
    match word:
        case "":
            return _listed(await memory.list(owners, SHOWN), command_prefix)
        case "export":
            return _exported(await memory.list(owners, EXPORTED))
        case "forget" if number.isdecimal() and not text:
            return "Forgotten." if await memory.forget(owners, int(number)) else NO_SUCH
        case "correct" if number.isdecimal() and text.strip():
            return await _correct(memory, owners, int(number), text.strip(), envelope)
        case _:
            return with_prefix(HOW, command_prefix)


async def _correct(
    memory: MemoryBackend, owners: Sequence[MemoryOwner], number: int, text: str, envelope: InboundEnvelope
) -> str:
    entry = next((each for each in await memory.list(owners, EXPORTED) if each.id == number), None)
    if entry is None:
        return NO_SUCH
    if poses(text):
        return "That text has a marker of the model's protocol in it, so it would never be shown; nothing was changed."
    new = NewMemory(
        owner=entry.owner,
        key=entry.key,
        text=text,
        kind=entry.kind,
        source=MemorySource.SAID,
        written_by=envelope.sender,
        conversation=entry.conversation,
    )
    stored = await memory.remember(new)
    return f"Corrected; it is number {stored.entry.id} now."


def _listed(entries: Sequence[MemoryEntry], command_prefix: str) -> str:
    lines = [f"- {entry.id}: **{entry.key}**: {entry.text}" for entry in entries]
    if len(entries) == SHOWN:
        lines.append(f"\nThese are the newest {SHOWN}; `{command_prefix}memory export` tells all.")
    return "\n".join(lines) or NOTHING


def _exported(entries: Sequence[MemoryEntry]) -> str:
    """All of it, with where it comes from and since when."""
    lines = [
        f"- {entry.id} (since {entry.created_at:%Y-%m-%d}, {entry.source.value}, by {entry.written_by}): "
        f"**{entry.key}**: {entry.text}"
        for entry in entries
    ]
    return "\n".join(lines) or NOTHING
