"""From a file and an environment to settings, or to all the faults that stand between."""

import copy
import re
import stat
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from zerobot.config import later
from zerobot.config.checks import cross_faults, secrets, warnings
from zerobot.config.faults import Explainer, Fault, describe
from zerobot.config.files import ConfigFile, default_state_dir, find_config, read_config
from zerobot.config.keys import KeyPath, dotted, lookup, matches
from zerobot.config.kinds import Kinds, installed_kinds
from zerobot.config.resolve import is_off, resolve_kinds
from zerobot.config.schema import Settings
from zerobot.config.tables import FILE, GROUPS, Tables, is_secret
from zerobot.config.values import apply_overrides, expand, read_files, settle_overrides
from zerobot.core.errors import ConfigError
from zerobot.core.places import Identity

_DEPTH = 40
_MENDED_LINES = 20
_TWICE = {
    "Cannot overwrite a value": "this key is there already; keep one of the two",
    "Duplicate inline table key": "this key is there already; keep one of the two",
    "Cannot mutate immutable namespace": "this table was written in braces already; put its keys in there",
    "Cannot redefine namespace": "this key is there already, as a table",
}
_SYNTAX = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A configuration that can be used."""

    settings: Settings
    path: Path | None
    """The file; None when there was none."""
    state_dir: Path
    """Absolute."""
    workspace: Path
    """Absolute."""
    secrets: tuple[tuple[str, str], ...]
    """(key, value) of every secret, in clear, for the redactor."""
    secret_files: tuple[Path, ...]
    """The files that secrets and texts were read from; absolute. No tool may touch them."""
    warnings: tuple[str, ...]
    """What is worth a line at the start."""
    kinds: Kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a document says, whether it can be used or not."""

    settings: Settings
    """All of it that is valid by itself."""
    faults: list[Fault]
    warnings: list[str]
    tables: Tables
    tree: Mapping[str, object]
    """The document with all values in their places."""
    origins: Mapping[KeyPath, str]
    """Values that are not written in the file: an environment variable's name, or a file's."""
    overridden: Mapping[KeyPath, str]
    """By path, the `ZEROBOT__A__B` variables."""
    files: tuple[Path, ...]
    """What `*_file` keys name; absolute."""


def load_config(path: Path | None, environ: Mapping[str, str], kinds: Kinds | None = None) -> LoadedConfig:
    """Load the configuration; without any file, the defaults: the demo model and no channel.

    Args:
        path: The file that was asked for; None: the first that `find_config` finds.
        environ: The environment.
        kinds: What can stand behind a `kind`; None: what is installed.

    Raises:
        ConfigError: It cannot be used; every fault is in it, one line each.
    """
    found = find_config(path, environ)
    file = read_config(found) if found is not None else None
    return load_file(file, environ, installed_kinds() if kinds is None else kinds)


def load_file(file: ConfigFile | None, environ: Mapping[str, str], kinds: Kinds) -> LoadedConfig:
    """Load a configuration from a file that was read, or from none.

    Raises:
        ConfigError: see `load_config`.
    """
    examined = examine(file, environ, kinds)
    if examined.faults:
        raise ConfigError(fault_lines(file, examined))
    return usable(file, examined, environ, kinds)


def load_for_operators(path: Path | None, environ: Mapping[str, str], kinds: Kinds | None = None) -> LoadedConfig:
    """Load what commands on the state need: where it is. The rest counts as far as it is valid.

    The emergency stop must work at a shell that lacks the bot's secrets, and while somebody edits the file.

    Args:
        path: See `load_config`.
        environ: The environment.
        kinds: See `load_config`.

    Raises:
        ConfigError: The file cannot be read, or does not let us know the state directory.
    """
    found = find_config(path, environ)
    file = read_config(found) if found is not None else None
    kinds = installed_kinds() if kinds is None else kinds
    file = _mended(file) if file is not None else None
    examined = examine(file, environ, kinds)
    where: KeyPath = ("daemon", "state_dir")
    wrong = [fault for fault in examined.faults if fault.path and fault.path == where[: len(fault.path)]]
    if wrong:
        raise ConfigError(fault_lines(file, replace(examined, faults=wrong)))
    return usable(file, examined, environ, kinds)


def _mended(file: ConfigFile) -> ConfigFile:
    """The file without the lines that keep it from being TOML; as it is where those may name the state directory."""
    lines = file.text.splitlines()
    for _ in range(_MENDED_LINES):
        try:
            tomllib.loads("\n".join(lines))
        except RecursionError:
            return file
        except ValueError as error:
            match = _SYNTAX.fullmatch(str(error))
            number = int(match[2]) if match and match[2] else len(lines)
            if not 0 < number <= len(lines) or _names_the_state(lines[number - 1]):
                return file
            lines[number - 1] = ""
        else:
            return replace(file, text="\n".join(lines))
    return file


def _names_the_state(line: str) -> bool:
    return "state_dir" in line or "daemon" in line


