"""Real mail servers, Dovecot and Postfix, for the tests of the e-mail channel."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.email.servers import MailServers
from tests.email.stage import BOT, MailStage
from tests.platforms.model_server import ModelServer

SCRIPT = Path(__file__).parents[2] / "scripts/mail_servers.py"


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
async def stage(tmp_path: Path, mail_servers: MailServers) -> AsyncIterator[MailStage]:
    """A model, the servers and people; the daemon is started by the test."""
    mail_servers.empty(BOT)
    async with ModelServer() as model:
        yield MailStage(tmp_path, model, mail_servers)
