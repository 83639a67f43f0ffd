"""Looking at single keys and changing them."""

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.config import editor
from zerobot.config.files import read_config
from zerobot.config.kinds import Kinds
from zerobot.core.errors import ConfigError

TEXT = """\
# my bot
[agent]   # the one
max_steps = 5   # few
name = "Ann"

# the connection
[channels.telegram]
bot_token = "123:abcdefgh" # secret
allowed_users = [
  1, # me
]
[daemon]
max_turns = 2
"""


@pytest.fixture
def file(config: Path) -> Path:
    """A file with comments."""
    config.write_text(TEXT)
    config.chmod(0o600)
    return config


def change(path: Path, kinds: Kinds, key: str, value: str, **environ: str) -> list[str]:
    """Set a key in the file as it is."""
    return editor.set_value(read_config(path), key, value, environ, kinds)


def refusal(path: Path, kinds: Kinds, key: str, value: str) -> list[str]:
    """The faults for which a change is refused; the file must be as it was."""
    before = path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        change(path, kinds, key, value)
    assert path.read_bytes() == before
    return [line.replace(str(path), "FILE") for line in caught.value.faults]


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("agent.max_steps", "7", "max_steps = 5", "max_steps = 7"),
        ("agent.name", "Bob", '"Ann"', '"Bob"'),
        ("agent.name", "42", '"Ann"', '"42"'),
        ("channels.telegram.bot_token", "987:hgfedcba", "123:abcdefgh", "987:hgfedcba"),
        ("daemon.max_turns", "3", "max_turns = 2", "max_turns = 3"),
    ],
)
def test_set_changes_one_value_and_nothing_else(
    file: Path, kinds: Kinds, key: str, value: str, old: str, new: str
) -> None:
    """Comments, order and spacing stay; only the value is another."""
    change(file, kinds, key, value)
    assert file.read_text() == TEXT.replace(old, new)


def test_set_adds_a_key_to_its_table(file: Path, kinds: Kinds) -> None:
    """A key that was not there is put behind the last of its table, before the comment of the next one."""
    change(file, kinds, "agent.turn_timeout", "2m")
    assert file.read_text() == TEXT.replace('"Ann"\n', '"Ann"\nturn_timeout = "2m"\n')


def test_set_adds_a_table(file: Path, kinds: Kinds) -> None:
    """A table that was not there is made; all that was there stays."""
    change(file, kinds, "agents.brief.max_steps", "1")
    assert file.read_text().startswith(TEXT)
    assert tomllib.loads(file.read_text())["agents"]["brief"] == {"max_steps": 1}


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("agent.max_steps", "0", "FILE:3: agent.max_steps: 0 is too small; allowed: at least 1"),
        ("agent.model", "x/y", "FILE:5: agent.model: there is no table [providers.x]; allowed: demo/MODEL"),
        ("agent.name.x", "1", "agent.name: is no table, so it has no keys"),
        ("agent..x", "1", "'agent..x' is no key; write for example agent.max_steps"),
        ("mcp.x", "1", "FILE:15: mcp: is not supported by this version; leave it out"),
    ],
)
def test_set_refuses_what_would_be_wrong(file: Path, kinds: Kinds, key: str, value: str, line: str) -> None:
    """A change that makes the configuration invalid is refused with the faults, and nothing is written."""
    assert refusal(file, kinds, key, value) == [line]


def test_set_refuses_an_unknown_key(file: Path, kinds: Kinds) -> None:
    """A misspelt key is not written, and the nearest one is named."""
    (line,) = refusal(file, kinds, "agent.max_step", "1")
    assert 'agent.max_step: unknown key; did you mean "max_steps"?' in line


def test_set_can_mend_a_broken_file_step_by_step(file: Path, kinds: Kinds) -> None:
    """Faults that were there before do not hinder a change that adds none."""
    file.write_text("[agent]\nmax_steps = 0\n[daemon]\nmax_turns = 0\n")
    change(file, kinds, "agent.max_steps", "3")
    assert file.read_text() == "[agent]\nmax_steps = 3\n[daemon]\nmax_turns = 0\n"


def test_set_warns_when_the_environment_counts_instead(file: Path, kinds: Kinds) -> None:
    """A key that a variable overrides is written, and the person is told why nothing changes."""
    variable = "ZEROBOT__AGENT__MAX_STEPS"
    assert change(file, kinds, "agent.max_steps", "7", **{variable: "9"}) == [
        f"agent.max_steps: {variable} is set in this environment and counts instead"
    ]


def test_set_warns_when_others_may_read_the_secret(file: Path, kinds: Kinds) -> None:
    """A secret that is written where others may read it is told with the command that mends it."""
    file.write_text("[channels.telegram]\nenabled = false\n")
    file.chmod(0o644)
    assert change(file, kinds, "channels.telegram.bot_token", "123:abcdefgh") == [
        f"{file} holds channels.telegram.bot_token and may be read by others; run: chmod 600 {file}"
    ]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_set_keeps_the_mode(file: Path, kinds: Kinds, mode: int) -> None:
    """The file has the permissions that it had, and nothing else is left in the directory."""
    file.chmod(mode)
    change(file, kinds, "agent.max_steps", "7")
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert list(file.parent.iterdir()) == [file]


def test_set_keeps_a_link(file: Path, kinds: Kinds) -> None:
    """A configuration that is a link stays one; what it leads to is changed."""
    link = file.parent / "link.toml"
    link.symlink_to(file.name)
    change(link, kinds, "agent.max_steps", "7")
    assert link.is_symlink()
    assert "max_steps = 7" in file.read_text()


