"""A platform's strict double with many people, and the paced model, in one process that notes when everything happens.

Run by the benchmarks as `python -m benchmarks.strict PLATFORM`; see `benchmarks/backstage.py` for what it is told.
"""

import asyncio
import sys
import time

from benchmarks.backstage import Backstage, question, serve
from benchmarks.platforms import PLATFORMS, Call, Person, Platform
from benchmarks.stage import Turn

_OPERATOR = 1_001


class Crowd:
    """Many people, each in a direct chat with the bot; a chat has one turn.

    Args:
        platform: Where they are.
    """

    def __init__(self, platform: Platform) -> None:
        self.backstage = Backstage(self._deliver, platform.keep_limits)
        self._platform = platform
        self._answers: dict[str, tuple[Turn, Person]] = {}
        """By chat: what is answered there, and whom."""
        self._open: list[Call] = []
        self._seen = 0

    def channel(self, url: str) -> dict[str, object]:
        """What the daemon's configuration says of the platform."""
        del url
        name = self._platform.kind.name
        return {"name": name, "table": self._platform.table, "operator": f"{name}:{_OPERATOR}"}

    async def watch(self) -> None:
        """Note what becomes of each call, until cancelled."""
        while True:
            await self._platform.server.signal.within(self._has_news, 60.0)
            calls = self._platform.server.calls
            looked_at = [*self._open, *calls[self._seen :]]
            self._seen = len(calls)
            self._open = [call for call in looked_at if call.outcome == "open"]
            for call in looked_at:
                if call.outcome != "open":
                    self._note(call)

    def _has_news(self) -> bool:
        return self._seen < len(self._platform.server.calls) or any(call.outcome != "open" for call in self._open)

    def _deliver(self, turn: Turn) -> None:
        person = self._platform.person(turn.chat)
        self._answers[person.chat.id] = turn, person
        turn.handed = time.monotonic()
        person.says(question(turn))

    def _note(self, call: Call) -> None:
        refused = self._platform.refuses_rate(call)
        name = self._platform.name_of(call)
        if refused:
            self.backstage.refused[name] += 1
        if name not in self._platform.shows:
            return
        turn, person = self._answers[self._platform.chat_of(call)]
        turn.refused += refused
        turn.calls += 1
        if call.outcome != "ok":
            return
        turn.shown = turn.shown or call.at
        whole = "".join(self.backstage.pieces(turn))
        if not turn.final and "\n".join(person.chat.texts) == whole:
            self.backstage.stage.ended(turn, call.at)


async def main(name: str) -> None:
    """Serve until the benchmark closes our standard input."""
    platform = PLATFORMS[name]()
    async with platform.server:
        crowd = Crowd(platform)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(crowd.watch())
            await serve(crowd.backstage.handle, crowd.channel)
            watching.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
