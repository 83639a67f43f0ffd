"""Before a step: the input's files, the window of history, and the request that is made of them."""

from collections.abc import Sequence
from dataclasses import replace

from zerobot.core.messages import Message, StoredFile, UserMessage
from zerobot.core.model import ModelRequest, ToolSpec
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.kit import TurnKit
from zerobot.turn.transcript import Transcript

WINDOW_KEPT = 0.7
"""Of the bound, what is left when the window moves. It moves in jumps, so that the prefix stays the same meanwhile."""
NO_TEXT = "(no text)"


async def load_transcript(kit: TurnKit, turn: Turn, transcript: Transcript) -> None:
    """Load the conversation as this turn sees it, and move the window when it has grown to its bound."""
    messages = (await kit.turns.history(turn)).messages
    start = window_start(messages, kit.limits.history_messages)
    if start:
        await kit.turns.move_window(turn.conversation, start)
    transcript.load(message for message in messages if message.seq >= start)
    transcript.outside_content = turn.outside_content


def window_start(messages: Sequence[Message], bound: int) -> int:
    """Where the window begins from now on, as a sequence number; 0 when it need not move.

    It begins with a user message, so that no round is cut and no answer stands without its question; the newest
    input always stays.
    """
    if not bound or len(messages) <= bound:
        return 0
    earliest = len(messages) - int(bound * WINDOW_KEPT)
    starts = [index for index, message in enumerate(messages) if isinstance(message, UserMessage)]
    start = next((index for index in starts if index >= earliest), starts[-1] if starts else 0)
    return messages[start].seq if start else 0


async def fetch_files(kit: TurnKit, turn: Turn, transcript: Transcript) -> None:
    """Fetch what was attached to the input, once; what could not be had is told to the model in words."""
    inputs = transcript.inputs(turn.id)
    if not inputs or inputs[0].files or inputs[0].note:
        return
    attachments = [attachment for envelope in await kit.turns.inputs(turn.id) for attachment in envelope.attachments]
    if not attachments:
        return
    fetched = [await kit.fetch(turn, attachment) for attachment in attachments]
    files = tuple(file for file in fetched if isinstance(file, StoredFile))
    note = "\n".join(file for file in fetched if isinstance(file, str))
    message = replace(inputs[0], files=files, note=note)
    await kit.turns.set_input(message)
    transcript.replace(message)


def request_of(kit: TurnKit, transcript: Transcript, *, closing: bool = False) -> ModelRequest:
    """The request for the next step. Without tools, and with a word about it, when it is the closing one."""
    messages = [_sendable(message) for message in transcript.messages]
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
