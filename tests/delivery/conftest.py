"""The house that tests of delivery work in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.delivery.house import House, Houses
from zerobot.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def houses(tmp_path: Path, clock: ManualClock) -> Houses:
    return Houses(tmp_path / "zerobot.db", clock)


@pytest.fixture
async def house(houses: Houses) -> AsyncIterator[House]:
    async with houses.open() as opened:
        yield opened
