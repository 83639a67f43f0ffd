"""The whole access policy as one table: every combination of what it weighs has its row, and every row is needed.

The table is read from above, and the first row that fits decides. `*` is anything, `a|b` is one of these. A person who
wants to know what happens with a call reads it like that, and so does `docs/security.md`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

from tests.security.worlds import ANN, HERE, NOW, OTHER, grant
from zerobot.core.access import Autonomy, Grant, Verdict
from zerobot.core.envelope import TurnOrigin
from zerobot.core.tools import Effect, Execution, Risk, ToolContext, ToolOutput
from zerobot.security.access import ToolRequest, evaluate_tool_access
from zerobot.security.policy import AccessPolicy, bounds_of
from zerobot.security.sandbox import SandboxKind, SandboxState

TABLE = """
frozen autonomy  call         list       place           origin   grant  read    secret box  | verdict rule
yes    *         *            *          *               *        *      *       *      *    | block   freeze
no     *         *            denied     *               *        *      *       *      *    | block   denied_tools
no     read_only write|send|run|wild  *  *               *        *      *       *      *    | block   read_only
no     *         *            *          own|forbidden   *        *      *       *      *    | block   paths
no     *         read|write|send|wild  * outside         *        *      *       *      *    | block   paths
no     *         *            *          *               *        *      *       yes    *    | ask     own_secret
no     *         *            ask        *               *        *      *       *      *    | ask     always_ask
no     *         run          *          outside         *        *      *       *      *    | ask     outside_paths
no     *         send         *          *               *        *      others  *      *    | ask     outside_content
no     *         run          commands   *               *        *      *       *      *    | allow   allowed_commands
no     *         run          prefix     *               *        *      *       *   yes|off | allow   allowed_commands
no     *         *            approve    *               *        *      *       *      *    | allow   auto_approve
no     *         read|write|send  *      *               user     covers *       *      *    | allow   grant
no     *         run          *          *               user     covers *       *   yes|off | allow   grant
no     full      read|write|send|wild  * *               *        *      *       *      *    | allow   full
no     full      run          *          *               *        *      *       *   yes|off | allow   full
no     *         read         *          *               *        *      *       *      *    | allow   risk
no     *         run          *          *               *        *      *       *      no   | ask     no_sandbox
no     *         *            *          *               *        *      *       *      *    | ask     risk
"""

WS = Path("/srv/ws")
PLACES = {"inside": WS / "src/a", "outside": Path("/etc/x"), "forbidden": WS / "private/x", "own": Path("/srv/db")}
VALUES: Mapping[str, tuple[str, ...]] = {
    "frozen": ("yes", "no"),
    "autonomy": tuple(Autonomy),
    "call": ("read", "write", "send", "run", "wild"),
    "list": ("none", "denied", "ask", "approve", "commands", "prefix"),
    "place": tuple(PLACES),
    "origin": tuple(TurnOrigin),
    "grant": ("none", "covers", "ended", "elsewhere"),
    "read": ("nothing", "others"),
    "secret": ("yes", "no"),
    "box": ("yes", "no", "off"),
}
CALLS = {
    "read": (Risk.LOW, Effect.READ),
    "write": (Risk.MEDIUM, Effect.WRITE),
    "send": (Risk.MEDIUM, Effect.SEND),
    "run": (Risk.MEDIUM, Effect.EXECUTE),
    "wild": (Risk.HIGH, Effect.WRITE),
}
LISTS: Mapping[str, Mapping[str, tuple[object, ...]]] = {
    "none": {},
    "denied": {"denied_tools": ("tool",)},
    "ask": {"always_ask": ("tool",)},
    "approve": {"auto_approve": ("tool",)},
    "commands": {"allowed_commands": (("make", "all"),)},
    "prefix": {"allowed_commands": (("make",),)},
}
BOXES = {"yes": SandboxKind.BUBBLEWRAP, "no": SandboxKind.NONE, "off": SandboxKind.OFF}
POLICY = AccessPolicy(bounds=bounds_of(workspace=WS, forbidden_paths=["/srv/ws/private"], own_paths=[Path("/srv")]))
Case = Mapping[str, str]


async def _nothing(_context: ToolContext) -> ToolOutput:
    return ToolOutput(text="")


@cache
def _execution(call: str, where: str) -> Execution:
    risk, effect = CALLS[call]
    place = (PLACES[where],)
    reads, writes = ((), place) if effect is Effect.WRITE else (place, ())
    command = "make all" if effect is Effect.EXECUTE else ""
    return Execution(
        run=_nothing,
        description="",
        effects=frozenset({effect}),
        risk=risk,
        reads=reads,
        writes=writes,
        command=command,
    )


@cache
def _policy(frozen: str, autonomy: str, listed: str, box: str) -> AccessPolicy:
    return replace(
        POLICY,
        frozen=frozen == "yes",
        autonomy=Autonomy(autonomy),
        sandbox=SandboxState(BOXES[box]),
        **LISTS[listed],  # type: ignore[arg-type]
    )


@cache
def _grants(call: str, kind: str) -> list[Grant]:
    given = grant(tool="tool", pattern="make" if call == "run" else "/")
    return {
        "none": [],
        "covers": [given],
        "ended": [replace(given, expires_at="2026-05-01T12:00:00+00:00")],
        "elsewhere": [replace(given, conversation=OTHER)],
    }[kind]


def _verdict(case: Case) -> Verdict:
    request = ToolRequest(
        tool="tool",
        execution=_execution(case["call"], case["place"]),
        asker=ANN,
        conversation=HERE,
        origin=TurnOrigin(case["origin"]),
        now=NOW,
        read_outside_content=case["read"] == "others",
        own_secrets=("providers.main.api_key",) if case["secret"] == "yes" else (),
    )
    policy = _policy(case["frozen"], case["autonomy"], case["list"], case["box"])
    return evaluate_tool_access(request, policy, _grants(case["call"], case["grant"]))


Row = Mapping[str, frozenset[str]]


def _rows() -> list[tuple[Row, str]]:
    """The rows: what each column lets pass, and `verdict rule`."""
    names, *lines = [line.split(" | ") for line in TABLE.strip().splitlines()]
    columns = names[0].split()
    rows: list[tuple[Row, str]] = []
    for wanted, verdict in lines:
        cells = zip(columns, wanted.split(), strict=True)
        passing = {column: frozenset(VALUES[column] if cell == "*" else cell.split("|")) for column, cell in cells}
        rows.append((passing, " ".join(verdict.split())))
    return rows


def _cases() -> Iterator[Case]:
    # While everything is frozen nothing else is looked at: a few combinations stand for all.
    frozen = {**VALUES, "frozen": ("yes",), "origin": ("user",), "grant": ("covers",), "read": ("nothing",)}
    for space in (frozen, {**VALUES, "frozen": ("no",)}):
        yield from (dict(zip(space, values, strict=True)) for values in product(*space.values()))


def _fits(row: Row, case: Case) -> bool:
    return all(case[column] in passing for column, passing in row.items())


def test_every_combination_is_decided_as_the_table_says() -> None:
    """Nothing is left to chance: no combination without a row, no verdict beside it."""
    rows = _rows()
    assert all(passing <= set(VALUES[column]) for row, _ in rows for column, passing in row.items())
    wrong = []
    for case in _cases():
        expected = next(verdict for row, verdict in rows if _fits(row, case))
        got = _verdict(case)
        if f"{got.kind} {got.rule}" != expected:
            wrong.append((case, expected, f"{got.kind} {got.rule}"))
    assert wrong[:3] == []


def test_no_row_of_the_table_is_idle() -> None:
    """Each row is the first that fits some combination; one that never decides anything would be a false promise."""
    rows = _rows()
    used = {next(number for number, (row, _) in enumerate(rows) if _fits(row, case)) for case in _cases()}
    assert used == set(range(len(rows)))


def test_the_documentation_has_the_same_order() -> None:
    """`docs/security.md` lists the rules as the table does; `git_internals` stands there beside them."""
    page = (Path(__file__).parents[2] / "docs/security.md").read_text(encoding="utf-8")
    told = [
        line.split("|")[2].strip().strip("`") for line in page.splitlines() if line.startswith("| ") and "` |" in line
    ]
    rules = list(dict.fromkeys(verdict.split()[1] for _, verdict in _rows()))
    # `paths` stands twice in the table, and what is low in risk is allowed as early as it can be said.
    assert [name for name in told if name in rules] == rules
