"""Memory, wired: the tools that write and read it, and what is recalled for a turn; nothing where it is off."""

from dataclasses import dataclass

from zerobot.config.loader import LoadedConfig
from zerobot.config.schema import DEFAULT_AGENT
from zerobot.core.clock import Clock
from zerobot.core.log import EventLog
from zerobot.core.memory import MemoryBackend
from zerobot.core.tools import Tool
from zerobot.memory.block import MemoryBlock
from zerobot.memory.recall import Recall
from zerobot.store.database import Database
from zerobot.store.memory import SqliteMemory, turn_scopes
from zerobot.store.turn_rows import Turn
from zerobot.tools.memory_tools import memory_tools
from zerobot.turn.kit import RecallMemory, nothing_recalled


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """What memory adds to the daemon."""

    backend: MemoryBackend | None = None
    tools: tuple[Tool, ...] = ()
    recall: RecallMemory = nothing_recalled


def memory_parts(config: LoadedConfig, database: Database, clock: Clock, log: EventLog) -> MemoryParts:
    """Wire memory, if `[memory] enabled` says so."""
    if not config.settings.memory.enabled:
        return MemoryParts()

    def agent_of(channel: str) -> str:
        table = config.settings.channels.get(channel)
        return DEFAULT_AGENT if table is None else table.agent

    backend = SqliteMemory(database, clock)
    scope_of = turn_scopes(database, agent_of)
    recall = Recall(backend, scope_of, clock, log)

    async def recalled(turn: Turn, text: str) -> MemoryBlock:
        return await recall.block(turn.id, text)

    return MemoryParts(backend, memory_tools(backend, scope_of), recalled)
