"""What is wrong with a configuration, in one line each."""

from contextlib import suppress
from pathlib import Path

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.config.conftest import Faults, Load
from zerobot.config.files import ConfigFile
from zerobot.config.kinds import Kinds
from zerobot.config.loader import examine, fault_lines, load_config
from zerobot.config.schema import Settings
from zerobot.core.errors import ConfigError

DAEMON = "state_dir, max_turns, shutdown_grace, log_level, log_format"
TOP = "daemon, agent, agents, providers, models, channels, operators, security, budget, memory, plugins"
CONSOLE = "enabled, kind, drafts, agent, notice_after, approval_timeout"
WAY = 'write bot_token = "${NAME}", NAME being an environment variable, or bot_token_file = "PATH"'
ADDS = "(a package adds one by an entry point in"
TOKEN = '[channels.telegram]\nbot_token = "123:abcdefgh"\n'

CASES = {
    # unknown keys
    "[daemon]\nmax_turn = 3": f'FILE:2: daemon.max_turn: unknown key; did you mean "max_turns"? known here: {DAEMON}',
    "deamon = 1": f'FILE:1: deamon: unknown key; did you mean "daemon"? known here: {TOP}',
    "_env_file = 1": f"FILE:1: _env_file: unknown key; known here: {TOP}",
    "[daemon]\nzzz.y = 1": f"FILE:2: daemon.zzz: unknown key; known here: {DAEMON}",
    "[channels.console]\npairing = true": f"FILE:2: channels.console.pairing: unknown key; known here: {CONSOLE}",
    # types
    '[agent]\nmax_steps = "5"': 'FILE:2: agent.max_steps: "5" is a text; allowed: a whole number, without quotes',
    "[agent]\nmax_steps = 5.5": "FILE:2: agent.max_steps: 5.5 is a number; allowed: a whole number, without quotes",
    "[agent]\nmax_steps = true": "FILE:2: agent.max_steps: true is true or false; allowed: a whole number, "
    "without quotes",
    "[agent]\nname = 1": "FILE:2: agent.name: 1 is a whole number; allowed: a text in quotes",
    "[agent]\nname = 1979-05-27": "FILE:2: agent.name: is a date or time; allowed: a text in quotes",
    '[agent]\ntools = "shell"': 'FILE:2: agent.tools: "shell" is a text; allowed: a list, for example ["a", "b"]',
    '[agent]\ntools = [\n"a",\n3]': "FILE:4: agent.tools[1]: 3 is a whole number; allowed: a text in quotes",
    "agent = 3": "FILE:1: agent: 3 is a whole number; allowed: a table",
    # models
    "models.gpt-5.context_window = 9000": 'FILE:1: models.gpt-5: is no model; write [models."PROVIDER/MODEL"], '
    "with the quotes",
    '[models."x/gpt-5"]\ncontext_window = 9000': 'FILE:1: models."x/gpt-5": there is no table [providers.x]; '
    "allowed: demo/MODEL",
    '[models."demo/demo"]\ninput_price = -1': 'FILE:2: models."demo/demo".input_price: -1 is too small; '
    "allowed: at least 0.0",
    "agents = []": "FILE:1: agents: is a list; allowed: a table",
    "agents.x = 1": "FILE:1: agents.x: 1 is a whole number; allowed: a table",
    "channels = 1": "FILE:1: channels: 1 is a whole number; allowed: a table",
    "channels.x = 1": "FILE:1: channels.x: 1 is a whole number; allowed: a table",
    # values
    '[daemon]\nlog_level = "loud"': 'FILE:2: daemon.log_level: "loud" is not allowed; '
    "allowed: debug, info, warning, error",
    '[security]\nautonomy = "yolo"': 'FILE:2: security.autonomy: "yolo" is not allowed; '
    "allowed: read_only, supervised, full",
    '[agent]\nname = ""': "FILE:2: agent.name: is empty; write a value",
    '[agent]\nmodel = "gpt"': 'FILE:2: agent.model: "gpt" is no model; write PROVIDER/MODEL, PROVIDER being the NAME '
    "of a table [providers.NAME]",
    '[security]\nallowed_commands = [" "]': 'FILE:2: security.allowed_commands[0]: " " is an empty prefix, which every '
    "command has; write the command's first words",
    '[security]\nallowed_paths = ["x"]': 'FILE:2: security.allowed_paths[0]: "x" is relative; write an absolute path, '
    "or one that begins with ~/",
    '[operators]\nusers = ["bob"]': 'FILE:2: operators.users[0]: "bob" is no identity; write KIND:ID, the kind of a '
    "channel and the person's id there",
    '[operators]\nusers = ["telegram:*"]': 'FILE:2: operators.users[0]: "telegram:*" is no identity; write KIND:ID, '
    "the kind of a channel and the person's id there",
    '[operators]\nusers = ["telegram:@bob"]': 'FILE:2: operators.users[0]: "telegram:@bob" is a name, which can change '
    "hands; write KIND:ID with the id that the platform keeps",
    # secrets
    "[channels.telegram]\n": f"FILE:1: channels.telegram.bot_token: is missing; from @BotFather; {WAY}",
    '[channels.telegram]\nbot_token = ""': f"FILE:2: channels.telegram.bot_token: is empty; from @BotFather; {WAY}",
    '[channels.telegram]\nbot_token = "${NONE}"': "FILE:2: channels.telegram.bot_token: the environment variable NONE "
    "is not set; set it (from @BotFather)",
    '[channels.telegram]\nbot_token = "a\\nb"': "FILE:2: channels.telegram.bot_token: contains a line break or another "
    "control character; write the secret alone, on one line",
    "[channels.telegram]\nbot_token = 123456": "FILE:2: channels.telegram.bot_token: is a whole number; "
    "allowed: a text in quotes",
    "[channels.telegram]\nbot_token_file = 3": "FILE:2: channels.telegram.bot_token_file: is no file's name; "
    "allowed: a path in quotes",
    TOKEN + 'bot_token_file = "x"': "FILE:3: channels.telegram.bot_token_file: is set together with bot_token; "
    "keep one of the two",
    '[agent]\nname = "${A-B}"': "FILE:2: agent.name: ${A-B} names no variable; write ${NAME}, or $${ for ${",
    '[agent]\nname = "${NONE}"': "FILE:2: agent.name: the environment variable NONE is not set; set it",
    # kinds
    "[channels.fax]\n": 'FILE:1: channels.fax.kind: is missing, and "fax" is no kind; '
    f"allowed: broken, console, discord, email, remote, slack, telegram {ADDS} zerobot.channels)",
    '[channels.a]\nkind = "fax"': 'FILE:2: channels.a.kind: there is no kind "fax"; '
    f"allowed: broken, console, discord, email, remote, slack, telegram {ADDS} zerobot.channels)",
    "[channels.remote]\n": "FILE:1: channels.remote: the library not_installed_library is not installed; "
    "run: pip install 'zerobot[remote]'",
    "[channels.broken]\n": 'FILE:1: channels.broken.kind: kind "broken" is installed but broken: no module named half',
    '[channels."a b"]\n': 'FILE:1: channels."a b": is no name for a table; allowed: up to 63 of A-Z a-z 0-9 _ -',
    # names that lead nowhere
    '[agent]\nmodel = "x/y"': "FILE:2: agent.model: there is no table [providers.x]; allowed: demo/MODEL",
    '[agents.a]\nfallback_models = ["x/y"]': "FILE:2: agents.a.fallback_models[0]: there is no table [providers.x]; "
    "allowed: demo/MODEL",
    '[providers.p]\nkind = "openai"\nbase_url = "http://h/v1"': "FILE:1: agent.model: is missing; write "
    'PROVIDER/MODEL, for example model = "p/MODEL"',
    '[channels.console]\nagent = "bob"\n[agents.a]': 'FILE:2: channels.console.agent: there is no agent "bob"; '
    "allowed: default, a",
    "[agents.default]": "FILE:1: agents.default: is the name of [agent] itself; put its keys there",
    # what is not there yet
    '[security]\nsandbox = "firejail"': 'FILE:2: security.sandbox: "firejail" is not allowed; '
    "allowed: auto, bubblewrap, off",
    '[[schedules]]\nname = "x"': "FILE:1: schedules: is not supported by this version; leave it out",
}


