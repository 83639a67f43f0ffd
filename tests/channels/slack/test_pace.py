"""Many at once: Slack's rates are kept, and nobody waits for a draft of somebody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.channels.slack.town import SlackTown
from tests.platforms.model_script import holds, says
from tests.platforms.model_server import ModelServer
from tests.platforms.slack_server import SlackServer


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[SlackTown]:
    """Slack, people and a model."""
    async with ModelServer(models=("m-1",)) as model, SlackServer() as slack:
        yield SlackTown(tmp_path, model, slack)


@pytest.mark.slow
async def test_thirty_answers_that_stream_at_once_arrive_whole(town: SlackTown) -> None:
    """With 50 changes a minute for all of them; no call is refused."""
    people = [town.slack.user(f"U3{number:03d}", name=f"P{number}") for number in range(30)]
    town.configure(town.table, allowed_users=[person.id for person in people])
    texts = {person: f"For {person.name}: " + "and so on, " * 30 for person in people}
    for person, text in texts.items():
        town.model.when(f"I am {person.name}.", holds(says(text.strip()), after=20))
    async with town.daemon() as daemon:
        for person in people:
            person.says(f"I am {person.name}.")
        for person in people[:6]:
            await person.chat.reply(f"For {person.name}", patience=60)
        for _ in people:
            await town.model.until_holding()
            town.model.release()
        await daemon.until("delivery.sent", count=30, patience=90)
    assert [person.chat.texts for person in people] == [[text.strip()] for text in texts.values()]
    assert town.refused == 0
