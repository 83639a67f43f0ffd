"""What model calls cost in money, where the price is known. What is not known is said to be so, never counted as 0."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property

from zerobot.config.loader import LoadedConfig
from zerobot.core.ids import TurnId
from zerobot.providers.catalogue import Catalogue, cost_text, shipped, total
from zerobot.store.usage import UsageLog, UsageTotal

LONGEST_TURN = timedelta(days=60)
"""How far back the calls of a turn may lie: it may have waited for operators, and those waits are bounded."""


def catalogue_of(config: LoadedConfig) -> Catalogue:
    """What is known of models: the shipped catalogue, and above it what the owner has configured."""
    settings, kinds = config.settings, config.kinds.providers
    return Catalogue(
        entries=shipped(),
        own=settings.models,
        addresses={
            name: table.base_url or kinds[table.kind or name]().default_base_url
            for name, table in settings.providers.items()
            # At the shell a table may be there whose kind is not: its models have no price then.
            if (table.kind or name) in kinds
        },
    )


class Costs:
    """Prices model calls.

    Args:
        config: The owner's own prices, and where each provider really is.
        usage: The calls.
    """

    def __init__(self, config: LoadedConfig, usage: UsageLog) -> None:
        self._config = config
        self._usage = usage

    @cached_property
    def catalogue(self) -> Catalogue:
        """What is known of models; read when it is first asked for."""
        return catalogue_of(self._config)

    def of_calls(self, calls: UsageTotal) -> Decimal | None:
        """The price of some calls of one model; None when it, or the tokens of some of them, are not known."""
        return None if calls.unreported else self.catalogue.cost_of(calls.model, calls.usage)

    async def of_turn(self, turn: TurnId) -> str:
        """The price of a turn as text: `$0.0046`, or `unpriced`."""
        now = datetime.now(UTC)
        calls = await self._usage.totals((), since=now - LONGEST_TURN, until=now + timedelta(minutes=1), turn=turn)
        return cost_text(total(self.of_calls(each) for each in calls))
