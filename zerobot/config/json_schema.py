"""The configuration as JSON Schema, for editors that complete and check TOML."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from zerobot.config.kinds import Kinds
from zerobot.config.schema import AgentSettings, ProviderTable, Settings
from zerobot.config.tables import file_keys

Schema = dict[str, Any]


def json_schema(kinds: Kinds) -> Schema:
    """The schema of the whole file, with the tables of every kind of channel that is installed and not broken."""
    schema: Schema = Settings.model_json_schema()
    definitions: Schema = schema["$defs"]
    for model in (AgentSettings, ProviderTable):
        _add_file_keys(definitions[model.__name__], model)
    definitions["ProviderTable"]["properties"]["kind"] |= {"enum": sorted(kinds.providers)}
    definitions["ProviderTable"]["properties"]["kind"].pop("default")
    definitions.pop("ChannelSettings", None)
    named: Schema = {}
    chosen: list[Schema] = []
    for name, load in sorted(kinds.channels.items()):
        try:
            kind = load()
        except (ImportError, AttributeError):
            continue  # A table of this kind is refused when it is loaded, with the reason.
        reference = {"$ref": f"#/$defs/{_add_model(definitions, name, kind.settings)}"}
        named[name] = reference
        chosen.append({"allOf": [reference, {"required": ["kind"], "properties": {"kind": {"const": name}}}]})
    channels = schema["properties"]["channels"]
    channels |= {"properties": named, "additionalProperties": {"anyOf": chosen} if chosen else False}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "zerobot.toml"}


def _add_model(definitions: Schema, kind: str, model: type[BaseModel]) -> str:
    """Add the model of a kind of channel, under the kind's name, which is unique where names of classes are not."""
    own = f"channel-{kind}"
    # Models within this one are put beside it; two kinds may have them by the same name.
    schema = model.model_json_schema(ref_template=f"#/$defs/{own}-{{model}}")
    for name, definition in schema.pop("$defs", {}).items():
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
