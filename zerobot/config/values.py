"""What fills a document before it is checked: `ZEROBOT__A__B`, `${NAME}`, and the files that hold secrets."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from zerobot.config.faults import Fault
from zerobot.config.files import read_value_file
from zerobot.config.keys import KeyPath
from zerobot.config.tables import FILE, Tables, file_keys, is_list, is_text

PREFIX = "ZEROBOT__"
_VARIABLE = re.compile(r"\$(\$?)\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Override:
    """An environment variable that stands for a key."""

    path: KeyPath
    variable: str
    text: str


def parse_value(text: str) -> object:
    """Read a value as TOML has it; what is not TOML is a text itself."""
    try:
        return tomllib.loads(f"x = {text}")["x"] if "\n" not in text else text
    except (ValueError, RecursionError):
        return text


def value_for(tables: Tables, path: KeyPath, text: str) -> object:
    """Read a value for a key: where only a text can be, `42` is one too; a text for a list is its one element."""
    value = parse_value(text)
    known = tables.field(path)
    if isinstance(value, str) and known is not None and is_list(known) and not isinstance(path[-1], int):
        return [value]
    if isinstance(value, str) or known is None:
        # A path to a secret's file has no field, but is a text all the same.
        return value if isinstance(value, str) or not str(path[-1]).endswith(FILE) else text
    return text if is_text(known) else value


def apply_overrides(tree: dict[str, object], environ: Mapping[str, str]) -> tuple[list[Override], list[Fault]]:
    """Put the values of `ZEROBOT__A__B` variables into the tree, in place of the file's.

    Names compare without case, and an underscore also stands for a hyphen; a name that the file does not have is
    taken in lower case.
    """
    overrides: list[Override] = []
    faults: list[Fault] = []
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        names = variable[len(PREFIX) :].split("__")
        if not all(names):
            faults.append(Fault((), f"names no key; write for example {PREFIX}AGENT__MAX_STEPS", variable))
            continue
        override = _apply(tree, names, variable, environ[variable])
        if isinstance(override, Fault):
            faults.append(override)
        else:
            overrides.append(override)
    return overrides, faults


def _apply(tree: dict[str, object], names: list[str], variable: str, text: str) -> Override | Fault:
    table: dict[str, object] = tree
    path: KeyPath = ()
    for name in names[:-1]:
        key = _same(table, name)
        path = (*path, key)
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            return Fault(path, "is no table, so no key of it can be set", variable)
        table = inner
    key = _same(table, names[-1])
    # The same secret by another key is overridden too.
    table.pop(key.removesuffix(FILE) if key.endswith(FILE) else key + FILE, None)
    table[key] = parse_value(text)
    return Override((*path, key), variable, text)


def _same(table: Mapping[str, object], name: str) -> str:
    wanted = name.lower().replace("-", "_")
    return next((key for key in table if key.lower().replace("-", "_") == wanted), name.lower())


def settle_overrides(tree: dict[str, object], overrides: list[Override], tables: Tables) -> None:
    """Read the overrides once more, now that it is known which keys take a text."""
    for override in overrides:
        table = _parent(tree, override.path)
        if table is not None:
            table[str(override.path[-1])] = value_for(tables, override.path, override.text)


def _parent(tree: dict[str, object], path: KeyPath) -> dict[str, object] | None:
    here: object = tree
    for part in path[:-1]:
        here = here.get(str(part)) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else None


@dataclass(frozen=True, slots=True)
class Expansion:
    """What became of the `${NAME}` in a document."""

    environ: Mapping[str, str]
    skip: Callable[[KeyPath], bool]
    """Whether the value at a path came from the environment as a whole and is taken as it is."""
    faults: list[Fault] = field(default_factory=list)
    expanded: dict[KeyPath, tuple[str, ...]] = field(default_factory=dict)
    """The variables whose values are at a path now."""

    def value(self, path: KeyPath, value: object) -> object:
        """A value with the variables in place; tables are changed where they are."""
        if self.skip(path):
            return value
        if isinstance(value, str):
            return self._text(path, value) if "${" in value else value
        if isinstance(value, list):
            return [self.value((*path, index), element) for index, element in enumerate(value)]
        if isinstance(value, dict):
            for key, inner in value.items():
                value[key] = self.value((*path, key), inner)
        return value

    def _text(self, path: KeyPath, text: str) -> str:
        names = [match[2] for match in _VARIABLE.finditer(text) if not match[1]]
        for name in names:
            if not _NAME.fullmatch(name):
                self.faults.append(Fault(path, f"${{{name}}} names no variable; write ${{NAME}}, or $${{ for ${{"))
            elif name not in self.environ:
                self.faults.append(Fault(path, f"the environment variable {name} is not set; set it"))
        if names:
            self.expanded[path] = tuple(names)
        return _VARIABLE.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        return "${" + match[2] + "}" if match[1] else self.environ.get(match[2], match[0])


def expand(tree: dict[str, object], environ: Mapping[str, str], skip: Callable[[KeyPath], bool]) -> Expansion:
    """Replace `${NAME}` in every text of the tree by the environment's value; `$${` is a plain `${`.

    `skip` says whether the value at a path came from the environment as a whole and is taken as it is.
    """
    expansion = Expansion(environ, skip)
    expansion.value((), tree)
    return expansion


@dataclass(frozen=True, slots=True)
class FileValues:
    """What became of the `KEY_file` in a document."""

    faults: list[Fault]
    warnings: list[str]
    files: dict[KeyPath, str]
    """The files whose text is at a path now, as they were named."""


def read_files(tree: dict[str, object], tables: Tables, base: Path) -> FileValues:
    """Replace each `KEY_file` by `KEY` with what the file holds; relative paths begin at `base`."""
    result = FileValues([], [], {})
    for home, model in tables.walk(tree):
        table = _parent(tree, (*home, ""))
        for file_key, key in file_keys(model).items() if table else ():
            assert table is not None
            if file_key not in table:
                continue
            named, path = table.pop(file_key), (*home, key)
            if key in table:
                result.faults.append(Fault((*home, file_key), f"is set together with {key}; keep one of the two"))
                continue
            table[key] = "(unreadable)"
            if not isinstance(named, str) or not named:
                result.faults.append(Fault((*home, file_key), "is no file's name; allowed: a path in quotes"))
                continue
            try:
                table[key], warning = read_value_file(base / os.path.expanduser(named))  # noqa: PTH111 -- never raises
            except ValueError as error:
                result.faults.append(Fault((*home, file_key), str(error)))
                continue
            result.files[path] = named
            secret = model.model_fields[key].annotation is not str
            result.warnings.extend([warning] if warning and secret else [])
    return result
