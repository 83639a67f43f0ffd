"""The baseline: the daemon's libraries, imported, and the same calls made by hand. No queue, no store, no limits.

Run by the benchmarks as `python -m benchmarks.bare BASE_URL`.
"""

import asyncio
import json
import sys
import time

import httpx
from telegram import Bot, Message
from telegram.request import HTTPXRequest


class BareBot:
    """Polls, asks the model, sends the answer."""

    def __init__(self, base_url: str) -> None:
        self._bot = Bot(
            "1:bare",
            base_url=f"{base_url}/bot",
            request=HTTPXRequest(connection_pool_size=64),
            get_updates_request=HTTPXRequest(connection_pool_size=1),
        )
        self._http = httpx.AsyncClient(trust_env=False, timeout=30.0)
        self._url = f"{base_url}/v1/chat/completions"
        self._history: dict[int, list[dict[str, str]]] = {}

    async def run(self) -> None:
        """Poll until killed."""
        await self._bot.initialize()
        offset: int | None = None
        timeout = 0
        async with asyncio.TaskGroup() as turns:
            while True:
                updates = await self._bot.get_updates(offset=offset, timeout=timeout, read_timeout=40)
                if not timeout:
                    print(json.dumps({"event": "daemon.ready", "at": time.time()}), file=sys.stderr, flush=True)
                timeout = 30
                for update in updates:
                    offset = update.update_id + 1
                    if update.message is not None:
                        turns.create_task(self._turn(update.message))

    async def _turn(self, message: Message) -> None:
        history = self._history.setdefault(message.chat_id, [])
        history.append({"role": "user", "content": message.text or ""})
        body = {"model": "m-1", "stream": True, "messages": history}
        pieces: list[str] = []
        async with self._http.stream("POST", self._url, json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    choices = json.loads(line[6:])["choices"]
                    pieces += [choice["delta"].get("content", "") for choice in choices]
        history.append({"role": "assistant", "content": "".join(pieces)})
        await self._bot.send_message(message.chat_id, "".join(pieces))


if __name__ == "__main__":
    asyncio.run(BareBot(sys.argv[1]).run())
