"""Generated lines, run for real: what the judge lets through unasked starts nothing that nobody allowed.

Seen to fail with: substitutions in double quotes taken for text, `&` for a letter, `find -execdir` and
`sort --compress-program` forgotten, `sed` scripts looked at no further than their first letter, aliases of git unseen.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.security.shell_worlds import RealWorld, StubWorld
from tests.security.worlds import ask, tools_of
from zerobot.core.access import VerdictKind
from zerobot.core.tools import BadArgumentsError
from zerobot.security.commands import read_command
from zerobot.security.policy import AccessPolicy, bounds_of, command_prefixes
from zerobot.security.sandbox import SandboxKind, SandboxState

pytestmark = pytest.mark.slow

FUZZ = settings(
    max_examples=1_500,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
LISTED = ("ok", "git status", "echo", "true")
PIECES = st.sampled_from(
    [
        *("ok", "git", "status", "evil", "echo", "true", "x", "rm", "a b", "é"),
        *(" ", " ", " ", "\t", "\n", "\\\n", "\\"),
        *(";", "&&", "||", "|", "&", "|&", ";;", "!", "#"),
        *("'", "'", '"', '"', "$'", '$"', "''", '""'),
        *("$", "`", "$(evil)", "`evil`", "${x:-`evil`}", "<(evil)", "$((1))", "${", "}"),
        *("(", ")", "{", "*", "?", "[", "]", "~", "=", "X=", "X=1 ", ",", "@", "%", "+", ":", "^", "-", "/"),
        *("<", ">", ">>", ">/dev/null", "2>&1", "1", "2", "<<E\n", "\nE\n", "<<<", ">&", "&>"),
        *(
            "if ",
            "then ",
            "fi",
            "time ",
            "in ",
            "do ",
            "done",
            "case ",
            "eval ",
            "exec ",
            ". ",
            "command ",
            "alias ok=evil",
        ),
        *("ok 'a", 'ok "a', "git status ", "evil;", " | ok", "&& ok", "; evil", "|| evil", "test -v 'a[$(evil)]'"),
    ]
)
STRUCTURED = st.lists(PIECES, min_size=1, max_size=9).map("".join)
# What runs `evil` if the quotes around it do not hold, or are not read as bash reads them.
CHARGES = st.sampled_from(
    [
        "$(evil)",
        "`evil`",
        "${x:-$(evil)}",
        ";evil;",
        "&evil&",
        "|evil|",
        "\nevil\n",
        "<(evil)",
        "$((x[$(evil)]))",
        "\\$(evil)",
    ]
)
QUOTED = st.tuples(st.sampled_from(["", "'", '"', '"', "$'"]), CHARGES | PIECES, PIECES | st.just("")).map(
    lambda parts: parts[0] + parts[1] + parts[2] + parts[0][-1:]
)
COMMAND = st.tuples(
    st.sampled_from(["ok", "ok", "git status", "echo", "X=1 ok", "evil"]), st.lists(QUOTED, max_size=3)
).map(lambda parts: " ".join([parts[0], *parts[1]]))
TAMED = st.lists(
    st.tuples(COMMAND, st.sampled_from([" | ", ";", "\n", " && ", " || ", " & ", "&", " |& ", " 2>&1 | ", ""])),
    min_size=1,
    max_size=3,
).map(lambda parts: "".join(command + between for command, between in parts[:-1]) + parts[-1][0])

# Words of each program, as they are written; what a dot joins stays together.
USES = {
    "find": ".·-exec·evil·';' .·-execdir·evil·';' .·-exec·evil·{}·+ .·-fprint·out .·-name·data "
    ". -name x -exec -execdir -ok -okdir evil {} '{}' ';' + -delete -fprint -fprint0 -fls out -print -type f",
    "sort": "--compress-program=evil·-S·1b·data --compress-prog·evil·-S·1b -o·out·data -no·out·data data·-o·out "
    "-o out -oout -no --output=out --outp=out --compress-program=evil --compress-prog evil -S 1b -n "
    "data -- -T . -k1 --random-source·--·-o·out·data",
    "sed": "-i·s/a/b/·data '1e·evil'·data p;e·data 's/a/b/w·out'·data 's/a/b/;1e·evil'·data "
    "-n·'1w·out'·data 's/a/evil/e'·data "
    "p -n -i -ni -s -e -f -E -z evil.sed 'w out' '1w out' w\\ out '1e evil' e 's/a/evil/e' 's/a/b/w "
    "out' 's/a/b/' data --in-place --expression=e '1!p' 's|a|b|g' p;e 'p;w out' '$p' --file=evil.sed "
    "'s/a/b/;1e evil' y/a/b/",
    "awk": "-f·evil.awk 'BEGIN{system(\"evil\")}' '{print>\"out\"}'·data '{\"evil\"|getline}'·data "
    "'{print}' '{print $1}' 'BEGIN{system(\"evil\")}' '{print>\"out\"}' '{print|\"evil\"}' "
    "'{\"evil\"|getline}' -f evil.awk -fevil.awk -F: -F : -v x=1 data",
    "tar": "xf·a.tar·--to-command=evil xIf·evil·a.tar cf·out·data·--checkpoint=1·--checkpoint-action=exec=evil "
    "xf·a.tar·--to-com·evil "
    "cf tf xf -xf -cf out data a.tar -O --to-command=evil --to-command evil --to-com=evil -I evil "
    "xIf --use-compress-program=evil --checkpoint=1 --checkpoint-action=exec=evil -F -L1 -M",
    "git": "co bisect·run·evil ls-remote·--upload-pack=evil·. -c·alias.y='!evil'·y grep·-Oevil·a "
    "fetch·--upload-p·evil·. "
    "status log co diff grep -O -Oevil --open-files-in-pager=evil a -c core.pager=evil "
    "alias.y='!evil' y -p --paginate config bisect run evil HEAD ls-remote --upload-pack=evil "
    "--upload-p . 'ext::evil' fetch show -- data --no-pager",
    "make": "-f·evil.mk -fevil.mk --eval='all:;evil' --eva·'all:;evil' SHELL=./evil "
    "all -n -s -j2 -f evil.mk -fevil.mk --file=evil.mk --eval='all:;evil' --eva SHELL=./evil -C . -I -k",
    "env": "evil -i X=1 ./evil -S sh -c",
    "xargs": "evil -n1 ./evil -a data sh -I{}",
    "timeout": "5 evil ./evil -k 1",
    "nice": "evil -n 5",
    "bash": "-c evil ./evil -s evil.sed",
    "python3": "-c 'import\\ os' -m - evil.sed -V --version",
    "perl": "-e 'exec\\ \"evil\"' -ne 'system(\"evil\")' data",
    "diff": "-l -u data list --paginate",
    "grep": "a data -r . -f list -n -c --file=list",
    "cat": "data list evil -n --",
    "head": "-n 1 data -c 5",
    "wc": "-l data --files0-from=list",
    "ls": "-la . -R data",
    "tee": "out data -a",
    "cp": "data out evil",
    "date": "-s 1 -f data +%F",
    "split": "--filter=evil data -l 1 out",
    "printf": "-v 'a[$(evil)]' %s x x%n·PATH",
    "test": "-v 'a[$(evil)]' -f data -eq 1",
    "command": "evil -v",
    "builtin": "eval evil echo",
    "eval": "evil 'evil x'",
    "exec": "evil -a x",
    "source": "evil ./evil",
    "trap": "evil EXIT 0",
    "alias": "ls=evil",
    "hash": "-p ./evil ls",
    "read": "x",
    "mapfile": "-C evil -c 1 x",
    "wait": "-p 'a[$(evil)]'",
    "enable": "-f ./evil x",
    "echo": "a b -e 'a\\x24(evil)'",
}


READERS = ("cat", "diff", "echo", "find", "grep", "head", "ls", "printf", "sed", "sort", "test", "wc")


@st.composite
def uses(draw: st.DrawFn, programs: tuple[str, ...] = tuple(USES)) -> str:
    """Lines of real programs, used in all the ways that the table has, beside each other."""
    commands = []
    for _ in range(draw(st.integers(1, 2))):
        program = draw(st.sampled_from(programs))
        words = draw(st.lists(st.sampled_from(_words(USES[program])), max_size=4))
        commands.append(" ".join([program, *words]).replace("·", " "))
    return draw(st.sampled_from([" | ", "; ", " && ", " || "])).join(commands)


def _words(text: str) -> list[str]:
    """The words of a text as they are written, with their quotes."""
    words, quoted = [""], ""
    for ch in text:
        if ch == " " and not quoted and not words[-1].endswith("\\"):
            words.append("")
            continue
        if ch in "'\"" and quoted in ("", ch):
            quoted = "" if quoted else ch
        words[-1] += ch
    return words


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> StubWorld:
    return StubWorld(tmp_path_factory.mktemp("stubs"), ["ok", "evil", "git", "rm", "x", "status", "bash", "sh"])


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> RealWorld:
    return RealWorld(tmp_path_factory.mktemp("real"))


def runs_unasked(line: str, workspace: Path, listed: tuple[str, ...]) -> bool:
    """Whether the line runs without a question: by a list, or, where nothing is listed, as a reader in a sandbox."""
    bounds = bounds_of(workspace=workspace)
    kind = SandboxKind.OFF if listed else SandboxKind.BUBBLEWRAP
    policy = AccessPolicy(bounds=bounds, allowed_commands=command_prefixes(listed), sandbox=SandboxState(kind))
    try:
        execution = tools_of(bounds)["shell"].resolve({"command": line})
    except BadArgumentsError:
        return False
    return ask("shell", execution, policy).kind is VerdictKind.ALLOW


@FUZZ
@given(STRUCTURED | TAMED)
def test_bash_starts_what_the_judge_has_read_and_nothing_else(stubs: StubWorld, line: str) -> None:
    """Whatever the line looks like: each program that it starts is listed, with the words that were read."""
    if not runs_unasked(line, Path("/tmp"), LISTED):
        return
    read = list(read_command(line).segments)
    for started in stubs.started(line):
        assert started in read, (line, started, read)
        read.remove(started)


@FUZZ
@given(uses())
def test_no_use_of_a_listed_program_starts_another(real: RealWorld, line: str) -> None:
    """An owner who lists a program has not listed what its options, scripts and settings can start."""
    if runs_unasked(line, real.workspace, tuple(USES)):
        assert "evil" not in real.effects(line), line


@FUZZ
@given(uses(READERS))
def test_what_counts_as_reading_changes_nothing(real: RealWorld, line: str) -> None:
    """Nothing is listed here: a line runs unasked only because it reads, so it starts nothing and leaves no trace."""
    if runs_unasked(line, real.workspace, ()):
        assert real.effects(line) == set(), line


@pytest.mark.parametrize(
    "line",
    [
        *(
            "evil",
            "ok; evil",
            "ok & evil",
            "ok | evil",
            "ok\nevil",
            "ok $(evil)",
            'ok "`evil`"',
            "ok <(evil); wait",
            "e''vil",
        ),
        *(
            "X=1 evil",
            "/usr/bin/evil",
            "$'\\x65vil'",
            "ok ${x:-$(evil)}",
            "ev\\il",
            "cat <<E\n$(evil)\nE",
            "if evil; then ok; fi",
        ),
    ],
)
def test_the_stubs_see_what_is_started(stubs: StubWorld, line: str) -> None:
    """The check can fail: whatever way a program is started in, it is written down."""
    assert ("evil",) in stubs.started(line)
    assert not runs_unasked(line, Path("/tmp"), LISTED)


@pytest.mark.parametrize(
    ("line", "effects"),
    [
        ("echo evil / | sed 's/[/]/p;/e;#/p'", {"evil"}),
        ("echo / | sed 's/[/]/p;/w 1/p'", {"change"}),
        ("printf x%n PATH; ls", {"evil"}),
        ("sort --random-source -- -o list data", {"change"}),
    ],
)
def test_readers_that_can_do_more_are_asked_for(real: RealWorld, line: str, effects: set[str]) -> None:
    """Programs that read, used in ways in which they write or start something: no such line runs unasked."""
    assert real.effects(line) == effects
    assert not runs_unasked(line, real.workspace, ())


@pytest.mark.parametrize(
    ("line", "effects"),
    [
        ("evil", {"evil"}),
        ("env evil", {"evil"}),
        ("find . -name data -exec evil ';'", {"evil"}),
        ("sort --compress-program=evil -S 1b data", {"evil"}),
        ("sed '1e evil' data", {"evil"}),
        ("git co", {"evil"}),
        ("make -f evil.mk", {"evil"}),
        ("make SHELL=./evil", {"evil"}),
        ("tar xf a.tar --to-command=evil", {"evil"}),
        ("awk -f evil.awk", {"evil"}),
        ("printf -v 'a[$(evil)]' x", {"evil"}),
        ("cp data out", {"change"}),
        ("sort -o out data", {"change"}),
        ("sed -i s/a/b/ data", {"change"}),
        ("cat data", set()),
    ],
)
def test_the_real_world_tells_what_a_line_did(real: RealWorld, line: str, effects: set[str]) -> None:
    """The check can fail: these do what is looked for."""
    assert real.effects(line) == effects
