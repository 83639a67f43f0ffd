"""What every settings table is made of: a strict frozen model, durations, sizes, secrets, paths."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    Strict,
    WithJsonSchema,
)

_ENDLESS = 10**15
"""What no duration in seconds and no size in bytes exceeds; arithmetic is exact up to here."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
}
# What is wrong begins with a verb: who reports it puts the key, and the value unless it may be secret, before it.
NO_DURATION = 'is no duration; write "90s", "10m", "2h", "1d" or a number of seconds, 0 or more'
NO_SIZE = 'is no size; write "20MB", "512KiB" or a number of bytes, 0 or more'
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?([smhd]?)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMG]?i?B|B?)", re.IGNORECASE)


class Section(BaseModel):
    """A table of the configuration: an unknown key or a wrong type is an error, and nothing changes it later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True, slots=True)
class FromFile:
    """Marks a text `KEY` that `KEY_file` may name a file for. Secrets have this without the mark."""


def parse_duration(value: object) -> object:
    """Read `"90s"`, `"10m"`, `"2h"`, `"1d"` or a number of seconds.

    Returns:
        Seconds as a float.

    Raises:
        ValueError: It is none of these, negative, or not finite.
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            raise ValueError(NO_DURATION)
        value = float(match[1]) * _SECONDS[match[2] or "s"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(NO_DURATION)  # noqa: TRY004 -- pydantic wants ValueError
    if not 0 <= value <= _ENDLESS:  # not-a-number is in no range either
        raise ValueError(NO_DURATION)
    return float(value)


def format_duration(seconds: float) -> str:
    """Write seconds as `parse_duration` reads them, in the largest unit that needs no fraction."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds:.15g}s"


def parse_size(value: object) -> object:
    """Read `"20MB"`, `"512KiB"` or a number of bytes. KB, MB, GB count in thousands, KiB, MiB, GiB in 1024s.

    Returns:
        Bytes as an int.

    Raises:
        ValueError: It is none of these, or negative.
    """
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError(NO_SIZE)
        exact = float(match[1]) * _BYTES[match[2].upper() or "B"]
        value = int(exact) if exact <= _ENDLESS else -1
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(NO_SIZE)  # noqa: TRY004 -- pydantic wants ValueError
    if not 0 <= value <= _ENDLESS:
        raise ValueError(NO_SIZE)
    return value


def format_size(size: int) -> str:
    """Write bytes as `parse_size` reads them, in the largest unit of thousands that needs no fraction."""
    for unit in ("GB", "MB", "KB"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return f"{size}B"


def _one_line(secret: SecretStr) -> SecretStr:
    if any(ord(character) < 32 or ord(character) == 127 for character in secret.get_secret_value()):
        raise ValueError("contains a line break or another control character; write the secret alone, on one line")
    return secret


def web_address(text: str) -> str:
    """Check an http or https address.

    Raises:
        ValueError: It is none, or has no host.
    """
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError('is no web address; write "https://HOST" or "http://HOST:PORT"')
    return text


def _path(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not value or "\0" in value:
        raise ValueError("is empty; write a path")
    # pathlib's own raises when the home directory of `~name` is not known; this leaves the text.
    return Path(os.path.expanduser(value))  # noqa: PTH111


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("is relative; write an absolute path, or one that begins with ~/")
    return path


def _user(value: object) -> object:
    """Platforms have numeric ids, and people write them as numbers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _path_text(path: Path) -> str:
    return str(path)


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": ["string", "number"], "pattern": "^[0-9]+([.][0-9]+)? ?[smhd]?$", "minimum": 0}),
]
"""Seconds."""

Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(format_size, return_type=str, when_used="json"),
    WithJsonSchema(
        {"type": ["string", "integer"], "pattern": "^[0-9]+([.][0-9]+)? ?([KMGkmg]?i?[Bb])?$", "minimum": 0}
    ),
]
"""Bytes."""

Secret = Annotated[SecretStr, Field(min_length=1), AfterValidator(_one_line)]
"""A token or password; `KEY_file` may name a file that holds it. Never shown."""

WebAddress = Annotated[str, AfterValidator(web_address)]
"""An http or https address with a host."""

FilePath = Annotated[
    Path,
    BeforeValidator(_path),
    PlainSerializer(_path_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
"""A path; a leading `~` is the home directory."""

AbsolutePath = Annotated[FilePath, AfterValidator(_absolute)]
"""A path that does not depend on where the daemon was started."""

Text = Annotated[str, Field(min_length=1)]
"""A text that says something."""

Texts = Annotated[tuple[Text, ...], Strict(strict=False)]
"""A list of texts. Not strict only in that TOML's arrays come as lists."""

Paths = Annotated[tuple[AbsolutePath, ...], Strict(strict=False)]
"""A list of absolute paths."""

Users = Annotated[
    tuple[Annotated[Text, BeforeValidator(_user, json_schema_input_type=str | int)], ...], Strict(strict=False)
]
"""A list of a platform's ids or names; numbers are read as texts."""
