"""Our own corpus: what is known to go wrong, multiplied out, with right answers that follow from how a case is made.

Beside the written cases in `tests/cases/security/`: there each is a story, here a product of trick and place.
"""

import base64
import html
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.security.cases import escapes_of, judge_saved_name, longest_visible
from tests.security.test_prompt import approval
from tests.security.test_prompt_cases import visible
from tests.security.worlds import NOW, ask, context, tools_of
from zerobot.core.access import VerdictKind
from zerobot.core.tools import BadArgumentsError, BlockedByToolError
from zerobot.security.filenames import safe_name
from zerobot.security.policy import AccessPolicy, bounds_of
from zerobot.security.prompt import approval_prompt
from zerobot.security.redact import Redactor

# -- paths: a way to write a path x where it leads x a tool ------------------------------------------------------------

SPELLINGS: dict[str, Callable[[Path, str], str]] = {
    "relative": lambda ws, rest: rest,
    "absolute": lambda ws, rest: f"{ws}/{rest}",
    "dots": lambda ws, rest: f"./././{rest}",
    "in and out": lambda ws, rest: f"sub/../{rest}",
    "slashes": lambda ws, rest: f"{ws}//{rest.replace('/', '///')}",
    "by the root": lambda ws, rest: f"/..{ws}/{rest}",
    "by its own name": lambda ws, rest: f"../{ws.name}/{rest}",
    "by a link to the workspace": lambda ws, rest: f"{ws.parent}/alias/{rest}",
}
PLACES = {
    "inside": "sub/file.txt",
    "inside by a link": "link-inside/file.txt",
    "outside": "../outside/file.txt",
    "outside by a link": "link-outside/file.txt",
    "outside by two links": "link-to-link/file.txt",
    "forbidden": "private/file.txt",
    "forbidden by a link": "link-private/file.txt",
    "our own": "../state/file.txt",
    "our own by a link": "link-state/file.txt",
}
TOOLS = {"read_file": {}, "write_file": {"content": "new"}, "search_files": {"pattern": "MARK"}}


def a_workspace(root: Path) -> Path:
    """A workspace with links that lead everywhere."""
    ws = root / "ws"
    for folder in (ws / "sub", ws / "private", root / "outside", root / "state"):
        folder.mkdir(parents=True)
        (folder / "file.txt").write_text(f"MARK of {folder.name}\n", encoding="utf-8")
    for name, target in {
        "link-inside": "sub",
        "link-outside": "../outside",
        "link-to-link": "link-outside",
        "link-private": str(ws / "private"),
        "link-state": "../state",
    }.items():
        (ws / name).symlink_to(target)
    (root / "alias").symlink_to(ws)
    return ws


def contents(root: Path) -> dict[Path, str]:
    """All files, as they are."""
    return {path: path.read_text(encoding="utf-8") for path in root.rglob("file.txt")}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("spelling", "place"), list(product(SPELLINGS, PLACES)), ids=lambda name: name.replace(" ", "-")
)
async def test_a_path_is_where_it_leads_however_it_is_written(
    tmp_path: Path, spelling: str, place: str, tool: str
) -> None:
    """What leads out of bounds is blocked, and nothing of it comes back or changes; what stays inside is not."""
    ws = a_workspace(tmp_path)
    bounds = bounds_of(workspace=ws, forbidden_paths=["private"], own_paths=[tmp_path / "state"])
    arguments = {"path": SPELLINGS[spelling](ws, PLACES[place]), **TOOLS[tool]}
    before = contents(tmp_path)
    try:
        execution = tools_of(bounds)[tool].resolve(arguments)
        blocked = ask(tool, execution, AccessPolicy(bounds=bounds)).kind is VerdictKind.BLOCK
    except (BadArgumentsError, BlockedByToolError):
        blocked = True
    assert blocked is (not place.startswith("inside"))
    if not blocked:
        output = await execution.run(context())
        assert output.ok
        assert not any(name in output.text for name in ("outside", "private", "state"))
    after = contents(tmp_path)
    changed = [path for path, text in before.items() if after[path] != text]
    assert changed == ([] if blocked or tool != "write_file" else [ws / "sub/file.txt"])


# -- prompts: a character that hides or turns something x where it stands ----------------------------------------------

