"""`zerobot config` as people type it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from zerobot.cli.config import app
from zerobot.cli.context import CliContext


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of this test alone; no other is found, and no variable of the tester's counts."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "ZEROBOT_CONFIG": ""}.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "my.toml"
    path.write_text("[agent]\nmax_steps = 5 # few\n")
    path.chmod(0o600)
    return path


def run(config: Path | None, *arguments: str) -> Result:
    """Run a command with `--config`, or without."""
    return CliRunner().invoke(app, list(arguments), obj=CliContext(config=config))


def test_check_says_ok(config: Path) -> None:
    """A good file is one line and exit 0."""
    result = run(config, "check")
    assert (result.exit_code, result.stdout) == (0, f"{config}: ok\n")


def test_check_prints_each_fault_and_exits_2(config: Path) -> None:
    """Faults go to stderr, a line each, without a traceback; the exit code is 2."""
    config.write_text("[agent]\nmax_steps = 0\n[deamon]\n")
    result = run(config, "check")
    assert result.exit_code == 2
    assert result.stdout == ""
    first, second = result.stderr.splitlines()
    assert first == f"{config}:2: agent.max_steps: 0 is too small; allowed: at least 1"
    assert second.startswith(f'{config}:3: deamon: unknown key; did you mean "daemon"?')


def test_a_channel_without_its_token_is_still_meant_to_be_there(config: Path) -> None:
    """What lacks a variable is one fault, and nothing is said of operators who could not be asked there."""
    config.write_text('[channels.telegram]\nbot_token = "${NOT_SET_HERE}"\n[operators]\nusers = ["telegram:1"]\n')
    result = run(config, "check")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), result.stderr


def test_check_without_a_file_says_what_counts(config: Path) -> None:
    """Without a file the defaults count, and that is said."""
    result = run(None, "check")
    assert (result.exit_code, "no config file: the defaults count" in result.stdout) == (0, True)


@pytest.mark.parametrize("place", ["zerobot.toml", ".config/zerobot/zerobot.toml"])
def test_the_file_is_found(config: Path, place: str) -> None:
    """Without `--config` the file of the working directory or of the user is taken."""
    target = config.parent / place
    target.parent.mkdir(parents=True, exist_ok=True)
    config.rename(target)
    assert run(None, "get", "agent.max_steps").stdout == "5\n"


def test_the_environment_names_the_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`$ZEROBOT_CONFIG` counts before the file of the working directory."""
    (config.parent / "zerobot.toml").write_text("[agent]\nmax_steps = 9\n")
    monkeypatch.setenv("ZEROBOT_CONFIG", str(config))
    assert run(None, "get", "agent.max_steps").stdout == "5\n"


def test_set_then_get(config: Path) -> None:
    """What was set is what is got, and the comment is still there."""
    assert run(config, "set", "agent.max_steps", "6").exit_code == 0
    assert run(config, "get", "agent.max_steps").stdout == "6\n"
    assert config.read_text() == "[agent]\nmax_steps = 6 # few\n"


def test_set_refuses_and_exits_2(config: Path) -> None:
    """A bad value is refused with its fault; the file is as it was."""
    result = run(config, "set", "agent.max_steps", "many")
    assert result.exit_code == 2
    assert 'agent.max_steps: "many" is a text; allowed: a whole number' in result.stderr
    assert config.read_text() == "[agent]\nmax_steps = 5 # few\n"


def test_set_without_a_file_says_how_to_get_one(config: Path) -> None:
    """There is nothing to change without a file."""
    result = run(None, "set", "agent.max_steps", "6")
    assert (result.exit_code, result.stderr) == (
        2,
        "there is no config file to change; write one with: zerobot init\n",
    )


def test_show_prints_all_of_it(config: Path) -> None:
    """The configuration that counts, with the origin of each value."""
    result = run(config, "show")
    assert result.exit_code == 0
    assert f"max_steps = 5  # {config}:2" in result.stdout
    assert 'autonomy = "supervised"  # default' in result.stdout


def test_schema_is_json(config: Path) -> None:
    """The schema of the installed kinds is JSON Schema."""
    result = run(config, "schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_check_tells_all_faults_and_all_warnings_at_once(config: Path) -> None:
    """One fault hides nothing: names of no tool, commands that match nothing, operators whom nobody can ask."""
    config.write_text(
        '[agent]\nmodle = "x"\ntools = ["reed_file"]\n[operators]\nusers = ["fax:1"]\n[security]\n'
        'allowed_commands = ["git status", "echo $HOME"]\ndenied_tools = ["shel"]\nworkspace = "/no/such/place"\n',
        encoding="utf-8",
    )
    result = run(config, "check")
    assert result.exit_code == 2
    for told in (
        "modle",
        "'reed_file'",
        "fax:1: no such kind",
        "'echo $HOME' matches nothing",
        "'shel'",
        "/no/such/place",
    ):
        assert told in result.stderr, told
    assert "git status" not in result.stderr


def test_check_names_models_that_a_limit_keeps_from_being_asked(config: Path) -> None:
    """A model without a price is never taken to be free; one whose price is set, and no limit, are no news."""
    text = (
        '[agent]\nmodel = "own/big"\nfallback_models = ["own/small"]\n'
        '[providers.own]\nkind = "openai"\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "sk-123456789"\n'
        '[models."own/small"]\ninput_price = 0\noutput_price = 0\n'
    )
    config.write_text(text, encoding="utf-8")
    assert "is never asked" not in run(config, "check").stderr
    config.write_text(text + "[budget]\nmax_cost_per_turn = 1\n", encoding="utf-8")
    result = run(config, "check")
    assert result.exit_code == 0
    assert "agent.model: own/big is never asked" in result.stderr
    assert "own/small" not in result.stderr


def test_get_names_the_nearest_key(config: Path) -> None:
    """Also where the whole table is not there."""
    result = run(config, "get", "agnt.max_steps")
    assert (result.exit_code, "agent.max_steps" in result.stderr) == (2, True)
    assert "there is no table [nope]" in run(config, "get", "nope.x").stderr
