"""A tool made of a pydantic model of its arguments and a function that says what a call would do."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from zerobot.core.tools import BadArgumentsError, Execution


class Arguments(BaseModel):
    """Base of all argument models: nothing is converted, nothing unknown is taken, nothing changes afterwards."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)


class ModelTool(Generic[A]):
    """A tool whose arguments are a model."""

    def __init__(self, name: str, description: str, arguments: type[A], resolve: Callable[[A], Execution]) -> None:
        self.name = name
        self.description = description
        self._arguments = arguments
        self._resolve = resolve

    @cached_property
    def parameters(self) -> Mapping[str, object]:
        """JSON Schema of the arguments, without titles and references."""
        return json_schema(self._arguments)

    def resolve(self, arguments: Mapping[str, object]) -> Execution:
        """Check the arguments and say what the call would do.

        Raises:
            BadArgumentsError: They do not fit; the text names each fault and what is allowed.
            BlockedByToolError: They fit, but the call is out of bounds whatever the policy.
        """
        try:
            checked = self._arguments.model_validate(dict(arguments))
        except ValidationError as error:
            raise BadArgumentsError(self._explain(error)) from error
        return self._resolve(checked)

    def _explain(self, error: ValidationError) -> str:
        faults = [_fault(item) for item in error.errors(include_url=False, include_context=False, include_input=False)]
        known = ", ".join(self._arguments.model_fields)
        return f"Wrong arguments for {self.name}: {'; '.join(faults)}. Its arguments: {known or 'none'}."


def json_schema(model: type[BaseModel]) -> Mapping[str, object]:
    """The JSON Schema of a model as providers like it: no `title`, no `$defs`, no `anyOf` with null."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    cleaned = _clean(schema, definitions)
    assert isinstance(cleaned, dict), "the schema of a model is an object"
    cleaned.pop("description", None)
    return {"type": "object", "properties": {}, **cleaned}


def _clean(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_clean(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _clean({**definitions[node["$ref"].rsplit("/", 1)[-1]], **_without(node, "$ref")}, definitions)
    choices = [choice for choice in node.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        return _clean({**choices[0], **_without(node, "anyOf", "default")}, definitions)
    # `title` is noise as a keyword, but may be the name of an argument.
    return {
        key: {name: _clean(value, definitions) for name, value in item.items()}
        if key == "properties"
        else _clean(item, definitions)
        for key, item in node.items()
        if key != "title"
    }


def _without(node: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def _fault(item: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in item["loc"])
    match item["type"]:
        case "missing":
            return f"{where} is missing"
        case "string_unicode":
            return f"{where} holds half a character (a lone surrogate)"
        case "extra_forbidden":
            return f"{where} is not an argument of this tool"
        case _:
            message = str(item["msg"])
            return f"{where}: {message[:1].lower()}{message[1:]}" if where else message