@pytest.mark.parametrize(("text", "line"), CASES.items())
def test_a_fault_is_one_line(faults: Faults, text: str, line: str) -> None:
    """Each fault names file, line and key, says what is wrong and what is allowed, and is told once."""
    assert faults(text) == [line]


def test_a_key_in_the_wrong_section_is_told_where_it_belongs(faults: Faults) -> None:
    """A token outside its channel's table is an error that names the table."""
    found = faults('[daemon]\nbot_token = "123:abcdefgh"\n[channels.telegram]')
    assert found[0].startswith("FILE:2: daemon.bot_token: unknown key; it belongs in [channels.telegram]; known here:")
    assert found[1].startswith("FILE:3: channels.telegram.bot_token: is missing;")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("daemon.max_turns", "0", "0 is too small; allowed: at least 1"),
        ("daemon.max_turns", "-1", "-1 is too small; allowed: at least 1"),
        ("daemon.shutdown_grace", '"2h"', "2h is too large; allowed: at most 1h"),
        ("agent.max_steps", "0", "0 is too small; allowed: at least 1"),
        ("agent.turn_timeout", "0", "0s is too small; allowed: more than 0s"),
        ("agent.history_messages", "0", "0 is too small; allowed: at least 10"),
        ("security.approval_timeout", "0", "0s is too small; allowed: more than 0s"),
        ("channels.console.approval_timeout", "0", "0s is too small; allowed: more than 0s"),
        ("providers.demo.idle_timeout", "0", "0s is too small; allowed: more than 0s"),
        ("providers.demo.connect_timeout", "0", "0s is too small; allowed: more than 0s"),
        ("providers.demo.max_retries", "-1", "-1 is too small; allowed: at least 0"),
    ],
)
def test_a_limit_refuses_what_it_cannot_mean(faults: Faults, key: str, value: str, problem: str) -> None:
    """Zero is refused where it could be taken for "unlimited", and a negative limit everywhere."""
    assert faults(f"{key} = {value}") == [f"FILE:1: {key}: {problem}"]


