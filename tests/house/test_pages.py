"""What the pages show is there: each snippet is a sound configuration, each command and link leads somewhere."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from zerobot.cli.main import app
from zerobot.config.files import ConfigFile
from zerobot.config.kinds import installed_kinds
from zerobot.config.loader import examine

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])
VARIABLE = re.compile(r"\$\{(\w+)\}")
SNIPPET = re.compile(r"^( *)```toml\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?<!exec )(?:\bzerobot|scripts/run) ((?:[a-z]+\b(?![./]) ?)+)")
CODE = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)")


def snippets() -> Iterator[tuple[str, str]]:
    """Each piece of a `zerobot.toml` on the pages: where it stands, and its text without the page's indentation."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in SNIPPET.finditer(text):
            body = "\n".join(line.removeprefix(match[1]) for line in match[2].splitlines())
            # What a package's own file or an installed example needs is tested where that example is installed.
            if "plugins" not in body:
                yield f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}", body


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each `zerobot …` in code on the pages, as words without options and arguments."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for code in [*CODE.findall(BLOCK.sub("", text)), *BLOCK.findall(text)]:
            for match in COMMAND.finditer(code):
                yield f"{page.relative_to(ROOT)}: {match[0]}", match[1].split()


def anchors(page: Path) -> set[str]:
    """What a link may name behind `#`."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def leads_somewhere(words: list[str]) -> bool:
    """Whether the words name a command, or a group and a command of it."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    first = group.commands.get(words[0])
    return first is not None and (not isinstance(first, TyperGroup) or len(words) == 1 or words[1] in first.commands)


@pytest.mark.parametrize(("where", "text"), [pytest.param(*each, id=each[0]) for each in snippets()])
def test_each_snippet_is_a_sound_configuration(where: str, text: str) -> None:
    """By itself, with its variables set: nobody copies a fault."""
    variables = dict.fromkeys(VARIABLE.findall(text), "123456:abcdefgh")
    examined = examine(ConfigFile(path=ROOT / "zerobot.toml", text=text, mode=0o600), variables, installed_kinds())
    assert [fault.text for fault in examined.faults] == [], where


def test_each_command_on_the_pages_exists() -> None:
    """What is promised is there."""
    found = list(commands())
    assert len(found) > len(PAGES), "the pages are full of commands"
    assert [where for where, words in found if not leads_somewhere(words)] == []


def test_each_command_is_told_in_the_readme() -> None:
    """What is there is told."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = {word for code in [*CODE.findall(BLOCK.sub("", readme)), *BLOCK.findall(readme)] for word in code.split()}
    there = [group, *(command for command in group.commands.values() if isinstance(command, TyperGroup))]
    assert sorted(name for each in there for name in each.commands if name not in told) == []


def test_each_link_within_the_project_leads_somewhere() -> None:
    """Files, folders and titles that are renamed are missed here."""
    lost = []
    for page in PAGES:
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            goal = Path(os.path.normpath(page.parent / target)) if target else page
            if not goal.exists() or (anchor and anchor not in anchors(goal)):
                lost.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert lost == []
