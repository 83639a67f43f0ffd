"""Texts that must not act on a terminal: nothing of them is an order to it, and people can read the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from channels.console import buttons
from channels.console.render import plain, render
from tests.channels.security_cases import cases, prompt_about
from zerobot.security.visible import escape


def _texts(value: object) -> Iterator[str]:
    """All that a laid-out prompt says."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)


@pytest.mark.parametrize("case", cases("mentions", "terminal"), ids=lambda case: str(case["id"]))
def test_a_text_does_nothing_to_the_terminal(case: dict[str, Any]) -> None:
    """As a message, without its formatting, and in what an operator is asked."""
    bodies = render(case["text"], escape)
    asked = buttons.lay_out(prompt_about(case["text"]), escape)
    ways = [[body.text for body in bodies], [plain(body).text for body in bodies], list(_texts(asked))]
    for shown in map("\n".join, ways):
        for part in case["expect"]["text_excludes"]:
            assert part not in shown
        for part in case.get("readable", ()):
            assert part in shown
