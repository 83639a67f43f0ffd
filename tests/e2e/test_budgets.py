"""Spending limits, from the settings to the chat."""

import pytest

from tests.e2e.stage import Stage
from tests.platforms.model_script import holds, says


@pytest.fixture
def priced(stage: Stage) -> Stage:
    """A model whose output costs a dollar a thousand tokens, and twelve dollars a day."""
    stage.configure('models."main/m-1"', input_price=0.0, output_price=1000.0)
    stage.configure("budget", max_cost_per_day=12.0)
    return stage


async def test_a_day_is_spent_to_its_end_and_no_further(priced: Stage) -> None:
    """Operators hear when little is left, answers get shorter, and then the chat reads when to come back."""
    stage = priced
    stage.model.answers(says("One.", usage=(5, 9700)), says("Two.", usage=(5, 2000)))
    async with stage.daemon() as daemon:
        await stage.says(stage.uma, "one")
        await stage.says(stage.vic, "two")
        told = await stage.olga.chat.reply("that I may spend in a day")
        refused = await stage.says(stage.uma, "three")
        stage.uma.says("/usage")
        usage = await stage.uma.chat.reply("Your last 30 days")
    assert "$9.70 of the $12.00" in told.text
    assert (
        "left of the $12.00 that I may spend in a day pays for no answer. There is new money at 00:00 UTC, in"
        in refused.text
    )
    assert "Of all that I may spend today ($12.00), $0.3000 are left." in usage.text
    assert [request.body["max_tokens"] for request in stage.model.requests] == [8192, 2300]
    finished = daemon.named("turn.finished")[-1]
    assert (finished["outcome"], finished["reason"], finished["cost"]) == ("limited", "budget", "$0.00")


async def test_a_call_that_a_kill_cut_off_is_paid(priced: Stage) -> None:
    """The next start counts it as dear as it could be, and what is left pays for the turn that goes on."""
    stage = priced
    stage.model.answers(holds(says("One.", usage=(5, 100))))
    async with stage.daemon() as daemon:
        stage.uma.says("one")
        await stage.model.until_holding()
        await daemon.kill()
    stage.model.answers(says("One again.", usage=(5, 1000)))
    async with stage.daemon():
        await stage.uma.chat.reply("One again.")
        stage.uma.says("/usage")
        usage = await stage.uma.chat.reply("Your last 30 days")
    assert "$2.81 are left" in usage.text
