"""The await points of some work: a test interferes at the one it chooses, in whichever task of the work it is."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
Interference = Callable[[], BaseException | None]
"""What a test does at an await point; an exception that it returns is raised there."""

_CURRENT: "ContextVar[AwaitPoints | None]" = ContextVar("await_points", default=None)
CLOSINGS = 50
"""Tries to close what a power cut has left: each await in a clean-up takes one."""


class AwaitPoints:
    """The await points of one piece of work, numbered from 0 in the order in which they are resumed.

    A point is the moment at which a task goes on after an await: what it has awaited is done by then.

    Args:
        at: Where to interfere; None: nowhere, they are only counted.
        interfere: What to do there.
    """

    def __init__(self, at: int | None, interfere: Interference) -> None:
        self.passed = 0
        self.power = True
        """False: none of the tasks goes on any more, not even to clean up; set by a test that cuts it."""
        self._at = at
        self._interfere = interfere
        self._dropped: list[Coroutine[Any, Any, Any]] = []

    async def carry_out(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work; every task that it creates counts. It needs `counted_tasks`."""
        before = _CURRENT.set(self)
        try:
            return await self.counted(work)
        finally:
            _CURRENT.reset(before)

    async def counted(self, work: Coroutine[Any, Any, T]) -> T:
        """One task of the work."""
        result: T = await _Driven(self, work)
        return result

    def resumed(self) -> BaseException | None:
        """A task goes on."""
        number, self.passed = self.passed, self.passed + 1
        return self._interfere() if number == self._at else None

    def drop(self, work: Coroutine[Any, Any, Any]) -> None:
        """A task never goes on."""
        self._dropped.append(work)

    def forget(self) -> None:
        """Let go of what was dropped, once nothing depends on it any more."""
        for work in self._dropped:
            for _ in range(CLOSINGS):
                with suppress(BaseException):
                    work.close()
                    break
        self._dropped = []


class _Driven:
    """Awaits a coroutine and looks in between."""

    def __init__(self, points: AwaitPoints, work: Coroutine[Any, Any, T]) -> None:
        self._points = points
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        thrown: BaseException | None = None
        while True:
            if not self._points.power:
                self._points.drop(self._work)
                if thrown is not None:
                    # The event loop gets rid of the task; the work itself does not hear of it.
                    raise thrown
                yield from asyncio.get_running_loop().create_future()
            try:
                awaited = self._work.send(None) if thrown is None else self._work.throw(thrown)
            except StopIteration as stop:
                return stop.value
            thrown = None
            try:
                yield awaited
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - whatever the event loop throws in is the work's to take
                thrown = error
            thrown = self._points.resumed() or thrown


@contextmanager
def counted_tasks() -> Iterator[None]:
    """Let the tasks count that some work creates on the running event loop."""
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        points = _CURRENT.get()
        return asyncio.Task(work if points is None else points.counted(work), loop=loop, **options)

    loop.set_task_factory(factory)
    try:
        yield
    finally:
        loop.set_task_factory(before)
