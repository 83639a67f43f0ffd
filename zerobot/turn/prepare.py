"""Before a step: the input's files and memory, the window of history, and the request that is made of them."""

from collections.abc import Sequence
from dataclasses import replace

from zerobot.core.messages import Message, StoredFile, UserMessage
from zerobot.core.model import ModelRequest, ToolSpec
from zerobot.memory.block import NO_BLOCK, MemoryBlock
from zerobot.memory.policy import rule_of
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.kit import TurnKit
from zerobot.turn.pictures import pictures, without_pictures
from zerobot.turn.receipts import sign_stored
from zerobot.turn.transcript import Transcript
from zerobot.turn.window import layout, moved_window

NO_TEXT = "(no text)"


async def load_transcript(kit: TurnKit, turn: Turn, transcript: Transcript) -> None:
    """Load the conversation as this turn sees it, and move the window when it has grown to its bound."""
    history = await kit.turns.history(turn)
    if await sign_stored(kit, turn, history.messages):
        history = await kit.turns.history(turn)
    earlier = history.earlier
    moved = moved_window(history.messages, earlier, kit.limits.history_messages, kit.compaction.head)
    if moved is not None and await kit.summaries.save(turn.conversation, earlier, moved):
        earlier = moved
    transcript.load(history.messages, earlier)
    transcript.outside_content = turn.outside_content


async def prepare_inputs(kit: TurnKit, turn: Turn, transcript: Transcript, *, seen: bool) -> None:
    """Give each input that the model has not answered what belongs to it: its files, and what is remembered that fits.

    Args:
        kit: What the turn works with.
        turn: Whose inputs.
        transcript: Takes what was stored.
        seen: Whether the model may have been asked with them. Nothing is remembered then that was not before: what was
            sent once is sent again unchanged.
    """
    for message in transcript.unanswered(turn.id):
        fetched = await fetch_files(kit, turn, transcript, message)
        if not seen:
            await recall_memory(kit, turn, transcript, fetched)


async def recall_memory(kit: TurnKit, turn: Turn, transcript: Transcript, message: UserMessage) -> None:
    """Put what is remembered before an input, and keep it with it."""
    if message.memory or not rule_of(turn.origin).injects:
        return
    recalled = await _recalled(kit, turn, message.text)
    if not recalled.text:
        return
    if recalled.outside_content:
        await kit.turns.finish_calls(turn, (), outside_content=True)
        transcript.outside_content = True
    await _keep(kit, transcript, replace(message, memory=recalled.text))


async def _recalled(kit: TurnKit, turn: Turn, text: str) -> MemoryBlock:
    try:
        return await kit.recall(turn, text)
    # Memory may be somebody else's package: whatever it raises, an answer without it is better than none.
    except Exception as error:  # noqa: BLE001
        kit.log("memory.failed", level="warning", error=error)
        return NO_BLOCK


async def fetch_files(kit: TurnKit, turn: Turn, transcript: Transcript, message: UserMessage) -> UserMessage:
    """Fetch what was attached to an input, once; what could not be had is told to the model in words."""
    if message.files or message.note:
        return message
    envelopes = await kit.turns.envelopes(message)
    attachments = [attachment for envelope in envelopes for attachment in envelope.attachments]
    if not attachments:
        return message
    fetched = [await kit.fetch(turn, attachment) for attachment in attachments]
    files = tuple(file for file in fetched if isinstance(file, StoredFile))
    note = "\n".join(file for file in fetched if isinstance(file, str))
    return await _keep(kit, transcript, replace(message, files=files, note=note))


async def _keep(kit: TurnKit, transcript: Transcript, message: UserMessage) -> UserMessage:
    await kit.turns.set_input(message)
    transcript.replace(message)
    return message


def sent_messages(kit: TurnKit, transcript: Transcript) -> Sequence[Message]:
    """What of the conversation the models read; pictures count for nothing where none of them can see."""
    messages = layout(transcript.messages, transcript.earlier)
    return messages if kit.route.sees else without_pictures(messages, {file.digest for file in pictures(messages)})


def request_of(kit: TurnKit, transcript: Transcript, *, closing: bool = False) -> ModelRequest:
    """The request for the next step. Without tools, and with a word about it, when it is the closing one."""
    messages = [_sendable(message) for message in sent_messages(kit, transcript)]
    tools = [
        ToolSpec(name=tool.name, description=tool.description, parameters=tool.parameters)
        for tool in kit.tools.values()
    ]
    if closing:
        word = UserMessage(seq=transcript.last_seq, turn=messages[-1].turn, text="", note=notices.CLOSING_REQUEST)
        return ModelRequest(model="", system=kit.system, messages=[*messages, word], tools=())
    return ModelRequest(model="", system=kit.system, messages=messages, tools=tools)


def _sendable(message: Message) -> Message:
    """A user message always says something: one that is only files, or only blanks, is told in words."""
    if isinstance(message, UserMessage) and not (message.text.strip() or message.files or message.note):
        return replace(message, text=NO_TEXT)
    return message
