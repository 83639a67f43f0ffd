"""Which model, field and keys stand behind a path of the document."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, SecretStr
from pydantic.fields import FieldInfo

from zerobot.config.keys import KeyPath
from zerobot.config.schema import Settings
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.plugin import PluginSettings
from zerobot.core.settings import FromFile, format_duration, format_size, parse_duration, parse_size

FILE = "_file"
"""`KEY_file` names the file that holds what `KEY` would."""

GROUPS: Mapping[str, type[BaseModel]] = {"channels": ChannelSettings, "plugins": PluginSettings}
"""The groups of tables whose keys depend on their kind, and the keys that all tables of a group have."""

_WRITERS: dict[object, Callable[[Any], str]] = {parse_duration: format_duration, parse_size: format_size}


@dataclass(frozen=True, slots=True)
class Tables:
    """The models of a document: the schema's own, and for each channel and plug-in the one of its kind."""

    by_kind: Mapping[KeyPath, type[BaseModel]]
    """By the path of the table; one whose kind is not known is missing."""

    def at(self, path: KeyPath) -> object:
        """The type that a path must have: a model, `dict[str, ...]`, or whatever a field is annotated with."""
        here: object = Settings
        for depth, part in enumerate(path):
            if depth == 1 and path[0] in GROUPS:
                here = self.by_kind.get(path[:2], GROUPS[str(path[0])])
            elif isinstance(here, type) and issubclass(here, BaseModel):
                here = _unwrapped(here.model_fields[str(part)]) if part in here.model_fields else None
            else:
                arguments = get_args(here)
                here = arguments[1] if get_origin(here) is dict else None
        return here

    def model(self, path: KeyPath) -> type[BaseModel] | None:
        """The model of the table at a path; None when there is none."""
        here = self.at(path)
        return here if isinstance(here, type) and issubclass(here, BaseModel) else None

    def field(self, path: KeyPath) -> FieldInfo | None:
        """The field at a path, or the one whose list it is in; None when no table has it."""
        while path and isinstance(path[-1], int):
            path = path[:-1]
        model = self.model(path[:-1]) if path else None
        return model.model_fields.get(str(path[-1])) if model else None

    def keys(self, path: KeyPath) -> list[str]:
        """The keys that the table at a path may have, `KEY_file` included."""
        model = self.model(path)
        if model is None:
            return []
        files = file_keys(model)
        return [key for name in model.model_fields for key in (name, name + FILE) if key == name or key in files]

    def walk(self, tree: Mapping[str, object]) -> Iterator[tuple[KeyPath, type[BaseModel]]]:
        """The path and the model of every table that the schema has for this document.

        Tables that are not written are among them, but for those within the table of a channel or a plug-in.
        """
        yield (), Settings
        for name in Settings.model_fields:
            if (model := self.model((name,))) is not None:
                yield (name,), model
                continue
            group = tree.get(name)
            for table, content in group.items() if isinstance(group, dict) else ():
                if (model := self.model((name, table))) is not None:
                    yield from _with_inner((name, table), model, content)


def _with_inner(path: KeyPath, model: type[BaseModel], content: object) -> Iterator[tuple[KeyPath, type[BaseModel]]]:
    """A table, and the tables that are written within it."""
    yield path, model
    for name, inner in inner_tables(model).items():
        if isinstance(content, dict) and name in content:
            yield from _with_inner((*path, name), inner, content[name])


def inner_tables(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The keys of a table that are tables themselves, with their models."""
    types = {name: _unwrapped(field) for name, field in model.model_fields.items()}
    return {name: each for name, each in types.items() if isinstance(each, type) and issubclass(each, BaseModel)}


def _unwrapped(field: FieldInfo) -> object:
    """What a field is annotated with; of what may be absent, what it is when it is there."""
    wanted = [part for part in _parts(field.annotation) if part is not type(None)]
    return wanted[0] if len(wanted) == 1 else field.annotation


def file_keys(model: type[BaseModel]) -> dict[str, str]:
    """`KEY_file` -> `KEY` for what a file may hold: secrets, and texts that are marked so."""
    return {
        name + FILE: name
        for name, field in model.model_fields.items()
        if name + FILE not in model.model_fields
        and (is_secret(field) or any(isinstance(mark, FromFile) for mark in field.metadata))
    }


def is_secret(field: FieldInfo) -> bool:
    """Whether a field's value must not be shown."""
    return any(part is SecretStr for part in _parts(field.annotation))


def is_text(field: FieldInfo) -> bool:
    """Whether a field takes a text and nothing else that TOML can say without quotes."""
    wanted = [part for part in _parts(field.annotation) if part is not type(None)]
    return bool(wanted) and all(part in (str, SecretStr) for part in wanted)


def is_list(field: FieldInfo) -> bool:
    """Whether a field takes a list."""
    return get_origin(_unwrapped(field)) is tuple


def writer(field: FieldInfo | None) -> Callable[[Any], str]:
    """How a field's number is written for people: a duration, a size, or plainly."""
    if field is not None:
        for mark in (*field.metadata, *_marks(field.annotation)):
            if isinstance(mark, BeforeValidator) and mark.func in _WRITERS:
                return _WRITERS[mark.func]
    return str


def _parts(annotation: object) -> Iterator[object]:
    """The types of a union, without their marks."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _parts(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for argument in get_args(annotation):
            yield from _parts(argument)
    else:
        yield annotation


def _marks(annotation: object) -> Iterator[object]:
    for argument in get_args(annotation):
        if get_origin(argument) is Annotated:
            yield from get_args(argument)[1:]
