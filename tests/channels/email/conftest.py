"""What the tests of the e-mail channel share."""

from __future__ import annotations

import shutil

import pytest

from tests.platforms.certificates import Authority, make_authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority of this session."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    return make_authority(tmp_path_factory.mktemp("authority"))
