"""What commands on the state make of a configuration that nobody could start a bot with."""

from pathlib import Path

import pytest

from zerobot.config.kinds import Kinds
from zerobot.config.loader import load_for_operators
from zerobot.core.errors import ConfigError

STATE = '[daemon]\nstate_dir = "here"\n'


def where(tmp_path: Path, kinds: Kinds, text: str) -> Path:
    path = tmp_path / "zerobot.toml"
    path.write_text(text, encoding="utf-8")
    return load_for_operators(path, {"HOME": str(tmp_path)}, kinds).state_dir


@pytest.mark.parametrize(
    "rest",
    [
        '[channels.telegram]\nbot_token = "${NOT_SET}"\n',
        '[agent]\nmodel = "nowhere/x"\nmax_stops = 3\n',
        '[providers.main]\nkind = "nonsense"\n[agent]\nmodel = "main/x"\n',
        "[agent]\nname = \n",
        "[agent\n",
        "nonsense\n",
        '[agent]\nname = "a"\nname = "b"\n[agent]\n',
        'x = "not closed\n',
    ],
)
def test_faults_elsewhere_do_not_matter(tmp_path: Path, kinds: Kinds, rest: str) -> None:
    """A missing secret, an unknown key, half a line: the state directory is known all the same."""
    assert where(tmp_path, kinds, STATE + rest) == tmp_path / "here"


@pytest.mark.parametrize(
    "text",
    [
        '[daemon]\nstate_dir = "${NOT_SET}"\n',
        "[daemon]\nstate_dir = 5\n",
        "[daemon]\nstate_dir = here\n",
        '[daemon\nstate_dir = "here"\n',
        "daemon = 7\n",
    ],
)
def test_an_unknown_state_directory_is_never_guessed(tmp_path: Path, kinds: Kinds, text: str) -> None:
    """What acted on another bot's state would be worse than nothing."""
    with pytest.raises(ConfigError):
        where(tmp_path, kinds, text)


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path, kinds: Kinds) -> None:
    """It was named, so its state directory is meant."""
    with pytest.raises(ConfigError, match="no such file"):
        load_for_operators(tmp_path / "none.toml", {}, kinds)
