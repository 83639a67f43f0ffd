"""A desk for each test that asks for one."""

from collections.abc import AsyncIterator

import pytest

from tests.daemon.office import Office, Offices
from tests.delivery.conftest import clock, houses
from tests.delivery.house import Houses

__all__ = ["clock", "houses", "office", "offices"]


@pytest.fixture
def offices(houses: Houses) -> Offices:
    return Offices(houses)


@pytest.fixture
async def office(offices: Offices) -> AsyncIterator[Office]:
    async with offices.open() as opened:
        yield opened
