"""A fault of the configuration as one line: where, which key, what is wrong, what is allowed."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from difflib import get_close_matches

from pydantic_core import ErrorDetails

from zerobot.config.keys import KeyPath, dotted
from zerobot.config.positions import find_lines
from zerobot.config.tables import FILE, Tables, is_secret, writer


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the value at a path."""

    path: KeyPath
    text: str
    variable: str = ""
    """The environment variable that is wrong itself, whatever it stands for."""


_IS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list", dict: "a table"}
_WANTED = {
    "string_type": "a text in quotes",
    "bool_type": "true or false, without quotes",
    "int_type": "a whole number, without quotes",
    "int_from_float": "a whole number",
    "float_type": "a number, without quotes",
    "tuple_type": 'a list, for example ["a", "b"]',
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "is_instance_of": "a table",
}
_LIMITS = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}
_BOUNDS = {
    "gt": ("is too small", "more than"),
    "ge": ("is too small", "at least"),
    "lt": ("is too large", "less than"),
    "le": ("is too large", "at most"),
}


@dataclass(frozen=True, slots=True)
class Explainer:
    """Turns what pydantic found into our words."""

    tables: Tables
    tree: Mapping[str, object]
    sources: Mapping[KeyPath, str]
    """Where one gets what a key needs."""
    hidden: frozenset[KeyPath]
    """Values that came out of variables: they may be secret wherever they were put."""

    def fault(self, error: ErrorDetails) -> Fault:
        """One error of pydantic's, in our words."""
        path: KeyPath = tuple(error["loc"])
        kind = error["type"]
        if kind == "extra_forbidden":
            return self.unknown(path)
        if kind == "missing":
            return Fault(path, f"is missing; {self.advice(path)}")
        if kind in ("too_short", "string_too_short"):
            return Fault(path, f"is empty; {self.advice(path)}")
        return Fault(path, (self._value(path, error["input"]) + self._complaint(path, error)).strip())

    def unknown(self, path: KeyPath) -> Fault:
        """A key that no table of this place has: the nearest one, and all that there are."""
        name, known = str(path[-1]), self.tables.keys(path[:-1])
        close = get_close_matches(name, known, n=1)
        if close:
            advice = f'did you mean "{close[0]}"? '
        else:
            homes = [f"[{dotted(home)}]" for home, _ in self.tables.walk(self.tree) if name in self.tables.keys(home)]
            advice = f"it belongs in {' or '.join(homes)}; " if homes else ""
        return Fault(path, f"unknown key; {advice}known here: {', '.join(known)}")

    def advice(self, path: KeyPath) -> str:
        """What to write for a key that lacks its value, and where one gets it."""
        field, key = self.tables.field(path), path[-1]
        if field is None or not is_secret(field):
            return self.sources.get(path) or "write a value"
        way = f'write {key} = "${{NAME}}", NAME being an environment variable, or {key}{FILE} = "PATH"'
        source = self.sources.get(path, "").rstrip(".")
        return f"{source}; {way}" if source else way

    def _value(self, path: KeyPath, value: object) -> str:
        """The value for the start of the sentence, if it may be shown."""
        field = self.tables.field(path)
        if path in self.hidden or (field is not None and is_secret(field)):
            return ""
        if isinstance(value, str):
            text = json.dumps(value, ensure_ascii=False)
        elif isinstance(value, bool):
            text = str(value).lower()
        elif isinstance(value, int | float):
            text = writer(field)(value)
        else:
            return ""
        return (text if len(text) <= 60 else f"{text[:56]} …") + " "

    def _complaint(self, path: KeyPath, error: ErrorDetails) -> str:
        kind, value, context = error["type"], error["input"], error.get("ctx", {})
        if kind == "value_error":
            return str(context["error"])
        if kind in _WANTED:
            return f"is {_word(value)}; allowed: {_WANTED[kind]}"
        if kind in _LIMITS:
            problem, bound = _BOUNDS[_LIMITS[kind]]
            limit = writer(self.tables.field(path))(context[_LIMITS[kind]])
            return f"{problem}; allowed: {bound} {limit}"
        if kind in ("literal_error", "enum"):
            allowed = ", ".join(re.findall(r"'([^']*)'", str(context["expected"])))
            return f"is not allowed; allowed: {allowed}"
        return f"cannot be used: {error['msg']}"


def _word(value: object) -> str:
    if isinstance(value, date | time):
        return "a date or time"
    return _IS.get(type(value), "something else")


def describe(faults: Sequence[Fault], *, label: str, text: str | None, variables: Mapping[KeyPath, str]) -> list[str]:
    """Write faults as lines, in the order of the file.

    Args:
        faults: In any order.
        label: The file's name as the person wrote it.
        text: The file's text; None: there is no file, so there are no line numbers.
        variables: By path, the environment variables whose values are there instead of the file's.
    """
    lines = {} if text is None else find_lines(text)
    placed: list[tuple[int, str]] = []
    for fault in faults:
        variable = next((name for path, name in variables.items() if fault.path[: len(path)] == path), None)
        line = next((lines[part] for part in _upwards(fault.path) if part in lines), 1)
        where = fault.variable or variable or (label if text is None else f"{label}:{line}")
        key = f"{dotted(fault.path)}: " if fault.path else ""
        placed.append((line, f"{where}: {key}{fault.text}"))
    return list(dict.fromkeys(_printable(line) for _, line in sorted(placed, key=lambda item: item[0])))


def _printable(line: str) -> str:
    """A line that stays one line and moves no cursor, whatever a key or a value holds."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in line
    )


def _upwards(path: KeyPath) -> list[KeyPath]:
    return [path[:length] for length in range(len(path), 0, -1)]