@pytest.mark.parametrize(
    "key",
    ["daemon.shutdown_grace", "agent.turn_timeout", "security.approval_timeout", "channels.console.approval_timeout"]
    + [f"providers.demo.{name}" for name in ("idle_timeout", "connect_timeout", "retry_cap")],
)
def test_no_duration_is_negative(faults: Faults, key: str) -> None:
    """A negative duration is an error that shows how one is written."""
    allowed = 'write "90s", "10m", "2h", "1d" or a number of seconds, 0 or more'
    assert faults(f'{key} = "-1s"') == [f'FILE:1: {key}: "-1s" is no duration; {allowed}']


@pytest.mark.parametrize("key", ["daemon.shutdown_grace", "providers.demo.max_retries", "providers.demo.retry_cap"])
def test_zero_is_allowed_where_it_means_none(load: Load, key: str) -> None:
    """No grace, no retry and no wait can be asked for."""
    load(f"{key} = 0")


def test_all_faults_come_at_once_in_the_order_of_the_file(faults: Faults) -> None:
    """One run shows everything: a fault of one sort never hides those of another."""
    text = (
        '[daemon]\nmax_turns = 0\nhttp_listen = "x"\n[agent]\nmodel = "no/x"\nname = "${NONE}"\n'
        '[channels.remote]\npairng = 1\nagent = "bob"\n[channels.telegram]\n[mcp]\n'
    )
    found = [line.split(": ")[:2] for line in faults(text, ZEROBOT__AGENT__MAX_STEP="1")]
    assert found == [
        ["FILE:2", "daemon.max_turns"],
        ["FILE:3", "daemon.http_listen"],
        ["ZEROBOT__AGENT__MAX_STEP", "agent.max_step"],
        ["FILE:5", "agent.model"],
        ["FILE:6", "agent.name"],
        ["FILE:7", "channels.remote"],
        ["FILE:8", "channels.remote.pairng"],
        ["FILE:10", "channels.telegram.bot_token"],
        ["FILE:11", "mcp"],
    ]


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        (
            "ZEROBOT__DAEMON__MAX_TURN",
            "3",
            'daemon.max_turn: unknown key; did you mean "max_turns"? known here: ' + DAEMON,
        ),
        ("ZEROBOT__DAEMON__LOG_FORMAT", "xml", 'daemon.log_format: "xml" is not allowed; allowed: auto, console, json'),
        ("ZEROBOT____NAME", "3", "names no key; write for example ZEROBOT__AGENT__MAX_STEPS"),
        ("ZEROBOT__AGENT__NAME__X", "3", "agent.name: is no table, so no key of it can be set"),
    ],
)
def test_a_fault_of_the_environment_names_the_variable(faults: Faults, variable: str, value: str, line: str) -> None:
    """Where an environment variable is to blame, it stands in place of file and line."""
    assert faults('[agent]\nname = "Ann"', **{variable: value}) == [f"{variable}: {line}"]


