"""A table within a channel's table, `[channels.email.oauth2]`, behaves as every other one."""

from __future__ import annotations

from pathlib import Path

from tests.config.conftest import Faults, Load
from zerobot.config.editor import get, set_value, show
from zerobot.config.files import read_config
from zerobot.config.json_schema import json_schema
from zerobot.config.kinds import Kinds
from zerobot.config.loader import load_config

MAILBOX = """
[operators]
users = ["email:ann@example.test"]
[channels.email]
address = "bot@example.test"
imap_host = "imap.example.test"
smtp_host = "smtp.example.test"
trusted_authserv = ["mx.example.test"]
"""
TOKENS = """
[channels.email.oauth2]
client_id = "app-1"
client_secret = "secret-of-app"
refresh_token = "secret-of-ann"
token_url = "https://tokens.example.test/"
"""


def test_its_secrets_are_masked(config: Path, kinds: Kinds) -> None:
    """Each of its keys has a line of its own, and where it comes from."""
    config.write_text(MAILBOX + TOKENS)
    shown = show(read_config(config), {}, kinds)
    assert "secret-of" not in shown
    assert '[channels.email.oauth2]\nclient_id = "app-1"' in shown
    assert f'client_secret = "********"  # {config}:' in shown
    assert get(read_config(config), "channels.email.oauth2.refresh_token", {}, kinds) == "********"
    assert "secret-of" not in get(read_config(config), "channels.email", {}, kinds)


def test_that_it_is_absent_is_said(config: Path, kinds: Kinds) -> None:
    """As of every key that is not set."""
    config.write_text(MAILBOX + 'password = "secret-of-bot"')
    assert "# oauth2 is not set" in show(read_config(config), {}, kinds)


def test_its_literal_secrets_are_warned_about(config: Path, kinds: Kinds) -> None:
    """In a file that others may read."""
    config.write_text(MAILBOX + TOKENS)
    config.chmod(0o644)
    warnings = load_config(config, {}, kinds).warnings
    assert any("channels.email.oauth2.client_secret, channels.email.oauth2.refresh_token" in each for each in warnings)


def test_its_secrets_may_be_in_files(load: Load, tmp_path: Path) -> None:
    """Relative to the configuration, guarded from tools, and known to the redactor."""
    (tmp_path / "token").write_text("secret-of-ann\n")
    (tmp_path / "token").chmod(0o600)
    loaded = load(MAILBOX + TOKENS.replace('refresh_token = "secret-of-ann"', 'refresh_token_file = "token"'))
    assert ("channels.email.oauth2.refresh_token", "secret-of-ann") in loaded.secrets
    assert loaded.secret_files == (tmp_path / "token",)


def test_its_faults_name_its_keys(faults: Faults) -> None:
    """The nearest key, the way to give a secret, and no secret's value."""
    broken = TOKENS.replace("client_id", "client").replace('"secret-of-app"', "5550123")
    said = "\n".join(faults(MAILBOX + broken.replace("refresh_token", "refresh")))
    assert 'channels.email.oauth2.client: unknown key; did you mean "client_id"?' in said
    assert 'or refresh_token_file = "PATH"' in said
    assert "channels.email.oauth2.client_secret: is a whole number" in said
    assert "5550123" not in said


def test_the_schema_takes_its_files(kinds: Kinds) -> None:
    """An editor completes `refresh_token_file`, and lets it stand for the token."""
    inner = json_schema(kinds)["$defs"]["channel-email-OAuth2Settings"]
    assert "refresh_token_file" in inner["properties"]
    assert inner["required"] == ["client_id", "token_url"]


def test_an_override_reaches_into_it(load: Load) -> None:
    """By the same names, joined by two underscores."""
    loaded = load(MAILBOX + TOKENS, ZEROBOT__CHANNELS__EMAIL__OAUTH2__CLIENT_SECRET="12345678")
    assert ("channels.email.oauth2.client_secret", "12345678") in loaded.secrets


def test_one_text_for_a_list_is_its_only_element(config: Path, kinds: Kinds) -> None:
    """Who types `config set` need not know of brackets."""
    config.write_text(MAILBOX + 'password = "secret-of-bot"')
    set_value(read_config(config), "channels.email.allowed_users", "ann@example.test", {}, kinds)
    assert get(read_config(config), "channels.email.allowed_users", {}, kinds) == '["ann@example.test"]'
