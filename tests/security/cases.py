"""The security corpora: loading them, laying out their files, and judging answers."""

import base64
import html
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from zerobot.security.visible import is_hidden

Case = Mapping[str, Any]
FOLDER = Path(__file__).resolve().parents[1] / "cases" / "security"


def load(name: str, **only: object) -> list[Case]:
    """The cases of a corpus whose fields have the given values."""
    cases: list[Case] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]
    return [case for case in cases if all(case.get(key) == value for key, value in only.items())]


def ident(case: Case) -> str:
    """What pytest calls a case."""
    return str(case["id"])


class Layout:
    """The folders and files of one case, made below a fresh root."""

    def __init__(self, case: Case, root: Path) -> None:
        self.case = case
        self.root = root.resolve()
        real = self.root / case.get("workspace", "ws")
        real.mkdir(parents=True, exist_ok=True)
        for entry in case.get("layout", []):
            self._make(entry)
        self.workspace = real
        if case.get("workspace_link"):
            self.workspace = self.root / "ws-link"
            self.workspace.symlink_to(real)
        self.state = self.root / "state"
        self.config = self.root / case.get("config", "cfg/zerobot.toml")

    def fill(self, text: str) -> str:
        """Put the real places into a text of the case."""
        places = {"{root}": self.root, "{ws}": self.workspace, "{state}": self.state, "{config}": self.config}
        for mark, place in places.items():
            text = text.replace(mark, str(place))
        return text

    def fill_all(self, key: str) -> list[str]:
        """The same for a list of the case; empty when it has none."""
        return [self.fill(text) for text in self.case.get(key, [])]

    def swap(self) -> None:
        """Do what happens between the verdict and the run."""
        between = self.case["between"]
        place = self.root / between["replace"]
        if place.is_dir() and not place.is_symlink():
            place.rmdir()
        else:
            place.unlink()
        if "with_symlink" in between:
            place.symlink_to(between["with_symlink"])
        else:
            place.write_text(between["with_content"], encoding="utf-8")

    def _make(self, entry: Mapping[str, Any]) -> None:
        place = self.root / entry["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        makers: dict[str, Callable[[], object]] = {
            "dir": lambda: place.mkdir(exist_ok=True),
            "file": lambda: place.write_text(entry.get("content", ""), encoding="utf-8"),
            "symlink": lambda: place.symlink_to(entry["target"].replace("{root}", str(self.root))),
            "hardlink": lambda: os.link(self.root / entry["target"], place),
            "fifo": lambda: os.mkfifo(place),
            "sparse": lambda: _sparse(place, entry["size"]),
        }
        makers[entry["type"]]()
        if "mode" in entry:
            place.chmod(int(entry["mode"], 8))


def _sparse(place: Path, size: int) -> None:
    with place.open("wb") as file:
        file.truncate(size)


# -- secrets ----------------------------------------------------------------------------------------------------------

_FORMS: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "url": lambda text: quote(text, safe=""),
    "json": lambda text: json.dumps(text)[1:-1],
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "html": html.escape,
    "upper": str.upper,
    "reversed": lambda text: text[::-1],
}


def secrets_of(case: Case) -> list[str]:
    """The case's secrets, joined from the parts in which they are stored."""
    return ["".join(parts) for parts in case.get("secrets", [])]


def secret_text(case: Case) -> str:
    """The text of a case with its secrets in place."""
    form = _FORMS[case.get("form", "plain")]
    return str(case["text"]).format(*map(form, secrets_of(case))) if case["secrets"] else str(case["text"])


def longest_visible(secret: str, text: str) -> int:
    """The longest run of a secret's characters that stands in a text."""
    best = 0
    for start in range(len(secret)):
        while start + best < len(secret) and secret[start : start + best + 1] in text:
            best += 1
    return best


def judge_masked(case: Case, shown: str) -> list[str]:
    """What is wrong with a masked text."""
    if case.get("unchanged"):
        return [] if shown == secret_text(case) else ["an ordinary text was changed"]
    broken = [f"{part!r} is gone" for part in [*case.get("keeps", []), *case.get("must_keep", [])] if part not in shown]
    if case.get("either"):
        return broken
    form = _FORMS[case.get("form", "plain")]
    for secret in {*secrets_of(case), *map(form, secrets_of(case))}:
        limit = 3 if len(secret) <= 12 else 8 if len(secret) < 24 else 12
        run = longest_visible(secret.removeprefix(case.get("visible_ok", "")), shown)
        if run > limit:
            broken.append(f"{run} characters of a secret are visible")
    return broken


# -- prompts and names ------------------------------------------------------------------------------------------------


def escapes_of(ch: str) -> tuple[str, ...]:
    """Visible forms that count as an escape of a character, in lower case."""
    number = ord(ch)
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(ch, f"\\x{number:02x}")
    return (f"\\u{{{number:x}}}", f"\\u{number:04x}", f"u+{number:04x}", short)


def judge_prompt(case: Case, visible: str, attachment: str) -> list[str]:
    """What is wrong with an approval prompt."""
    whole = f"{visible}\n{attachment}"
    broken = [f"{part[:40]!r} is not shown" for part in case["must_show"] if part not in whole]
    for ch in case.get("escaped", []):
        if ch in whole:
            broken.append(f"U+{ord(ch):04X} goes out as it is")
        elif not any(form in whole.lower() for form in escapes_of(ch)):
            broken.append(f"U+{ord(ch):04X} vanished without a sign")
    broken += [f"{len(run)} x {run[0]!r} hides what follows" for run in case.get("collapse", []) if run in visible]
    for parts in case.get("masked", []):
        run = longest_visible("".join(parts), whole)
        if run > 12:
            broken.append(f"{run} characters of a secret are visible")
    lines = {line.strip() for line in visible.splitlines()}
    broken += [f"the line {fake!r} looks like ours" for fake in case.get("no_lines", []) if fake in lines]
    return broken


def judge_saved_name(case: Case, saved: str) -> list[str]:
    """What is wrong with the name under which an attachment is saved."""
    faults = {
        "no name": not saved or saved in (".", ".."),
        "a separator or NUL": re.search(r"[/\\\0]", saved),
        "leads with a dot or dash": saved[:1] in (".", "-"),
        "a blank or dot at an end": saved != saved.strip() or saved.endswith("."),
        "a hidden character": any(is_hidden(ch) or ch in "\n\t" for ch in saved),
        "too long": len(saved.encode("utf-8", "replace")) > 255,
        "an ordinary name was changed": case.get("keeps", saved) != saved,
        "the extension is gone": not saved.endswith(case.get("keeps_ext", "")),
        "readable parts are gone": any(part not in saved for part in case.get("keeps_any", [])),
    }
    return [fault for fault, found in faults.items() if found]
