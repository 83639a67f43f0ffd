"""Real mail servers, Dovecot and Postfix, for the tests of the e-mail channel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.channels.email.mailroom import mail
from tests.email.servers import MailServers
from tests.email.stage import BOT, MailStage
from tests.platforms.model_server import ModelServer

SCRIPT = Path(__file__).parents[2] / "scripts/mail_servers.py"
MANY = 50_000


@pytest.fixture(scope="session")
def mail_servers() -> Iterator[MailServers]:
    """One Dovecot and one Postfix for all tests of this process."""
    started = subprocess.run([sys.executable, SCRIPT, "start"], capture_output=True, text=True, check=False)
    if started.returncode:
        pytest.skip(started.stderr.strip())
    said: dict[str, Any] = json.loads(started.stdout)
    for name in ("dir", "refusal_file", "homes"):
        said[name] = Path(said[name])
    try:
        yield MailServers(**said)
    finally:
        subprocess.run([sys.executable, SCRIPT, "stop", said["dir"]], check=True)


@pytest.fixture
def big(mail_servers: MailServers) -> Iterator[str]:
    """An account with very many mails, put into its Maildir: many names of one file."""
    home = mail_servers.homes / "big"
    maildir = home / "Maildir"
    for name in ("cur", "new", "tmp"):
        (maildir / name).mkdir(parents=True, exist_ok=True)
    first = maildir / "cur/1700000000.M0.host:2,S"
    first.write_bytes(mail(1, body="x" * 1_000))
    owner = mail_servers.homes.stat()
    for path in [home, *home.rglob("*")]:
        os.chown(path, owner.st_uid, owner.st_gid)
    for number in range(1, MANY):
        os.link(first, maildir / f"cur/{1_700_000_000 + number}.M{number}.host:2,S")
    try:
        yield "big@example.test"
    finally:
        shutil.rmtree(home)


@pytest.fixture
async def stage(tmp_path: Path, mail_servers: MailServers) -> AsyncIterator[MailStage]:
    """A model, the servers and people; the daemon is started by the test."""
    for account in (BOT, "ann@example.test"):
        mail_servers.empty(account)
    async with ModelServer() as model:
        yield MailStage(tmp_path, model, mail_servers)
