"""The table `[budget]`."""

import pytest

from tests.config.conftest import Load
from zerobot.core.errors import ConfigError


def test_there_is_no_limit_unless_one_is_set(load: Load) -> None:
    """Absent and 0 are the same; a whole number is an amount too."""
    budget = load("").settings.budget
    assert (budget.max_cost_per_day, budget.max_cost_per_user_per_day, budget.max_cost_per_turn) == (0, 0, 0)
    budget = load("[budget]\nmax_cost_per_day = 5\nmax_cost_per_turn = 0.25").settings.budget
    assert (budget.max_cost_per_day, budget.max_cost_per_user_per_day, budget.max_cost_per_turn) == (5, 0, 0.25)


@pytest.mark.parametrize("value", ["-1", "nan", "inf", '"5"', "true", "2e6"])
@pytest.mark.parametrize("key", ["max_cost_per_day", "max_cost_per_user_per_day", "max_cost_per_turn"])
def test_a_limit_is_an_amount(load: Load, key: str, value: str) -> None:
    """Nothing that no sum could ever reach, and nothing that could be taken for no limit."""
    with pytest.raises(ConfigError, match=f"budget.{key}"):
        load(f"[budget]\n{key} = {value}")


def test_a_misspelt_limit_is_no_silent_absence(load: Load) -> None:
    """An unknown key is a fault with the nearest known one."""
    with pytest.raises(ConfigError, match="max_cost_per_day"):
        load("[budget]\nmax_costs_per_day = 5")
