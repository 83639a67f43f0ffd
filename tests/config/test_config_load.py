"""What a good configuration becomes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.conftest import Load
from zerobot.config.kinds import Kinds
from zerobot.config.loader import load_config
from zerobot.core.access import Autonomy
from zerobot.core.places import Identity
from zerobot.core.provider_kind import ProviderSettings

TELEGRAM = '[channels.telegram]\nbot_token = "123:abcdefgh"\n'
MAIN = '[agent]\nmodel = "main/m"\n[providers.main]\nkind = "openai"\n'


def test_without_a_file_the_defaults_count(kinds: Kinds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file at all gives the demo model, no channel, and the user's state directory."""
    monkeypatch.chdir(tmp_path)
    loaded = load_config(None, {"HOME": str(tmp_path)}, kinds)
    assert loaded.settings.agent.model == "demo/demo"
    assert loaded.settings.providers["demo"].kind == "demo"
    assert loaded.settings.channels == {}
    assert loaded.path is None
    assert loaded.state_dir.is_relative_to(tmp_path)
    assert loaded.workspace == loaded.state_dir / "workspace"
    assert (loaded.secrets, loaded.warnings) == ((), ())


def test_values_arrive_in_their_units(load: Load) -> None:
    """Durations are seconds, sizes are bytes, ids are texts, the dial is its own type."""
    text = '[daemon]\nshutdown_grace = "2m"\n[security]\nautonomy = "read_only"\napproval_timeout = 90\n' + TELEGRAM
    settings = load(text + 'allowed_users = [12, "@ann"]\nmax_attachment = "1KiB"\napproval_timeout = "1d"').settings
    assert settings.daemon.shutdown_grace == 120
    assert settings.security.autonomy is Autonomy.READ_ONLY
    assert settings.security.approval_timeout == 90
    telegram = settings.channels["telegram"]
    assert telegram.allowed_users == ("12", "@ann")
    assert telegram.approval_timeout == 86_400
    assert telegram.model_dump()["max_attachment"] == 1024


def test_kind_defaults_to_the_table_name(load: Load) -> None:
    """A second bot is another table with `kind`; the first needs none. The same holds for providers."""
    text = TELEGRAM + '[channels.other]\nkind = "telegram"\nbot_token = "456:abcdefgh"\n'
    settings = load(text + '[agent]\nmodel = "openai/m"\n[providers.openai]\napi_key = "sk-123456"').settings
    assert [(name, channel.kind) for name, channel in settings.channels.items()] == [
        ("telegram", "telegram"),
        ("other", "telegram"),
    ]
    assert settings.providers["openai"].kind == "openai"


def test_a_channel_has_the_agent_it_names(load: Load) -> None:
    """`[agents.NAME]` overrides single keys of `[agent]`, and a channel that names it gets the result."""
    text = '[agent]\nname = "Ann"\nmax_steps = 9\n[agents.brief]\nmax_steps = 2\n[channels.console]\n'
    settings = load(text + TELEGRAM + 'agent = "brief"').settings
    assert (settings.agent_for("telegram").name, settings.agent_for("telegram").max_steps) == ("Ann", 2)
    assert settings.agent_for("console").max_steps == 9
    assert settings.agent_for("no-such-table").max_steps == 9


def test_operators_on_a_platform_of_addresses_are_compared_in_lower_case(load: Load) -> None:
    """Nobody writes an address in the very case in which it comes; ids of other platforms stay as they are written."""
    mailbox = 'address = "bot@loft.test"\npassword = "secret word"\nimap_host = "a"\nsmtp_host = "b"\n'
    text = f'[channels.email]\n{mailbox}trusted_authserv = ["mx"]\n[channels.console]\n'
    operators = load(f'{text}[operators]\nusers = ["email:Ops@Loft.Test", "console:Ann"]').settings.operators
    assert operators.users == ("email:ops@loft.test", "console:Ann")


def test_operators_are_identities(load: Load) -> None:
    """The users of `[operators]` are read as identities, in their order."""
    settings = load('[operators]\nusers = ["telegram:111", "email:ops@example.com"]').settings
    assert settings.operators.identities == (Identity("telegram", "111"), Identity("email", "ops@example.com"))


