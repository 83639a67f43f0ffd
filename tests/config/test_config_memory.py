"""The table `[memory]`."""

import pytest

from tests.config.conftest import Load
from zerobot.core.errors import ConfigError


def test_memory_is_on_unless_it_is_switched_off(load: Load) -> None:
    """Without the table it is on; `enabled = false` switches it off."""
    assert load("").settings.memory.enabled
    assert not load("[memory]\nenabled = false").settings.memory.enabled


@pytest.mark.parametrize("line", ['enabled = "no"', "enabled = 0", "days = 7"])
def test_memory_takes_a_truth_value_and_nothing_else(load: Load, line: str) -> None:
    """A text or a number is not taken for one, and other keys are faults."""
    with pytest.raises(ConfigError, match="memory"):
        load(f"[memory]\n{line}")