def test_set_replaces_the_file_in_one_step(file: Path, kinds: Kinds) -> None:
    """Who has the old file open still reads all of it: it is replaced, not written over."""
    with file.open() as reader:
        change(file, kinds, "agent.max_steps", "7")
        assert reader.read() == TEXT


def test_set_does_not_undo_what_another_wrote(file: Path, kinds: Kinds) -> None:
    """A file that changed since it was read is left alone."""
    read = read_config(file)
    file.write_text(TEXT + "# more\n")
    with pytest.raises(ConfigError, match="was changed meanwhile; nothing was written"):
        editor.set_value(read, "agent.max_steps", "7", {}, kinds)
    assert file.read_text() == TEXT + "# more\n"


def test_set_tells_why_it_cannot_write(file: Path, kinds: Kinds) -> None:
    """A file that went away meanwhile is one line."""
    read = read_config(file)
    file.unlink()
    with pytest.raises(ConfigError) as caught:
        editor.set_value(read, "agent.max_steps", "7", {}, kinds)
    assert caught.value.faults == [f"{file}: cannot be written: No such file or directory"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_set_keeps_the_line_ends(file: Path, kinds: Kinds, newline: str) -> None:
    """A file from another system keeps its line ends."""
    file.write_bytes(TEXT.replace("\n", newline).encode())
    change(file, kinds, "agent.max_steps", "7")
    assert file.read_bytes() == TEXT.replace("= 5", "= 7").replace("\n", newline).encode()


@pytest.mark.parametrize(
    "text",
    [
        "agent.max_steps = 5\n",
        'agent = { max_steps = 5, name = "Ann" }\n',
        "[agents.a]\n[agent]\nmax_steps = 5\n[agents.b]\n",
        '[channels.console]\n[agent]\nmax_steps = 5\n[channels.x]\nkind = "console"\n',
    ],
)
def test_set_finds_the_key_in_every_form(file: Path, kinds: Kinds, text: str) -> None:
    """Dotted keys, inline tables and tables out of order are changed where they stand."""
    file.write_text(text)
    change(file, kinds, "agent.max_steps", "7")
    assert file.read_text() == text.replace("5", "7")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("agent.max_steps", "5"),
        ("agent.name", "Ann"),
        ("agent.turn_timeout", "15m"),
        ("agent.tools", '["*"]'),
        ("channels.telegram.enabled", "true"),
        ("channels.telegram.bot_token", editor.MASK),
        ("channels.telegram.allowed_users", '["1"]'),
        ("channels.telegram.max_attachment", "20MB"),
        ("channels.telegram.kind", "telegram"),
        ("security.workspace", ""),
    ],
)
def test_get_prints_what_counts(file: Path, kinds: Kinds, key: str, value: str) -> None:
    """A text comes plainly, anything else as TOML; defaults too; a secret never."""
    assert editor.get(read_config(file), key, {}, kinds) == value


def test_get_prints_a_table(file: Path, kinds: Kinds) -> None:
    """The name of a table gives all its keys as TOML."""
    table = tomllib.loads(editor.get(read_config(file), "daemon", {}, kinds))
    assert table["daemon"]["max_turns"] == 2
    assert table["daemon"]["log_level"] == "info"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("daemon.max_turn", "daemon.max_turn: there is no such key; known here: state_dir, max_turns,"),
        ("channels.fax", "channels.fax: there is no such key; known here: telegram"),
        ("channels.fax.kind", "channels.fax.kind: is not set"),
        ("a b", "'a b' is no key"),
    ],
)
def test_get_names_what_there_is(file: Path, kinds: Kinds, key: str, text: str) -> None:
    """A key that is not there is an error that says which are."""
    with pytest.raises(ConfigError) as caught:
        editor.get(read_config(file), key, {}, kinds)
    assert caught.value.faults[0].startswith(text)


def test_show_tells_where_each_value_comes_from(file: Path, kinds: Kinds, tmp_path: Path) -> None:
    """File and line, variable, file of a secret, or default; no secret is in it, and it is TOML."""
    (tmp_path / "key").write_text("sk-from-a-file")
    with file.open("a") as more:
        more.write('log_format = "${FORMAT}"\n[providers.p]\nkind = "openai"\napi_key_file = "key"\n')
    environ = {"FORMAT": "json", "ZEROBOT__AGENT__MODEL": "p/m"}
    shown = editor.show(read_config(file), environ, kinds)
    lines = shown.splitlines()
    assert f"max_steps = 5  # {file}:3" in lines
    assert 'log_format = "json"  # $FORMAT' in lines
    assert 'model = "p/m"  # ZEROBOT__AGENT__MODEL' in lines
    assert f'api_key = "{editor.MASK}"  # file key' in lines
    assert f'bot_token = "{editor.MASK}"  # {file}:8' in lines
    assert 'log_level = "info"  # default' in lines
    assert "# workspace is not set" in lines
    assert "abcdefgh" not in shown
    assert "sk-from" not in shown
    assert tomllib.loads(shown)["channels"]["telegram"]["drafts"] == "edit"


def test_show_refuses_a_broken_file(file: Path, kinds: Kinds) -> None:
    """What cannot be used is not shown; its faults are."""
    file.write_text("[agent]\nmax_steps = 0")
    with pytest.raises(ConfigError, match=r"agent\.max_steps"):
        editor.show(read_config(file), {}, kinds)


@settings(max_examples=60)
@given(st.one_of(st.text(), st.integers(), st.booleans(), st.lists(st.text())))
def test_a_written_value_reads_the_same(value: object) -> None:
    """Whatever `show` prints is TOML for that very value."""
    assert tomllib.loads(f"x = {editor.write_value(value)}")["x"] == value