def test_a_variable_is_put_in_its_place(load: Load) -> None:
    """`${NAME}` takes the environment's value, inside a text and in a list too; `$${` stays `${`."""
    text = '[agent]\nname = "${A}-${A}$${B}"\ntools = ["${A}"]'
    agent = load(text, A="x").settings.agent
    assert agent.name == "x-x${B}"
    assert agent.tools == ("x",)


def test_a_variable_is_expanded_once(load: Load) -> None:
    """What a variable holds is taken as it is, whatever it looks like."""
    assert load('[agent]\nname = "${A}"', A="${B} $${C}").settings.agent.name == "${B} $${C}"


def test_a_secret_comes_from_a_file(load: Load, tmp_path: Path) -> None:
    """`KEY_file` reads a secret from a file beside the configuration, without the line break at its end."""
    secret = tmp_path / "token"
    secret.write_text("123:abcdefgh\n")
    secret.chmod(0o600)
    loaded = load('[channels.telegram]\nbot_token_file = "token"\n[operators]\nusers = ["telegram:1"]')
    assert loaded.secrets == (("channels.telegram.bot_token", "123:abcdefgh"),)
    assert loaded.warnings == ()


def test_a_secret_file_that_others_read_is_a_warning(load: Load, tmp_path: Path) -> None:
    """A secret's file that others may read is told with the command that mends it."""
    secret = tmp_path / "key"
    secret.write_text("sk-123456789")
    secret.chmod(0o644)
    loaded = load(MAIN + f'api_key_file = "{secret}"')
    assert loaded.warnings == (f"{secret} may be read by others; run: chmod 600 {secret}",)


def test_instructions_come_from_a_file(load: Load, tmp_path: Path) -> None:
    """`instructions_file` is read as text; others may read it, it is no secret."""
    (tmp_path / "prompt.md").write_text("Be kind.\n\nBe brief.\n", encoding="utf-8")
    loaded = load('[agent]\ninstructions_file = "prompt.md"')
    assert loaded.settings.agent.instructions == "Be kind.\n\nBe brief."
    assert loaded.warnings == ()


def test_all_secrets_are_listed(load: Load) -> None:
    """Every secret comes with its key, for the redactor; nothing else does."""
    text = MAIN + 'api_key = "${KEY}"\n' + TELEGRAM + "[channels.console]\n"
    assert load(text, KEY="sk-123456").secrets == (
        ("providers.main.api_key", "sk-123456"),
        ("channels.telegram.bot_token", "123:abcdefgh"),
    )


def test_no_secret_is_in_a_representation(load: Load) -> None:
    """Settings can be printed: a secret never shows."""
    assert "abcdefgh" not in repr(load(TELEGRAM).settings)


@pytest.mark.parametrize("token", ["", 'bot_token = "${NOT_SET}"\n'])
def test_a_channel_that_is_off_may_lack_its_token(load: Load, token: str) -> None:
    """`enabled = false` is enough to start without the credentials of a channel."""
    assert load(f"[channels.telegram]\nenabled = false\n{token}").settings.channels == {}


def test_a_complete_channel_that_is_off_stays_visible(load: Load) -> None:
    """A channel that is off and complete is there, with its switch."""
    assert load(TELEGRAM + "enabled = false").settings.channels["telegram"].enabled is False


def test_another_server_needs_no_key(load: Load) -> None:
    """With `base_url` a provider may have no key: many local servers want none."""
    table: ProviderSettings = load(MAIN + 'base_url = "http://127.0.0.1:8080/v1"').settings.providers["main"]
    assert (table.key, table.base_url) == ("", "http://127.0.0.1:8080/v1")


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("ZEROBOT__AGENT__MAX_STEPS", "7", 7),
        ("ZEROBOT__AGENT__NAME", "42", "42"),
        ("ZEROBOT__AGENT__NAME", '"42"', "42"),
        ("ZEROBOT__AGENT__NAME", "two words", "two words"),
        ("ZEROBOT__AGENT__NAME", "${HOME}", "${HOME}"),
        ("ZEROBOT__AGENT__TURN_TIMEOUT", "2m", 120.0),
        ("ZEROBOT__AGENT__TOOLS", '["shell"]', ("shell",)),
    ],
)
def test_the_environment_overrides_a_key(load: Load, variable: str, value: str, expected: object) -> None:
    """`ZEROBOT__A__B` counts over the file; the value is TOML where it can be, else a text, and taken as it is."""
    agent = load('[agent]\nname = "file"\nmax_steps = 3\n', **{variable: value}).settings.agent
    assert getattr(agent, variable.rpartition("__")[2].lower()) == expected


