"""Raw mails with right answers (`tests/cases/eml`): how they are found, and how what was made of one is judged."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import idna

FOLDER = Path(__file__).resolve().parents[2] / "cases" / "eml"
_EXACT = (
    "attachments",
    "base_subject",
    "cc",
    "flowed",
    "from",
    "from_name",
    "in_reply_to",
    "message_id",
    "named",
    "paths",
    "reason",
    "references",
    "sent_at",
    "subject",
    "thread_root",
    "to",
)
_CONTROLS = frozenset(map(chr, (*range(0x20), 0x7F)))
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True)
class Case:
    """A raw mail, and what is right about it."""

    id: str
    raw: bytes
    want: Mapping[str, Any]


def load(groups: str) -> list[Case]:
    """The cases whose names begin with one of these letters."""
    files = sorted(path for path in FOLDER.glob("*.json") if path.name[0] in groups)
    return [
        Case(path.stem, path.with_suffix(".eml").read_bytes(), json.loads(path.read_text(encoding="utf-8")))
        for path in files
    ]


def faults(want: Mapping[str, Any], got: Mapping[str, Any]) -> list[str]:
    """What is wrong with what was made of a mail.

    Args:
        want: The right answers. `ignore` may be `either`; of a mail that is ignored only that is looked at, and that
            its sender is none of `never_from`.
        got: `ignore`, `text` (None: not looked at), and any of the values that `want` may name.
    """
    found = [f"{got['from']} is what it must not be" for each in want.get("never_from", ()) if each == got["from"]]
    if "reason" in want and got["reason"] != want["reason"]:
        found.append(f"reason: {got['reason']!r}, not {want['reason']!r}")
    if want["ignore"] != "either" and got["ignore"] != want["ignore"]:
        return [*found, f"ignore: {got['ignore']}, because {got['reason']}"]
    if got["ignore"]:
        return found
    found += [
        f"{key}: {got[key]!r}, not {want[key]!r}"
        for key in _EXACT
        if key in want and got[key] != (_ascii(want[key]) if key == "from" else want[key])
    ]
    if want.get("subject_contains", "") not in got["subject"]:
        found.append(f"subject: {got['subject']!r}")
    for rule, characters in (
        ("no_newline_in", frozenset("\r\n")),
        ("no_control_in", _CONTROLS),
        ("no_bidi_controls_in", _BIDI),
    ):
        found += [f"{key}: {got[key]!r}" for key in want.get(rule, ()) if not characters.isdisjoint(got[key])]
    return found if got["text"] is None else [*found, *_text_faults(want, got["text"])]


def _text_faults(want: Mapping[str, Any], text: str) -> Iterator[str]:
    plain, flat = _trimmed(text), " ".join(text.split())
    texts: Collection[str] = want.get("text_any", [want["text"]] if "text" in want else [])
    if texts and plain not in map(_trimmed, texts):
        yield f"text: {plain!r}"
    yield from (f"text lacks {each!r}" for each in want.get("contains", ()) if " ".join(each.split()) not in flat)
    yield from (f"text holds {each!r}" for each in want.get("excludes", ()) if each in text)
    some = want.get("contains_any", ())
    if some and not any(each in text for each in some):
        yield f"text holds none of {some}"
    if "\0" in text:
        yield "text holds NUL"


def _trimmed(text: str) -> str:
    """Blanks at line ends and more than one empty line make no difference."""
    lines = "\n".join(line.rstrip() for line in text.strip().split("\n"))
    while "\n\n\n" in lines:
        lines = lines.replace("\n\n\n", "\n\n")
    return lines


def _ascii(address: str) -> str:
    """An address as it is compared; the cases write domains as people see them."""
    local, _, domain = address.rpartition("@")
    return address if address.isascii() or domain.isascii() else f"{local}@{idna.encode(domain).decode('ascii')}"