def test_what_a_variable_holds_is_never_shown(faults: Faults) -> None:
    """A secret that was put into the wrong key is not printed with the fault."""
    text = '[channels.console]\ndrafts = "${SECRET}"\napproval_timeout = "${SECRET}"\n[agent]\nmax_steps = "${SECRET}"'
    assert not [line for line in faults(text, SECRET="hunter2hunter2") if "hunter2" in line]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[daemon]\nmax_turns = \n", "FILE:2: is not TOML, column 13: invalid value"),
        ('[a]\nx = "open', "FILE:2: is not TOML"),
        ("[a]\n[a]\n", "FILE:2: is not TOML, column 3: the table [a] is there already; put its keys together"),
    ],
)
def test_a_syntax_error_has_its_line(faults: Faults, text: str, line: str) -> None:
    """A file that is not TOML is one line with the place."""
    (found,) = faults(text)
    assert found.startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = " + "[" * 60 + "]" * 60, "FILE: is nested more than 40 levels deep"),
        ("x = " + "[" * 5000 + "]" * 5000, "FILE: is nested more than 40 levels deep"),
        ("x = " + "9" * 5000, "FILE:1: is not TOML: exceeds the limit"),
        ("", "ZEROBOT__X: x: unknown key"),
    ],
)
def test_a_document_made_to_break_the_reader_is_a_fault(faults: Faults, text: str, line: str) -> None:
    """Deep nesting and endless numbers, in the file or in a variable, are one line."""
    (found,) = faults(text, **({} if text else {"ZEROBOT__X": "[" * 5000}))
    assert found.startswith(line)


NAMES = st.sampled_from(
    [
        *Settings.model_fields,
        "main",
        "telegram",
        "console",
        "kind",
        "enabled",
        "max_steps",
        "model",
        "bot_token",
        "bot_token_file",
        "users",
        "tools",
        "fallback_models",
        "mcp",
        "a\nb",
        "${X}",
    ]
)
VALUES = st.recursive(
    st.one_of(
        st.integers(),
        st.booleans(),
        st.floats(),
        st.dates(),
        st.text(max_size=9),
        st.sampled_from(["${X}", "${Y}", "$${X}", "telegram", "x/y", "~nobody-here/x", "telegram:1", "1h"]),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, VALUES, max_size=5), st.sampled_from(["1", "[", "${X}", "", "\n"]))
