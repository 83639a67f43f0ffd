"""A database that refuses, or dies with its process, where a test says so."""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from zerobot.core.errors import StorageError
from zerobot.store.database import Database, Transaction

T = TypeVar("T")


class Fate(StrEnum):
    """What happens to a write."""

    REFUSED = "refused"
    """It is not stored, and the caller is told so."""
    DIES_BEFORE = "dies_before"
    """The process is gone before it is stored."""
    DIES_AFTER = "dies_after"
    """It is stored, and the process is gone before anybody is told."""


@dataclass(slots=True)
class _Trap:
    fate: Fate
    hits: Callable[[str], bool]
    skip: int
    times: int


class WatchedDatabase(Database):
    """A real database with traps. A dead one never answers again: whoever asks waits until he is cancelled."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self._traps: list[_Trap] = []
        self._busy = 0
        self._after: list[tuple[str, Callable[[], object]]] = []
        self.died = asyncio.Event()
        """Set when its process is gone."""
        self.writes = 0
        """Transactions that were stored."""

    @property
    def busy(self) -> bool:
        """Whether something is being read or written that somebody still waits for."""
        return self._busy > 0 and not self.died.is_set()

    def trap(self, fate: Fate, point: str = "", *, skip: int = 0, times: int = 1) -> None:
        """Wait for a write.

        Args:
            fate: What happens to it.
            point: The method that writes, such as `Turns.start_call`; empty: any.
            skip: How many such writes pass before.
            times: How many are caught.
        """
        self._traps.append(_Trap(fate, lambda method: point in ("", method), skip, times))

    def after(self, point: str, act: Callable[[], object]) -> None:
        """Do something right after the next write by a method is stored, before its caller goes on."""
        self._after.append((point, act))

    def die(self) -> None:
        """The process is gone now."""
        self.died.set()

    async def write(self, function: Transaction[T]) -> T:
        """See `Database`."""
        await self._unless_dead()
        method = getattr(function, "__qualname__", "").partition(".<locals>")[0]
        fate = self._fate(method)
        if fate is Fate.REFUSED:
            raise StorageError("the database refused: the test wants it so")
        if fate is Fate.DIES_BEFORE:
            self.die()
        await self._unless_dead()
        self._busy += 1
        try:
            result = await self._inner.write(function)
        finally:
            self._busy -= 1
        self.writes += 1
        self._do_after(method)
        if fate is Fate.DIES_AFTER:
            self.die()
        await self._unless_dead()
        return result

    async def read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """See `Database`."""
        await self._unless_dead()
        self._busy += 1
        try:
            result = await self._inner.read(function)
        finally:
            self._busy -= 1
        await self._unless_dead()
        return result

    def _do_after(self, method: str) -> None:
        due = [act for point, act in self._after if point == method]
        self._after = [each for each in self._after if each[0] != method]
        for act in due:
            act()

    def _fate(self, method: str) -> Fate | None:
        for trap in self._traps:
            if not trap.times or not trap.hits(method):
                continue
            if trap.skip:
                trap.skip -= 1
                continue
            trap.times -= 1
            return trap.fate
        return None

    async def _unless_dead(self) -> None:
        if self.died.is_set():
            await asyncio.get_running_loop().create_future()
