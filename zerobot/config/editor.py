"""Reading and changing single keys: `zerobot config show`, `get`, `set`."""

import json
import os
import stat
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from pydantic import BaseModel

from zerobot.config.files import ConfigFile
from zerobot.config.keys import KeyPath, dotted, lookup, parse_key
from zerobot.config.kinds import Kinds
from zerobot.config.loader import Examined, examine, fault_lines, load_file
from zerobot.config.positions import find_lines
from zerobot.config.tables import inner_tables, is_secret
from zerobot.config.values import value_for
from zerobot.core.errors import ConfigError

MASK = "********"


@dataclass(frozen=True, slots=True)
class Shown:
    """One key as it counts now."""

    path: KeyPath
    value: object
    """As TOML would have it; durations and sizes as texts, secrets masked; None: not set."""
    origin: str
    """Where the value comes from: `FILE:LINE`, a variable, a file, or `default`."""


def effective(file: ConfigFile | None, environ: Mapping[str, str], kinds: Kinds) -> list[Shown]:
    """Every key that counts, in the schema's order; of a further agent only the keys that it overrides.

    Raises:
        ConfigError: The configuration cannot be used.
    """
    examined = examine(file, environ, kinds)
    if examined.faults:
        raise ConfigError(fault_lines(file, examined))
    lines = find_lines(file.text) if file else {}
    shown: list[Shown] = []
    for home, model in examined.tables.walk(examined.tree):
        table = _table(examined.settings, home)
        if not home or table is None:
            continue
        values = table.model_dump(mode="json")
        for name, field in model.model_fields.items():
            if home[0] == "agents" and name not in table.model_fields_set:
                continue
            if isinstance(values[name], dict) and name in inner_tables(model):
                continue  # It has rows of its own.
            value = MASK if is_secret(field) and values[name] is not None else values[name]
            path = (*home, name)
            shown.append(Shown(path, value, _origin(path, examined, lines, file)))
    return shown


def _table(settings: BaseModel, path: KeyPath) -> BaseModel | None:
    """The settings at the path of a table; None for a channel that is off and incomplete."""
    here: object = settings
    for part in path:
        here = here.get(part) if isinstance(here, dict) else getattr(here, str(part))
    return here if isinstance(here, BaseModel) else None


def _origin(path: KeyPath, examined: Examined, lines: Mapping[KeyPath, int], file: ConfigFile | None) -> str:
    for place, origin in examined.origins.items():
        if path[: len(place)] == place or place[: len(path)] == path:
            return origin
    return f"{file.path}:{lines[path]}" if file and path in lines else "default"


def show(file: ConfigFile | None, environ: Mapping[str, str], kinds: Kinds) -> str:
    """The configuration that counts as TOML, each key with where it comes from; secrets are masked.

    Raises:
        ConfigError: It cannot be used.
    """
    loaded = load_file(file, environ, kinds)
    rows = effective(file, environ, kinds)
    head = [
        f"# config: {loaded.path or 'none, these are the defaults'}",
        f"# state directory: {loaded.state_dir}",
        f"# workspace: {loaded.workspace}{'' if loaded.path else ' (of zerobot chat: the current directory)'}",
    ]
    return "\n".join([*head, *_toml(rows)]) + "\n"


def _toml(rows: list[Shown]) -> list[str]:
    lines: list[str] = []
    home: KeyPath = ()
    for row in rows:
        if row.path[:-1] != home:
            home = row.path[:-1]
            lines += ["", f"[{dotted(home)}]"]
        key = dotted(row.path[-1:])
        lines.append(
            f"# {key} is not set" if row.value is None else f"{key} = {write_value(row.value)}  # {row.origin}"
        )
    return lines


def write_value(value: object) -> str:
    """Write a value as TOML: a text, a number, a truth value, or a list of them."""
    if isinstance(value, str):
        # JSON's strings are TOML's, but for DEL, which TOML wants escaped too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(write_value(element) for element in value) + "]"
    return str(value)


