"""The house that every test of the engine works in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from zerobot.testing.house import House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A house with its own store. What must hold after every turn is checked when the test is over."""
    async with open_house(tmp_path) as house:
        yield house