def test_the_environment_finds_tables_by_name(load: Load) -> None:
    """Names compare without case, and an underscore stands for a hyphen; a secret stays a text."""
    text = '[channels.My-Bot]\nkind = "telegram"\nbot_token_file = "nowhere"\n'
    loaded = load(
        text,
        ZEROBOT__CHANNELS__MY_BOT__BOT_TOKEN="12345678",
        ZEROBOT__PROVIDERS__LOCAL__KIND="demo",
        ZEROBOT__AGENT__MODEL="local/x",
    )
    assert loaded.secrets == (("channels.My-Bot.bot_token", "12345678"),)
    assert loaded.settings.providers["local"].kind == "demo"


def test_paths_begin_where_they_should(load: Load, config: Path) -> None:
    """`state_dir` begins at the file's directory, `workspace` in the state directory."""
    loaded = load('[daemon]\nstate_dir = "state"\n[security]\nworkspace = "work"')
    assert loaded.state_dir == config.parent / "state"
    assert loaded.workspace == config.parent / "state" / "work"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"ZEROBOT_STATE_DIR": "/s", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/s"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/zerobot"),
    ],
)
def test_the_environment_says_where_the_state_is(load: Load, environ: dict[str, str], expected: str) -> None:
    """Without `state_dir` it is `$ZEROBOT_STATE_DIR`, else in the user's state directory."""
    assert str(load("", **environ).state_dir) == expected


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (TELEGRAM, "operators.users: is empty: tools that need an approval will be refused"),
        (
            '[operators]\nusers = ["fax:1"]',
            (
                "operators.users: fax:1: no such kind of channel; "
                "known: broken, console, discord, email, remote, slack, telegram"
            ),
        ),
        (
            '[operators]\nusers = ["telegram:1"]',
            'operators.users: no channel of kind "telegram" is enabled, so telegram:1 cannot be asked',
        ),
        (
            '[security]\nworkspace = "/no/such/place"',
            "security.workspace: there is no directory /no/such/place; it is made at the start",
        ),
        (
            TELEGRAM + "pairing = false",
            "channels.telegram: nobody can talk to the bot: allowed_users is empty and pairing is false",
        ),
        (
            '[channels.telegram]\nbot_token = "short"',
            "channels.telegram.bot_token: is shorter than 8 characters: is it whole?",
        ),
        (
            '[security]\nauto_approve = ["shell"]\ndenied_tools = ["shell"]',
            'security.auto_approve: "shell" is in denied_tools too, which counts',
        ),
        (
            '[security]\nallowed_paths = ["/a/b"]\nforbidden_paths = ["/a"]',
            'security.allowed_paths: "/a/b" is inside the forbidden "/a", which counts',
        ),
    ],
)
def test_what_is_rarely_meant_is_a_warning(load: Load, text: str, warning: str) -> None:
    """Contradictions and settings with which nothing can happen are told at the start."""
    assert warning in load(text).warnings


def test_nothing_slow_is_imported_to_start(tmp_path: Path) -> None:
    """Loading a good file imports no TOML editor, no HTTP client and no platform's library."""
    path = tmp_path / "zerobot.toml"
    path.write_text("[channels.console]\n")
    script = (
        "import sys; from pathlib import Path; from zerobot.config.loader import load_config;"
        "from tests.config.conftest import channel_kind; from channels.console.settings import ConsoleSettings;"
        "from zerobot.config.kinds import Kinds;"
        "kinds = Kinds({'console': lambda: channel_kind('console', ConsoleSettings)}, {'demo': lambda: None});"
        f"load_config(Path({str(path)!r}), {{}}, kinds);"
        "print([m for m in ('tomlkit', 'httpx', 'telegram', 'zerobot.config.editor') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "[]"
