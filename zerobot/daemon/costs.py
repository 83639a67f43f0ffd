"""What model calls cost in money, where the price is known. What is not known is said to be so, never counted as 0."""

from decimal import Decimal
from functools import cached_property

from zerobot.config.loader import LoadedConfig
from zerobot.config.schema import DEMO, BudgetSettings, ModelTable, Settings
from zerobot.core.budget import Scope
from zerobot.core.ids import TurnId
from zerobot.providers.catalogue import Catalogue, cost_text, shipped, total
from zerobot.store.usage import UsageFilter, UsageLog, UsageTotal


def catalogue_of(config: LoadedConfig) -> Catalogue:
    """What is known of models: the shipped catalogue, and above it what the owner has configured."""
    settings, kinds = config.settings, config.kinds.providers
    return Catalogue(
        entries=shipped(),
        own={f"{DEMO}/{DEMO}": ModelTable(input_price=0, output_price=0), **settings.models},
        addresses={
            name: table.base_url or kinds[table.kind or name]().default_base_url
            for name, table in settings.providers.items()
            # At the shell a table may be there whose kind is not: its models have no price then.
            if (table.kind or name) in kinds
        },
    )


def limits_of(budget: BudgetSettings) -> dict[Scope, Decimal]:
    """The limits that are set, in USD."""
    limits = {
        Scope.TURN: budget.max_cost_per_turn,
        Scope.USER: budget.max_cost_per_user_per_day,
        Scope.DAY: budget.max_cost_per_day,
    }
    # By its text, as a float has digits that nobody wrote.
    return {scope: Decimal(str(limit)) for scope, limit in limits.items() if limit}


class Costs:
    """Prices model calls.

    Args:
        config: The owner's own prices, and where each provider really is.
        usage: The calls.
    """

    def __init__(self, config: LoadedConfig, usage: UsageLog) -> None:
        self._config = config
        self._usage = usage

    @property
    def settings(self) -> Settings:
        """What is configured."""
        return self._config.settings

    @cached_property
    def catalogue(self) -> Catalogue:
        """What is known of models; read when it is first asked for."""
        return catalogue_of(self._config)

    def of_calls(self, calls: UsageTotal) -> Decimal | None:
        """The price of some calls of one model; None when it, or the tokens of some of them, are not known."""
        return None if calls.unreported else self.catalogue.cost_of(calls.model, calls.usage)

    async def of_turn(self, turn: TurnId) -> str:
        """The price of a turn as text: `$0.0046`, or `unpriced`."""
        calls = await self._usage.totals((), UsageFilter(turn=turn))
        return cost_text(total(self.of_calls(each) for each in calls))
