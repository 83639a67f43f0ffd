"""What a mailbox's table takes, and what it says of what it does not take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from channels.email.settings import EmailSettings

TABLE: dict[str, Any] = {
    "address": "bot@bots.test",
    "password": "secret-1234",
    "imap_host": "imap.bots.test",
    "smtp_host": "smtp.bots.test",
    "trusted_authserv": ["mx.bots.test"],
}


def settings(**changes: object) -> EmailSettings:
    return EmailSettings.model_validate(TABLE | changes)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("address", "Zero <bot@bots.test>", "is no address; write"),
        ("address", "bot@ü..test", "is no address; write"),
        ("aliases", ["bot"], "is no address; write"),
        ("imap_host", "imap.bots.test:993", "is no host; write"),
        ("imap_host", "", "at least 1 character"),
        ("smtp_host", "smtps://smtp.bots.test", "is no host; write"),
        ("tls_ca_file", "ca.pem", "is relative; write an absolute path"),
        ("allowed_users", ["ann"], "'ann' is no address and no domain; write"),
        ("allowed_users", ["Ann <ann@example.test>"], "is no address and no domain; write"),
        ("allowed_users", ["email:ann@example.test"], "is no address and no domain; write"),
        ("allowed_users", ["@"], "'@' is no address and no domain; write"),
        ("allowed_users", ["*@example.test"], "is no address and no domain; write"),
        ("trusted_authserv", ["mx.bots.test; dmarc=pass"], "is no id; write the first word"),
        ("trusted_authserv", ["Authentication-Results: mx.bots.test"], "is no id; write the first word"),
        ("trusted_authserv", ["*"], "is no id; write the first word"),
        ("trusted_authserv", [], "trusted_authserv is empty"),
        ("smtp_security", "none", "would send the password and all mail in the open"),
        ("password", None, "needs either password or an oauth2 table"),
    ],
)
def test_a_slip_is_told(key: str, value: object, says: str) -> None:
    """Nothing that cannot work waits for the first mail to show it."""
    with pytest.raises(ValidationError, match=says):
        settings(**{key: value})


@pytest.mark.parametrize("host", ["localhost", "imap.bots.test", "imap.bots.test.", "192.0.2.1", "2001:db8::1"])
def test_a_host_is_a_name_or_an_address(host: str) -> None:
    """The port has a key of its own."""
    assert settings(imap_host=host).imap_host == host


def test_addresses_are_kept_as_mails_have_them() -> None:
    """In lower case, domains in ASCII: that is what senders and recipients are compared with."""
    table = settings(
        address="Bot@Bücher.test", aliases=["Info@BÜCHER.test"], allowed_users=["Ann@Bücher.test", "@Bücher.test", "*"]
    )
    assert table.own_addresses == {"bot@xn--bcher-kva.test", "info@xn--bcher-kva.test"}
    assert table.allowed_users == ("ann@xn--bcher-kva.test", "@xn--bcher-kva.test", "*")


def test_a_file_in_the_home_directory_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As every other path of the configuration may."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings(tls_ca_file="~/ca.pem").tls_ca_file == str(tmp_path / "ca.pem")
    assert settings().tls_ca_file == ""
