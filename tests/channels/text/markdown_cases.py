"""The Markdown cases of `tests/cases/markdown`, and the judge of what a reader sees of a case."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[2] / "cases" / "markdown"


@dataclass(frozen=True, slots=True)
class Case:
    """One Markdown text and the properties that its rendering must have."""

    name: str
    source: str
    want: dict[str, Any]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as its reader gets it."""

    text: str
    spans: tuple[tuple[str, str, str], ...]
    """(bold, italic, strike, code or link; the formatted text; a link's address)."""


def load_cases() -> list[Case]:
    return [
        Case(path.stem, path.with_suffix(".md").read_bytes().decode(), json.loads(path.read_bytes()))
        for path in sorted(CASES.glob("*.json"))
    ]


def complaints(case: Case, messages: list[Seen]) -> list[str]:
    """What is wrong with a rendering; empty when all properties hold."""
    if case.want.get("empty"):
        return ["made messages from nothing"] if messages else []
    if not messages:
        return ["no message"]
    text = "\n".join(message.text for message in messages)
    spans = [span for message in messages for span in message.spans]
    return [
        *_reading(case.want, text),
        *_code(case.want, text, spans),
        *_formatting(case.want, text, spans),
        *_lines(case.want, text),
        *_completeness(case, text, messages),
    ]


def flat(text: str) -> str:
    return " ".join(text.split())


def _reading(want: dict[str, Any], text: str) -> list[str]:
    bad, place, whole = [], 0, flat(text)
    for words in map(flat, want.get("visible", [])):
        at = whole.find(words, place)
        if at < 0:
            bad.append(f"not seen, or not in this order: {words!r}")
        place = max(place, at + len(words))
    choices = want.get("visible_any", [])
    bad += [f"none is seen: {choice}" for choice in choices if not any(flat(words) in whole for words in choice)]
    bad += [f"character {char!r}" for char in want.get("no_chars", []) if char in text]
    return bad


def _code(want: dict[str, Any], text: str, spans: list[tuple[str, str, str]]) -> list[str]:
    code = [words for kind, words, _ in spans if kind == "code"]
    outside = flat(text)
    for words in map(flat, code):
        outside = outside.replace(words, " ", 1)
    bad = [f"raw markup {mark!r}" for mark in want.get("hidden", []) if mark in outside]
    bad += [f"not in code, as it is: {part!r}" for part in want.get("code", []) if not any(part in c for c in code)]
    return bad


def _formatting(want: dict[str, Any], text: str, spans: list[tuple[str, str, str]]) -> list[str]:
    bad = []
    for kind in ("bold", "italic", "strike"):
        formatted = [flat(words) for k, words, _ in spans if k == kind]
        bad += [f"not {kind}: {words!r}" for words in want.get(kind, []) if not any(words in f for f in formatted)]
    links = [(flat(words), address) for kind, words, address in spans if kind == "link"]
    for label, address in want.get("links", []):
        if (label, address) not in links and not (label in flat(text) and address in flat(text)):
            bad.append(f"no link {label!r} to {address!r}")
    for scheme in want.get("no_href", []):
        bad += [f"link to {address}" for _, address in links if address.lower().startswith(scheme)]
    return bad


def _lines(want: dict[str, Any], text: str) -> list[str]:
    lines = text.split("\n")
    bad = []
    for first, second in want.get("separate_lines", []):
        if any(first in line.split() and second in line.split() for line in lines):
            bad.append(f"on one line: {first!r} and {second!r}")
    for first, second in want.get("distinct_prefix", []):
        before = {next((line.split(words)[0] for line in lines if words in line), "") for words in (first, second)}
        if len(before) == 1:
            bad.append(f"look alike: {first!r} and {second!r}")
    return bad


def _completeness(case: Case, text: str, messages: list[Seen]) -> list[str]:
    bad = []
    if case.want.get("keep_all_words"):
        words = {word for word in case.source.replace("*", " ").replace("`", " ").split() if word.isalpha()}
        bad += [f"lost: {word}" for word in words if case.source.count(word) > text.count(word)]
    if "keep_all_chars" in case.want and len("".join(text.split())) < case.want["keep_all_chars"]:
        bad.append("characters are lost")
    if case.want.get("split") and len(case.source) > 5000 and len(messages) < 2:
        bad.append("not split")
    return bad
