"""What the tests of the e-mail channel share."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.channels.email.town import EmailTown
from tests.platforms.certificates import Authority, make_authority
from tests.platforms.imap_server import PASSWORD, USER, ImapServer
from tests.platforms.model_server import ModelServer
from tests.platforms.smtp_server import SmtpServer


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[EmailTown]:
    """Both servers, people and a model; whoever breaks a rule of a protocol fails the test."""
    async with (
        ModelServer(models=("m-1",)) as model,
        ImapServer() as imap,
        SmtpServer(accounts={USER: PASSWORD}) as smtp,
    ):
        yield EmailTown(tmp_path, model, imap, smtp)
        assert imap.faults == []
        assert smtp.notes.faults == []


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority of this session."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    return make_authority(tmp_path_factory.mktemp("authority"))