def get(file: ConfigFile | None, key: str, environ: Mapping[str, str], kinds: Kinds) -> str:
    """The value of one key: a text plainly, anything else as TOML; of a table, all its keys.

    Raises:
        ConfigError: There is no such key, or the configuration cannot be used.
    """
    path = _parsed(key)
    rows = effective(file, environ, kinds)
    for row in rows:
        if row.path == path:
            return row.value if isinstance(row.value, str) else "" if row.value is None else write_value(row.value)
    below = [row for row in rows if row.path[: len(path)] == path]
    if below:
        return "\n".join(_toml(below)).lstrip("\n")
    close = get_close_matches(key, [dotted(row.path) for row in rows], n=3)
    meant = f"; did you mean {' or '.join(close)}?" if close else ""
    raise ConfigError([f"{key}: {_unknown(path, examine(file, environ, kinds))}{meant}"])


def _parsed(key: str) -> KeyPath:
    try:
        return parse_key(key)
    except ValueError as error:
        raise ConfigError([str(error)]) from None


def _unknown(path: KeyPath, examined: Examined) -> str:
    """Why a key cannot be read: no table has it, or this one does not."""
    if examined.tables.field(path) is not None:
        return "is not set"
    known = examined.tables.keys(path[:-1])
    group = lookup(examined.tree, path[:-1])
    names = known or (sorted(str(name) for name in group) if isinstance(group, dict) else [])
    if not names:
        tables = ", ".join(examined.tables.keys(()))
        return f"there is no such key: there is no table [{dotted(path[:-1])}]; tables: {tables}"
    return f"there is no such key; known here: {', '.join(names)}"


def set_value(file: ConfigFile, key: str, text: str, environ: Mapping[str, str], kinds: Kinds) -> list[str]:
    """Change one key in the file, comments and order untouched, if what comes out has no new fault.

    Args:
        file: As it was read.
        key: Dotted; a table that is not there is made.
        text: The value as TOML has it; where only a text can be, the text itself.
        environ: The environment.
        kinds: What can stand behind a `kind`.

    Returns:
        Warnings that the change brings.

    Raises:
        ConfigError: It was refused or could not be written; the file is as it was.
    """
    path = _parsed(key)
    before = examine(file, environ, kinds)
    value = value_for(before.tables, path, text)
    changed = replace(file, text=_edited(file.text, path, value))
    after = examine(changed, environ, kinds)
    old = {(fault.path, fault.text) for fault in before.faults}
    new = [fault for fault in after.faults if (fault.path, fault.text) not in old]
    if new:
        raise ConfigError(fault_lines(changed, replace(after, faults=new)))
    _write(file, changed.text)
    hiding = after.overridden.get(path)
    warnings = [warning for warning in after.warnings if warning not in before.warnings]
    return [f"{key}: {hiding} is set in this environment and counts instead", *warnings] if hiding else warnings


def _edited(text: str, path: KeyPath, value: object) -> str:
    """The text with one value changed."""
    # Only here: reading a configuration to start must not pay for it.
    from zerobot.config.rewrite import rewritten  # noqa: PLC0415

    expected: dict[str, object] = tomllib.loads(text)
    _put(expected, path, value)
    result = rewritten(text, path, value)
    if result is None or tomllib.loads(result) != expected:
        raise ConfigError([f"{dotted(path)}: cannot be changed where it stands; change it with an editor"])
    return result


def _put(tree: dict[str, object], path: KeyPath, value: object) -> None:
    """Put a value into a plain tree: what the edited text must say."""
    table = tree
    for length, part in enumerate(path[:-1], 1):
        inner = table.setdefault(str(part), {})
        if not isinstance(inner, dict):
            raise ConfigError([f"{dotted(path[:length])}: is no table, so it has no keys"])
        table = inner
    table[str(path[-1])] = value


def _write(file: ConfigFile, text: str) -> None:
    """Replace the file in one step, with the mode and the owner that it had; a link to it stays one."""
    target = Path(os.path.realpath(file.path))
    try:
        if target.read_bytes().decode("utf-8-sig") != file.text:
            raise ConfigError([f"{file.path}: was changed meanwhile; nothing was written"])
        status = target.stat()
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "wb") as temporary:
                temporary.write(text.encode())
                temporary.flush()
                # Root edits for others; whoever is not root owns the file, or may keep it only as their own.
                with suppress(PermissionError):
                    os.fchown(temporary.fileno(), status.st_uid, status.st_gid)
                os.fchmod(temporary.fileno(), stat.S_IMODE(status.st_mode))
                os.fsync(temporary.fileno())
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise ConfigError([f"{file.path}: cannot be written: {error.strerror}"]) from None