def usable(file: ConfigFile | None, examined: Examined, environ: Mapping[str, str], kinds: Kinds) -> LoadedConfig:
    """What of a document is valid, as a configuration: all of it where it has no faults."""
    settings = _with_compared_ids(examined.settings, kinds)
    base = _base(file)
    state_dir = base / settings.daemon.state_dir if settings.daemon.state_dir else default_state_dir(environ)
    found = [(dotted(key), value) for key, value in secrets(settings)]
    return LoadedConfig(
        settings=settings,
        path=file.path if file else None,
        state_dir=state_dir,
        workspace=state_dir / (settings.security.workspace or "workspace"),
        secrets=tuple(found),
        secret_files=examined.files,
        warnings=(*examined.warnings, *_absent(settings)),
        kinds=kinds,
    )


def _with_compared_ids(settings: Settings, kinds: Kinds) -> Settings:
    """The same with the operators' ids in the form in which a platform compares them: addresses in lower case."""
    names = {table.kind or name for name, table in settings.channels.items()}
    of_addresses = {name for name in names if kinds.channels[name]().capabilities.addresses}
    users = [
        str(Identity(each.platform, each.id.lower())) if each.platform in of_addresses else str(each)
        for each in settings.operators.identities
    ]
    operators = settings.operators.model_copy(update={"users": tuple(users)})
    return settings.model_copy(update={"operators": operators})


def _absent(settings: Settings) -> list[str]:
    """A workspace of the owner's own that is not there is more likely misspelt than wanted new."""
    named = Path(settings.security.workspace or "workspace")
    if not named.is_absolute() or named.exists():
        return []
    return [f"security.workspace: there is no directory {named}; it is made at the start"]


def fault_lines(file: ConfigFile | None, examined: Examined) -> list[str]:
    """The faults of a document as lines."""
    if file is None:
        return describe(examined.faults, label="(no config file)", text=None, variables=examined.overridden)
    return describe(examined.faults, label=str(file.path), text=file.text, variables=examined.overridden)


def examine(file: ConfigFile | None, environ: Mapping[str, str], kinds: Kinds) -> Examined:
    """Bring file and environment together and find all that is wrong.

    Raises:
        ConfigError: The file is not TOML, so that nothing can be said of what is in it.
    """
    tree = _parse(file)
    overrides, faults = apply_overrides(tree, environ)
    faults += _not_yet(tree)
    resolution = resolve_kinds(tree, kinds)
    tables = resolution.tables
    settle_overrides(tree, overrides, tables)
    overridden = {override.path: override.variable for override in overrides}
    exposed = _literal_secrets(tree, tables, overridden) if file and file.mode & stat.S_IROTH else []
    expansion = expand(tree, environ, overridden.__contains__)
    unset = [fault for fault in expansion.faults if not is_off(tree, fault.path)]
    files = read_files(tree, tables, _base(file))
    explainer = Explainer(tables, tree, resolution.sources, frozenset(expansion.expanded))
    faults += resolution.faults + files.faults
    faults += [_with_source(fault, explainer.sources) for fault in unset]
    faults += [Fault(path, f"is missing; {explainer.advice(path)}") for path in resolution.lacking]
    # What lacks its variable has nothing in it to complain about.
    empty = {fault.path for fault in expansion.faults}
    settings, wrong = _validate(tree, tables, explainer, empty)
    wrong = [fault for fault in wrong if not _is_within(fault.path, empty)]
    told = empty | {fault.path for fault in wrong}
    wrong += [fault for fault in cross_faults(settings, tree) if not _is_within(fault.path, told)]
    faults += [_at_file_key(fault, files.files) for fault in wrong]
    origins = {path: f"${name}" for path, names in expansion.expanded.items() for name in names}
    origins |= {path: f"file {name}" for path, name in files.files.items()} | dict(overridden)
    return Examined(
        settings=settings,
        faults=faults,
        warnings=[*_exposure(file, exposed), *files.warnings, *warnings(settings, tree, kinds.channels)],
        tables=tables,
        tree=tree,
        origins=origins,
        overridden=overridden,
        files=tuple(_base(file) / Path(name).expanduser() for name in files.files.values()),
    )


def _base(file: ConfigFile | None) -> Path:
    """Where relative paths in the file begin."""
    return file.path.parent.absolute() if file else Path.cwd()


def _parse(file: ConfigFile | None) -> dict[str, object]:
    if file is None:
        return {}
    try:
        tree: dict[str, object] | None = tomllib.loads(file.text)
    except ValueError as error:  # TOMLDecodeError, and what a number with thousands of digits gives
        raise ConfigError([_syntax_fault(file, str(error))]) from None
    except RecursionError:
        tree = None
    if tree is None or _is_deep(tree):
        raise ConfigError([f"{file.path}: is nested more than {_DEPTH} levels deep"])
    return tree


def _syntax_fault(file: ConfigFile, problem: str) -> str:
    match = _SYNTAX.fullmatch(problem)
    message = _plain_words(match[1] if match else problem)
    line = int(match[2]) if match and match[2] else max(1, len(file.text.splitlines()))
    column = f", column {match[3]}" if match and match[3] else ""
    return f"{file.path}:{line}: is not TOML{column}: {message[:1].lower()}{message[1:]}"


