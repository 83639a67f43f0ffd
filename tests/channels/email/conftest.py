"""What the tests of the e-mail channel share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.channels.email.mailroom import make_certificates
from tests.platforms.certificates import Authority, make_authority


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca.pem`, what it has signed (`localhost.pem`, `elsewhere.pem`), and `other.pem`, a stranger's."""
    _need_openssl()
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority of this session."""
    _need_openssl()
    return make_authority(tmp_path_factory.mktemp("authority"))


def _need_openssl() -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