HIDDEN = {
    "NUL": "\0",
    "escape": "\x1b",
    "backspace": "\b",
    "delete": "\x7f",
    "C1": "\x9b",
    "next line": "\x85",
    "soft hyphen": "\u00ad",
    "zero width": "\u200b",
    "joiner": "\u200d",
    "right to left": "\u202e",
    "isolate": "\u2066",
    "line separator": "\u2028",
    "word joiner": "\u2060",
    "byte order": "\ufeff",
    "em space": "\u2003",
    "no-break space": "\u00a0",
    "filler": "\u3164",
    "tag": "\U000e0041",
    "selector": "\ufe0f",
    "private use": "\ue000",
}
SPOTS: dict[str, Callable[[str], object]] = {
    "a value": lambda ch: approval(arguments={"command": f"echo {ch} hi"}),
    "a nested value": lambda ch: approval(arguments={"list": [{"a": f"x{ch}y"}]}),
    "an argument's name": lambda ch: approval(arguments={f"com{ch}mand": "x"}),
    "the tool's name": lambda ch: replace(approval(), tool=f"sh{ch}ell"),
    "the asker's name": lambda ch: replace(approval(), asker_name=f"An{ch}n"),
    "the description": lambda ch: replace(approval(), description=f"run{ch} it"),
    "the reason": lambda ch: replace(approval(), why=f"be{ch}cause"),
}


@pytest.mark.parametrize(("spot", "name"), list(product(SPOTS, HIDDEN)), ids=lambda name: name.replace(" ", "-"))
def test_nothing_hides_in_a_prompt(spot: str, name: str) -> None:
    """The character is never shown as it is, and never dropped without a sign."""
    asked = SPOTS[spot](HIDDEN[name])
    text = visible(approval_prompt(asked, Redactor(), NOW))  # type: ignore[arg-type]
    assert HIDDEN[name] not in text
    shown = text.lower().replace("\\\\", "\\")
    # What is no text is shown as JSON, which has an escape of its own for some.
    assert any(form in shown for form in (*escapes_of(HIDDEN[name]), json.dumps(HIDDEN[name])[1:-1]))


# -- secrets: a form x what stands around it ---------------------------------------------------------------------------

SECRET = "winter/blue+owl & 4711 <x>"
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "url": lambda text: quote(text, safe=""),
    "url with slashes": quote,
    "json": lambda text: json.dumps(text)[1:-1],
    "html": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for urls": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
}
AROUND = {
    "alone": "{}",
    "a sentence": "I found {} in the file.",
    "a header": "curl -H 'X-Api-Key: {}' https://api.test/v1",
    "a query": "https://x.test/?q=1&key={}&z=2",
    "a fence": "```\nKEY={}\n```",
    "a link": "[look](https://x.test/{})",
    "a table": "| key | {} |",
    "brackets": "({})[{}]",
    "other letters": "ключ{}キー",
    "a line of its own": "one\n{}\nthree",
    "a traceback": "ValueError: invalid header value b'{}'",
}


@pytest.mark.parametrize(("form", "around"), list(product(FORMS, AROUND)), ids=lambda name: name.replace(" ", "-"))
def test_a_configured_secret_goes_out_in_no_form_and_nowhere(form: str, around: str) -> None:
    """It is masked, and every word around it is kept."""
    hidden = FORMS[form](SECRET)
    shown = Redactor([SECRET]).clean(AROUND[around].replace("{}", hidden))
    assert longest_visible(hidden, shown) < 8
    for part in AROUND[around].split("{}"):
        assert part in shown


# -- names of files: something bad x a name ----------------------------------------------------------------------------

BAD = [
    "../", "..\\", "/etc/", "C:\\", "\0", "\n", "\u202e", "\u200b", "~/", "-", ".", " ", "$(x)/", "CON/", "a/b/",
    "%2e%2e/", "\uff0e\uff0e/", "nul\t",
]  # fmt: skip
NAMES = ["report.pdf", "Отчёт.txt", "写真.png"]


@pytest.mark.parametrize(("bad", "name"), list(product(BAD, NAMES)))
def test_a_file_name_is_one_harmless_component(bad: str, name: str) -> None:
    """Before, inside and after the name: one component, with nothing hidden in it, that keeps its ending."""
    stem, _, ending = name.rpartition(".")
    inside = name if "/" in bad or "\\" in bad else f"{stem}{bad}.{ending}"
    for made in (bad + name, inside, bad * 60 + name):
        assert judge_saved_name({"keeps_ext": f".{ending}"}, safe_name(made)) == []
