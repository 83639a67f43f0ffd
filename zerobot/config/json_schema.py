"""The configuration as JSON Schema, for editors that complete and check TOML."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from zerobot.config.kinds import Kinds
from zerobot.config.schema import AgentSettings, ProviderTable, Settings
from zerobot.config.tables import file_keys, inner_tables
from zerobot.core.channel import ChannelKind
from zerobot.core.plugin import PluginKind

Schema = dict[str, Any]


def json_schema(kinds: Kinds) -> Schema:
    """The schema of the whole file, with the tables of every kind that is installed and not broken."""
    schema: Schema = Settings.model_json_schema()
    definitions: Schema = schema["$defs"]
    for model in (AgentSettings, ProviderTable):
        _add_file_keys(definitions[model.__name__], model)
    definitions["ProviderTable"]["properties"]["kind"] |= {"enum": sorted(kinds.providers)}
    definitions["ProviderTable"]["properties"]["kind"].pop("default")
    _add_kinds(schema, "channel", kinds.channels)
    _add_kinds(schema, "plugin", kinds.plugins)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "zerobot.toml"}


def _add_kinds(schema: Schema, what: str, kinds: Mapping[str, Callable[[], ChannelKind | PluginKind]]) -> None:
    """Put the models of the kinds of something where the schema has only what they have in common."""
    definitions: Schema = schema["$defs"]
    definitions.pop(f"{what.capitalize()}Settings", None)
    named: Schema = {}
    chosen: list[Schema] = []
    for name, load in sorted(kinds.items()):
        try:
            kind = load()
        except (ImportError, AttributeError):
            continue  # A table of this kind is refused when it is loaded, with the reason.
        reference = {"$ref": f"#/$defs/{_add_model(definitions, f'{what}-{name}', kind.settings)}"}
        named[name] = reference
        chosen.append({"allOf": [reference, {"required": ["kind"], "properties": {"kind": {"const": name}}}]})
    tables = schema["properties"][f"{what}s"]
    tables |= {"properties": named, "additionalProperties": {"anyOf": chosen} if chosen else False}


def _add_model(definitions: Schema, own: str, model: type[BaseModel]) -> str:
    """Add the model of a kind under a name made of the kind's, which is unique where names of classes are not."""
    # Models within this one are put beside it; two kinds may have them by the same name.
    schema = model.model_json_schema(ref_template=f"#/$defs/{own}-{{model}}")
    inner = schema.pop("$defs", {})
    for within in inner_tables(model).values():
        _add_file_keys(inner[within.__name__], within)
    for name, definition in inner.items():
        definitions[f"{own}-{name}"] = definition
    _add_file_keys(schema, model)
    schema["properties"]["kind"].pop("default", None)
    definitions[own] = schema
    return own


def _add_file_keys(schema: Schema, model: type[BaseModel]) -> None:
    """Add the `KEY_file` of each key that a file may hold; either of the two does where one is required."""
    properties: Schema = schema["properties"]
    required: list[str] = schema.get("required", [])
    for file_key, key in file_keys(model).items():
        properties[file_key] = {"type": "string", "minLength": 1, "description": f"A file that holds {key}."}
        if key in required:
            required.remove(key)
            either: list[Mapping[str, object]] = [{"required": [key]}, {"required": [file_key]}]
            schema.setdefault("allOf", []).append({"oneOf": either})
    if not required:
        schema.pop("required", None)