def _plain_words(problem: str) -> str:
    """What tomllib says of a thing that is there twice, in words of the file."""
    table = re.fullmatch(r"Cannot declare \((.*)\) twice", problem)
    if table is not None:
        path = tuple(re.findall(r"'((?:[^'\\]|\\.)*)'", table[1]))
        return f"the table [{dotted(path)}] is there already; put its keys together"
    return _TWICE.get(problem, problem)


def _is_deep(tree: object) -> bool:
    """Whether a document is nested so deeply that walking through it could exhaust the stack."""
    level = [tree]
    for _ in range(_DEPTH):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
        ]
    return bool(level)


def _not_yet(tree: dict[str, object]) -> list[Fault]:
    """Take out what this version does not do, with a fault for each."""
    faults: list[Fault] = []

    def visit(table: dict[str, object], path: KeyPath, depth: int) -> None:
        for key in list(table):
            here, inner = (*path, key), table[key]
            if any(matches(here, pattern) for pattern in later.KEYS):
                del table[key]
                faults.append(Fault(here, "is not supported by this version; leave it out"))
            elif depth and isinstance(inner, dict):
                visit(inner, here, depth - 1)

    visit(tree, (), 2)
    return faults


def _literal_secrets(tree: Mapping[str, object], tables: Tables, overridden: Mapping[KeyPath, str]) -> list[str]:
    """The keys whose secrets stand in the file itself."""
    found: list[str] = []
    for home, model in tables.walk(tree):
        for name, entry in model.model_fields.items():
            value = lookup(tree, (*home, name))
            if is_secret(entry) and isinstance(value, str) and "${" not in value and (*home, name) not in overridden:
                found.append(dotted((*home, name)))
    return found


def _exposure(file: ConfigFile | None, exposed: list[str]) -> list[str]:
    if file is None or not exposed:
        return []
    return [f"{file.path} holds {', '.join(exposed)} and may be read by others; run: chmod 600 {file.path}"]


def _with_source(fault: Fault, sources: Mapping[KeyPath, str]) -> Fault:
    source = sources.get(fault.path)
    return Fault(fault.path, f"{fault.text} ({source.rstrip('.')})") if source else fault


def _at_file_key(fault: Fault, files: Mapping[KeyPath, str]) -> Fault:
    """Move a fault to the key that names the file, if the value came from one."""
    return Fault((*fault.path[:-1], f"{fault.path[-1]}{FILE}"), fault.text) if fault.path in files else fault


def _is_within(path: KeyPath, others: Collection[KeyPath]) -> bool:
    return any(path[:length] in others for length in range(1, len(path) + 1))


def _validate(
    tree: Mapping[str, object], tables: Tables, explainer: Explainer, empty: Collection[KeyPath]
) -> tuple[Settings, list[Fault]]:
    """Check every table by its model; `empty` are the paths that lack their variable.

    Returns:
        The settings, without what has a fault, and the faults.
    """
    faults: list[Fault] = []
    errors: list[ErrorDetails] = []
    checked = {group: _of_kinds(group, tree, tables, empty, errors) for group in GROUPS}
    rest: dict[str, object] = {}
    for key, value in tree.items():
        if key not in Settings.model_fields:
            faults.append(explainer.unknown((key,)))
        elif key not in GROUPS:
            rest[key] = value
    try:
        settings = Settings.model_validate({**rest, **checked})
    except ValidationError as error:
        errors += error.errors()
        rest = copy.deepcopy(rest)
        for fault in error.errors():
            _remove(rest, fault["loc"])
        settings = Settings.model_validate({**rest, **checked})
    faults += [explainer.fault(error) for error in errors]
    return settings, faults


def _of_kinds(
    group: str, tree: Mapping[str, object], tables: Tables, empty: Collection[KeyPath], errors: list[ErrorDetails]
) -> dict[str, BaseModel]:
    """Check a group's tables, each by the model of its kind; one that is off may lack something, and is left out."""
    named = tree.get(group, {})
    if not isinstance(named, dict):
        errors.append(_no_table((group,), named))
        return {}
    checked: dict[str, BaseModel] = {}
    for name, table in named.items():
        path: KeyPath = (group, name)
        if not isinstance(table, dict):
            errors.append(_no_table(path, table))
        if path not in tables.by_kind:
            continue
        try:
            settings = tables.by_kind[path].model_validate(table)
        except ValidationError as error:
            for fault in error.errors():
                if fault["type"] != "missing" or not is_off(tree, path):
                    fault["loc"] = (*path, *fault["loc"])
                    errors.append(fault)
        else:
            if not any(lack[:2] == path for lack in empty):
                checked[name] = settings
    return checked


def _no_table(path: KeyPath, value: object) -> ErrorDetails:
    return {"type": "dict_type", "loc": path, "msg": "", "input": value}


def _remove(tree: dict[str, object], path: KeyPath) -> None:
    """Take a value out of a tree, or the whole list that it is in."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    parent = lookup(tree, path[:-1])
    if path and isinstance(parent, dict):
        parent.pop(path[-1], None)
