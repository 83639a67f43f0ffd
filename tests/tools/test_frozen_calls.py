"""Calls that execute something, through a turn: what was judged is what runs."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from zerobot.core.messages import ResultCode
from zerobot.core.tools import EVERYTHING, Accesses, Effect, Execution, ToolContext, ToolOutput
from zerobot.testing.house import open_house
from zerobot.testing.model import call, says, step
from zerobot.testing.tools import Arguments, Kind, Toolbox, ToolDouble


@dataclass
class Disk:
    """What the executing tool finds: operand -> digest."""

    found: dict[str, str] = field(default_factory=dict)

    async def write(self, _: str, __: Arguments, ___: ToolContext) -> ToolOutput:
        """The work of a tool that brings a script."""
        self.found["run.sh"] = "digest"
        return ToolOutput(text="written")

    async def execute(self, _: str, __: Arguments, ___: ToolContext) -> ToolOutput:
        """The work of a tool that runs it."""
        return ToolOutput(text="it ran")


def _everything(_: Arguments) -> Accesses:
    return EVERYTHING


class Executing(ToolDouble):
    """A tool whose calls freeze what is on a disk."""

    def __init__(self, box: Toolbox, disk: Disk, effect: Effect) -> None:
        super().__init__(box, "execute", Kind(effects=frozenset({effect}), accesses=_everything), disk.execute)
        self._disk = disk

    def resolve(self, arguments: Arguments) -> Execution:
        """As the disk is now."""
        return replace(super().resolve(arguments), frozen=dict(self._disk.found))


@pytest.mark.parametrize(
    ("effect", "before", "code"),
    [
        (Effect.EXECUTE, {}, ResultCode.BLOCKED),
        (Effect.EXECUTE, {"run.sh": "missing"}, ResultCode.BLOCKED),
        (Effect.EXECUTE, {"run.sh": "digest"}, ResultCode.OK),
        (Effect.READ, {}, ResultCode.OK),
    ],
)
async def test_a_call_does_not_run_what_an_earlier_one_of_its_step_brought(
    tmp_path: Path, effect: Effect, before: dict[str, str], code: ResultCode
) -> None:
    """A script that nobody saw when the call was judged makes another call of it, also one that was not there."""
    async with open_house(tmp_path) as house:
        disk = Disk(dict(before))
        house.tools.add("bring", disk.write, Kind(accesses=_everything))
        house.tools.doubles["execute"] = Executing(house.tools, disk, effect)
        house.model.answers(step(calls=[call("bring", "c1"), call("execute", "c2")]), says("ok"))
        await house.user.says("go")
        if effect is Effect.EXECUTE:
            await house.operator.presses("Approve")
        seen = house.model.last_request
        assert (seen.result_of("c1").code, seen.result_of("c2").code) == (ResultCode.OK, code)
        assert house.tools.runs["execute"] == (code is ResultCode.OK)
