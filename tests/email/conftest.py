"""Real mail servers, Dovecot and Postfix, for the tests of the e-mail channel."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import smtplib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/mail_servers.py"


@dataclass(frozen=True, slots=True)
class MailServers:
    """Where they are and who has an account: what `scripts/mail-servers start` says."""

    host: str
    ports: Mapping[str, int]
    """`imap` (plain, and STARTTLS), `imaps`; `smtp`, `smtp_starttls`, `smtps` (with a login); `mx` (without)."""
    accounts: Mapping[str, str]
    """Addresses and passwords."""
    ca_file: str
    other_ca_file: str
    """Of an authority that has signed nothing here."""
    refusal_file: Path
    """While it is there, its line answers each recipient: `450 4.7.1 come again`."""
    homes: Path
    """Each account has a folder of its name, with a Maildir."""
    dovecot_conf: str
    jwt_secret: str

    def deliver(self, raw: bytes, to: str, sender: str = "ann@example.test") -> None:
        """Hand a mail in from outside."""
        with smtplib.SMTP("127.0.0.1", self.ports["mx"], timeout=30) as smtp:
            smtp.sendmail(sender, [to], raw)

    def token(self, user: str, seconds: int = 600) -> str:
        """An access token that Dovecot takes."""
        now = int(time.time())
        signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part({'sub': user, 'iat': now - 5, 'exp': now + seconds})}"
        mac = hmac.new(self.jwt_secret.encode(), signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"

    def dovecot(self, *command: str) -> None:
        """Start Dovecot again (no words), or `stop` it."""
        # Not by a pipe: a server that goes on holds its end open.
        nowhere = subprocess.DEVNULL
        subprocess.run(["dovecot", "-c", self.dovecot_conf, *command], check=True, stdout=nowhere, stderr=nowhere)

    def empty(self, account: str) -> None:
        """Throw all mail of an account away, by `doveadm`; its folders stay."""
        command = ["doveadm", "-c", self.dovecot_conf, "expunge", "-u", account, "mailbox", "*", "all"]
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="session")
def mail_servers() -> Iterator[MailServers]:
    """One Dovecot and one Postfix for all tests of this process."""
    started = subprocess.run([sys.executable, SCRIPT, "start"], capture_output=True, text=True, check=False)
    if started.returncode:
        pytest.skip(started.stderr.strip())
    said: dict[str, Any] = json.loads(started.stdout)
    directory = said.pop("dir")
    for name in ("refusal_file", "homes"):
        said[name] = Path(said[name])
    try:
        yield MailServers(**said)
    finally:
        subprocess.run([sys.executable, SCRIPT, "stop", directory], check=True)


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
