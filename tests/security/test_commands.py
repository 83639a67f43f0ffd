"""The strict grammar of shell lines: what it proves is what bash does."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.security.commands import MAX_LENGTH, MAX_SEGMENTS, matches, read_command, unmatched
from zerobot.security.programs import hazard, only_reads

# Everything that has a meaning for the shell, beside some that has none.
LINES = st.text(alphabet="pq01 \t\n;|&<>()\"'`$\\*?[]{}!#~=%@:/.,-+^", max_size=24)


@pytest.mark.parametrize(
    ("line", "segments"),
    [
        ("ls -la  src", [("ls", "-la", "src")]),
        ("a 'b c'\"d e\"f\\ g", [("a", "b cd ef g")]),
        ("a ''", [("a", "")]),
        ('a "x\\"y\\\\z\\w"', [("a", 'x"y\\z\\w')]),
        ("a | b && c || d ; e\nf", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",)]),
        ("a &&\n\n b;\n", [("a",), ("b",)]),
        ("a \\\n b\\\nc", [("a", "bc")]),
        ("a 2>&1 >/dev/null b 1>&2 2>>/dev/null", [("a", "b")]),
        ("a2>/dev/null", [("a2",)]),
        ("git show HEAD~1:x a=b", [("git", "show", "HEAD~1:x", "a=b")]),
        ("echo grüße 日本", [("echo", "grüße", "日本")]),
    ],
)
def test_words_are_what_quote_removal_leaves(line: str, segments: list[tuple[str, ...]]) -> None:
    """Segments and words, as bash would see them."""
    reading = read_command(line)
    assert reading.proved, reading.unproved
    assert list(reading.segments) == segments


@pytest.mark.parametrize(
    "line",
    [
        "",
        "a &",
        "a & b",
        "a ;; b",
        "; a",
        "a | | b",
        "a &&",
        "a |",
        "a |& b",
        "a `b`",
        "a $(b)",
        'a "$b"',
        'a "`b`"',
        'a "\\$b"',
        "a $b",
        "a ${b}",
        "a *",
        "a ?",
        "a [b]",
        "a {b,c}",
        "a ~",
        "a ~/b",
        "a b=~/c",
        "a b:~",
        "a # b",
        "a !b",
        "(a)",
        "a 'b",
        'a "b',
        "a \\",
        "a > b",
        "a >| b",
        "a >&b",
        "a >&-",
        "a 3>&1",
        "a 0<b",
        "a <<b",
        "a <<<b",
        "a <>b",
        "a <(b)",
        "a <",
        "a > /dev/null/../b",
        "if a",
        "! a",
        "time a",
        "A=b",
        "A=b c",
        "A+=b c",
        "A='b' c",
        "'' a",
        "a\u200bb",
        "a '\x1b'",
        "a\rb",
    ],
)
def test_what_the_grammar_does_not_know_is_not_proved(line: str) -> None:
    """Nothing is guessed, and the reason is told."""
    reading = read_command(line)
    assert not reading.proved
    assert reading.unproved
    assert not reading.segments
    assert unmatched([("a",)], reading)


def test_there_are_caps() -> None:
    """A very long line, and one of very many commands, ask."""
    assert not read_command("a" * (MAX_LENGTH + 1)).proved
    assert read_command(";".join(["a"] * MAX_SEGMENTS)).proved
    assert not read_command(";".join(["a"] * (MAX_SEGMENTS + 1))).proved


@settings(max_examples=400, deadline=None)
@given(LINES)
def test_no_special_character_outside_quotes_is_ever_proved(line: str) -> None:
    """Whatever the rest of the line is, an unquoted expansion, glob or substitution is not proved."""
    reading = read_command(line)
    bare = _without_quoted(line)
    if set("`$*?[{}()!#") & set(bare):
        assert not reading.proved


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet="pq \n\"'$`;|&\\*#~=<>", max_size=6), min_size=1, max_size=4))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    """In single quotes everything is a plain word."""
    line = "run " + " ".join("'" + word.replace("'", "") + "'" for word in words)
    assert read_command(line).segments == (("run", *(word.replace("'", "") for word in words)),)


@settings(max_examples=200, deadline=None)
@given(LINES, st.sampled_from([("p",), ("p", "q"), ("pq",)]))
def test_a_prefix_matches_whole_words_only(line: str, prefix: tuple[str, ...]) -> None:
    """If a line matches, each of its commands begins with exactly these words."""
    reading = read_command(line)
    if matches([prefix], reading):
        assert reading.segments
        assert all(words[: len(prefix)] == prefix for words in reading.segments)


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="pq0 \t\n;&'\"\\~=:/2>", min_size=1, max_size=16))
def test_a_proved_line_is_what_bash_runs(line: str) -> None:
    """Bash itself, in which every program is a stub that tells its words, sees the same commands."""
    reading = read_command(line)
    if reading.proved and all(words[0].isalnum() for words in reading.segments):
        assert _seen_by_bash(line) == [list(words) for words in reading.segments]


def _seen_by_bash(line: str) -> list[list[str]]:
    stub = "() { printf '%s\\0' \"$@\" >&3; printf '\\1\\0' >&3; }"
    done = subprocess.run(
        ["/bin/bash", "-c", 'exec 3>&1 >/dev/null; exec /bin/bash --norc --noprofile -c "$1"', "x", line],
        env={"PATH": "/nowhere", "BASH_FUNC_command_not_found_handle%%": stub},
        capture_output=True,
        check=False,
        cwd="/",
    )
    commands: list[list[str]] = [[]]
    for word in done.stdout.decode().split("\0")[:-1]:
        if word == "\1":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands[:-1]


def _without_quoted(line: str) -> str:
    """What is left of a line without its quoted parts; of an unclosed quote nothing is left."""
    kept, quote, at = [], "", 0
    while at < len(line):
        ch = line[at]
        if ch == "\\" and quote != "'":
            at += 2
            continue
        if quote:
            quote = "" if ch == quote else quote
        elif ch in "'\"":
            quote = ch
        else:
            kept.append(ch)
        at += 1
    return "".join(kept)


@pytest.mark.parametrize(
    ("line", "targets"),
    [
        ("cat a/b < c", {"a/b", "c"}),
        ("cc -I/x -o../y", {"/x", "../y"}),
        ("tool --out=/x k=/y @/z a:/w", {"/x", "/y", "/z", "/w"}),
        ("curl file:///etc/x", {"/etc/x"}),
        ("cat secret/a $X", {"secret/a"}),
    ],
)
def test_paths_in_a_line_are_noticed(line: str, targets: set[str]) -> None:
    """Also glued to options, behind `=`, `@` and `:`, and in lines that are not proved."""
    assert targets <= set(read_command(line).targets())


@pytest.mark.parametrize(
    "line",
    [
        "cat a",
        "ls -la | sort -rn | head -5",
        "grep -rn x src",
        "find . -name x",
        "sed -n '1,5p' a",
        "sed -e 's/a/b/g' f",
    ],
)
def test_readers_are_known(line: str) -> None:
    """Low risk under a sandbox."""
    assert read_command(line).only_reads


@pytest.mark.parametrize(
    "line",
    [
        "git log",
        "sort -o a b",
        "sort --outp=a b",
        "sort --o=a b",
        "find . -delete",
        "sed -i s/a/b/ f",
        "sed 'w x' f",
        "sed s/a/b/ f -i",
        "rg --pre x y",
        "tee a",
        "/bin/cat a",
        "cat a | sh",
        "tree -o x",
    ],
)
def test_what_is_more_than_reading_is_no_reader(line: str) -> None:
    """Options and programs that write or start something."""
    assert not read_command(line).only_reads


@pytest.mark.parametrize(
    "words",
    [
        ("git", "-c", "core.pager=x", "log"),
        ("git", "--git-dir=x", "log"),
        ("git", "bisect", "run", "x"),
        ("git", "clone", "ext::sh -c x"),
        ("tar", "xIf", "sh", "a.tar"),
        ("python3.11", "-c", "x"),
        ("python3", "-m", "zerobot"),
        ("python3",),
        ("node", "-e", "x"),
        ("awk", 'BEGIN{system("x")}'),
        ("awk", "-f", "x"),
        ("uv", "run", "x"),
        ("ld-linux-x86-64.so.2", "/bin/rm"),
        ("sqlite3", "a.db", ".shell x"),
        ("printf", "-v", "PATH", "x"),
    ],
)
def test_an_allowed_program_is_not_allowed_to_be_another(words: tuple[str, ...]) -> None:
    """Uses that run, write or look elsewhere are held against a segment."""
    assert hazard(words)
    assert not only_reads(words)


@pytest.mark.parametrize(
    "words",
    [
        ("git", "--no-pager", "log", "-p"),
        ("git", "commit", "-m", "x"),
        ("tar", "tf", "a.tar"),
        ("python3", "manage.py", "test"),
        ("python3", "--version"),
        ("awk", "-F:", "{print $1}", "a"),
        ("npm", "test", "--", "--watch=false"),
        ("make", "test"),
    ],
)
def test_ordinary_uses_are_left_alone(words: tuple[str, ...]) -> None:
    """What an owner lists works."""
    assert hazard(words) == ""


def test_reading_takes_linear_time_and_never_hangs() -> None:
    """Each single character, alone and amid words, is read or refused."""
    for number in range(0x250):
        for line in (chr(number), f"a {chr(number)}", f"a{chr(number)}b", f"a {chr(number)} b"):
            read_command(line)
