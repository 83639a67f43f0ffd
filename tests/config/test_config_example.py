"""`config.example.toml` against the models: nothing is missing, nothing is made up, every default is right."""

import re
from pathlib import Path

import pytest

from zerobot.config.files import ConfigFile
from zerobot.config.keys import KeyPath, dotted, lookup
from zerobot.config.kinds import Kinds
from zerobot.config.loader import examine, load_config
from zerobot.config.schema import Settings

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"
ENVIRON = {
    "ANTHROPIC_API_KEY": "sk-123456789",
    "DISCORD_BOT_TOKEN": "abcdefgh",
    "SLACK_APP_TOKEN": "xapp-abcdefgh",
    "SLACK_BOT_TOKEN": "xoxb-abcdefgh",
    "EMAIL_PASSWORD": "abcdefgh",
    "EMAIL_REFRESH_TOKEN": "abcdefgh",
    "TELEGRAM_BOT_TOKEN": "123:abcdefgh",
}
NO_DEFAULT = {
    "agent.model",
    "providers.main.kind",
    "providers.main.api_key",
    "channels.discord.kind",
    "channels.discord.bot_token",
    "channels.email.address",
    "channels.email.imap_host",
    "channels.email.kind",
    "channels.email.password",
    "channels.email.smtp_host",
    "channels.email.trusted_authserv",
    "channels.slack.app_token",
    "channels.slack.bot_token",
    "channels.slack.kind",
    "channels.telegram.kind",
    "channels.telegram.bot_token",
    "channels.console.kind",
    "channels.console.enabled",
}
"""What the example sets on purpose; each has a comment that says so."""
KEY = re.compile(r"(#?)([a-z_0-9]+) = (.+)")
HEADER = re.compile(r"""\[([a-z.]+|models\."[^"]+")\]""")


@pytest.fixture
def example() -> ConfigFile:
    """The example as it ships; whoever checked it out may have given it any mode."""
    return ConfigFile(path=EXAMPLE, text=EXAMPLE.read_text(encoding="utf-8"), mode=0o600)


def written() -> dict[str, dict[str, bool]]:
    """Table -> key -> whether it is set, not only shown behind a `#`."""
    tables: dict[str, dict[str, bool]] = {}
    table = ""
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        if header := HEADER.fullmatch(line):
            table = header[1]
            tables[table] = {}
        elif key := KEY.fullmatch(line):
            tables[table][key[2]] = not key[1]
    return tables


def tables_of(example: ConfigFile, kinds: Kinds) -> dict[str, list[str]]:
    """Table -> every key that its model has."""
    examined = examine(example, ENVIRON, kinds)
    found: dict[str, list[str]] = {}
    for path, _ in examined.tables.walk(examined.tree):
        if path and path not in (("providers", "demo"), ("agents", "brief")):
            found[dotted(path)] = examined.tables.keys(path)
    return found


def test_the_example_loads(kinds: Kinds, tmp_path: Path) -> None:
    """With its variables set, the example is a configuration that starts."""
    copy = tmp_path / "zerobot.toml"
    copy.write_bytes(EXAMPLE.read_bytes())
    copy.chmod(0o600)
    loaded = load_config(copy, ENVIRON, kinds)
    assert sorted(loaded.settings.channels) == ["console", "discord", "email", "slack", "telegram"]


def test_the_example_has_every_key_and_no_other(example: ConfigFile, kinds: Kinds) -> None:
    """Each key of each model is in the example, set or shown, and what is in the example is in a model."""
    shown = {table: sorted(keys) for table, keys in written().items() if table not in ("agents.brief", "plugins")}
    assert shown == {table: sorted(keys) for table, keys in tables_of(example, kinds).items()}


def test_the_example_has_every_table() -> None:
    """Each table of the schema is there at least once."""
    assert set(Settings.model_fields) <= {table.partition(".")[0] for table in written()}


def test_every_default_in_the_example_is_right(example: ConfigFile, kinds: Kinds) -> None:
    """What the example sets is what counts without it; what it only shows is not set by default."""
    examined = examine(example, ENVIRON, kinds)
    for path, model in examined.tables.walk(examined.tree):
        table = lookup(examined.settings.model_dump(), path)
        for name, field in model.model_fields.items() if path and path[0] != "agents" else ():
            key = dotted((*path, name))
            if key in NO_DEFAULT or path == ("providers", "demo"):
                continue
            assert isinstance(table, dict)
            assert table[name] == field.get_default(), key
            is_set = written()[dotted(path)][name]
            assert is_set is (field.get_default() is not None), key


def test_what_the_example_only_shows_is_valid(example: ConfigFile, kinds: Kinds) -> None:
    """Each key behind a `#` can be switched on, alone, and has no fault but that its file is not there."""
    lines = example.text.splitlines()
    shown = [number for number, line in enumerate(lines) if line.startswith("#") and KEY.fullmatch(line)]
    assert shown
    for number in shown:
        name = lines[number][1:].partition(" ")[0]
        text = "\n".join([*lines[:number], lines[number][1:], *lines[number + 1 :]])
        examined = examine(ConfigFile(path=EXAMPLE, text=text, mode=0o600), ENVIRON, kinds)
        faults = [fault.text for fault in examined.faults]
        if name.endswith("_file"):
            assert faults == [f"is set together with {name.removesuffix('_file')}; keep one of the two"]
        elif name == "oauth2":
            assert faults == ["needs either password or an oauth2 table"]
        else:
            assert faults == []


def test_every_key_of_the_example_has_a_comment() -> None:
    """Above each key, set or shown, stands at least a line of prose."""
    above = ""
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        table = HEADER.fullmatch(line)
        if KEY.fullmatch(line) and not above.startswith("[agents.") and "instructions" not in above:
            assert above.startswith("# "), line
        above = table[0] if table else line


def test_every_field_is_described(example: ConfigFile, kinds: Kinds) -> None:
    """Each key has a description, which `zerobot config schema` prints."""
    examined = examine(example, ENVIRON, kinds)
    described: list[KeyPath] = []
    for path, model in examined.tables.walk(examined.tree):
        described += [(*path, name) for name, field in model.model_fields.items() if not field.description]
    assert described == []