def test_no_document_ends_in_a_traceback(kinds: Kinds, tree: dict[str, object], value: str) -> None:
    """Whatever a document holds, it loads, or each fault is one printable line."""
    environ = {"X": value, "ZEROBOT__AGENT__MAX_STEPS": value, "ZEROBOT__CHANNELS__TELEGRAM__KIND": value}
    file = ConfigFile(path=Path("FILE"), text=tomlkit.dumps(tree), mode=0o600)
    faults = [""]
    with suppress(ConfigError):
        examined = examine(file, environ, kinds)
        faults = fault_lines(file, examined) if examined.faults else faults
    assert faults
    assert all(line.isprintable() for line in faults)


def test_a_missing_file_that_was_named_is_an_error(kinds: Kinds, tmp_path: Path) -> None:
    """`--config` and `$ZEROBOT_CONFIG` never fall back to defaults."""
    path = tmp_path / "no.toml"
    for chosen, environ in ((path, {}), (None, {"ZEROBOT_CONFIG": str(path)})):
        with pytest.raises(ConfigError) as caught:
            load_config(chosen, environ, kinds)
        assert caught.value.faults == [f"{path}: there is no such file; write one with: zerobot init"]


def test_a_directory_is_no_file(kinds: Kinds, tmp_path: Path) -> None:
    """A directory in place of the file is told as such."""
    with pytest.raises(ConfigError, match="is a directory; name the file in it"):
        load_config(tmp_path, {}, kinds)


def test_other_encodings_are_refused(config: Path, kinds: Kinds) -> None:
    """A file that is not UTF-8 is one line with the place."""
    config.write_bytes(b'[agent]\nname = "J\xf6rg"\n')
    config.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        load_config(config, {}, kinds)
    assert caught.value.faults == [f"{config}:2: is not UTF-8 text; save the file as UTF-8"]


def test_an_empty_secret_file_is_named(faults: Faults, tmp_path: Path) -> None:
    """A fault of what a file holds is told at the key that names the file."""
    (tmp_path / "empty").write_text("\n")
    assert faults('[channels.telegram]\nbot_token_file = "empty"') == [
        f"FILE:2: channels.telegram.bot_token_file: is empty; from @BotFather; {WAY}"
    ]


def test_a_missing_secret_file_is_named(faults: Faults, tmp_path: Path) -> None:
    """A `KEY_file` that leads nowhere names the whole path."""
    assert faults('[channels.telegram]\nbot_token_file = "none"') == [
        f"FILE:2: channels.telegram.bot_token_file: there is no file {tmp_path / 'none'}"
    ]


def test_a_file_that_others_may_write_is_refused(config: Path, load: Load, kinds: Kinds) -> None:
    """Who may write the configuration may do anything: that is an error, with the command that mends it."""
    load("")
    config.chmod(0o602)
    with pytest.raises(ConfigError) as caught:
        load_config(config, {}, kinds)
    assert caught.value.faults == [f"{config}: may be written by everybody on this machine; run: chmod go-w {config}"]


@pytest.mark.parametrize(("token", "warned"), [("123:abcdefgh", True), ("${TOKEN}", False)])
def test_a_readable_file_with_a_secret_is_a_warning(
    config: Path, load: Load, kinds: Kinds, token: str, *, warned: bool
) -> None:
    """Others may read a configuration as long as no secret stands in it."""
    environ = {"TOKEN": "123:abcdefgh"}
    load(f'[channels.telegram]\nbot_token = "{token}"', **environ)
    config.chmod(0o644)
    warnings = load_config(config, environ, kinds).warnings
    expected = f"{config} holds channels.telegram.bot_token and may be read by others; run: chmod 600 {config}"
    assert (expected in warnings) is warned
