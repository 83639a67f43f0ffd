"""Where the configuration and the state are, and whether others may touch them."""

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from zerobot.core.errors import ConfigError

NAME = "zerobot.toml"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file that was read."""

    path: Path
    text: str
    mode: int
    """Permission bits."""


def find_config(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Choose the file: the given one, `$ZEROBOT_CONFIG`, `./zerobot.toml`, the user's; None when there is none.

    A file that somebody named is chosen even if it does not exist, so that this is noticed.
    """
    if path is not None:
        return Path(os.path.expanduser(path))  # noqa: PTH111 -- never raises
    if named := environ.get("ZEROBOT_CONFIG"):
        return Path(os.path.expanduser(named))  # noqa: PTH111 -- never raises
    for candidate in (Path(NAME), _user_dir(environ, "XDG_CONFIG_HOME", ".config") / "zerobot" / NAME):
        if candidate.exists():
            return candidate
    return None


def default_state_dir(environ: Mapping[str, str]) -> Path:
    """Where the state is kept if the configuration does not say: `$ZEROBOT_STATE_DIR`, else the user's state."""
    if named := environ.get("ZEROBOT_STATE_DIR"):
        return Path(os.path.expanduser(named)).absolute()  # noqa: PTH111 -- never raises
    return _user_dir(environ, "XDG_STATE_HOME", ".local/state") / "zerobot"


def _user_dir(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """A directory of the XDG base directory specification (freedesktop.org); on macOS, unless set, Apple's place."""
    named = environ.get(variable, "")
    if named.startswith("/"):  # The specification: relative paths are invalid and are ignored.
        return Path(named)
    home = Path(environ.get("HOME") or Path.home())
    return home / ("Library/Application Support" if sys.platform == "darwin" else fallback)


def read_config(path: Path) -> ConfigFile:
    """Read a configuration file.

    Raises:
        ConfigError: It is missing, no readable file of UTF-8 text, or others may write it.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read()
    except FileNotFoundError:
        raise ConfigError([f"{path}: there is no such file; write one with: zerobot init"]) from None
    except IsADirectoryError:
        raise ConfigError([f"{path}: is a directory; name the file in it, for example {path / NAME}"]) from None
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    if writers := _foreign_writers(status):
        raise ConfigError([f"{path}: may be written by {writers}; run: chmod go-w {path}"])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([f"{path}:{line}: is not UTF-8 text; save the file as UTF-8"]) from None
    return ConfigFile(path=path, text=text, mode=stat.S_IMODE(status.st_mode))


def _foreign_writers(status: os.stat_result) -> str:
    """Who else may write a file, in words; empty when nobody.

    Our own group counts as ourselves: many systems give each user a group and a umask that lets it write.
    """
    if not stat.S_ISREG(status.st_mode):  # /dev/null, a pipe: nothing that keeps what was written.
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "everybody on this machine"
    if status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid():
        return "another group"
    return ""


def read_value_file(path: Path) -> tuple[str, str]:
    """Read the file that a `KEY_file` names.

    Returns:
        Its text without the line break at its end, and a warning (empty: none).

    Raises:
        ValueError: It cannot be used; the text says why.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read().decode("utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    if stat.S_ISREG(mode) and mode & stat.S_IWOTH:
        raise ValueError(f"{path} may be written by everybody on this machine; run: chmod o-w {path}")
    warning = f"{path} may be read by others; run: chmod 600 {path}" if mode & stat.S_IROTH else ""
    return text.removesuffix("\n").removesuffix("\r"), warning
