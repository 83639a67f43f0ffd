"""What becomes of an address."""

from __future__ import annotations

import pytest

from channels._text.links import Target, target_of


@pytest.mark.parametrize(
    ("address", "label", "target"),
    [
        ("https://a.test/x", "docs", Target("https://a.test/x", "https://a.test/x")),
        ("https://a.test/x", "https://a.test/x", Target("https://a.test/x")),
        ("https://a.test/", "a.test", Target("https://a.test/")),
        ("https://a.test/%E6%97%A5", "https://a.test/日", Target("https://a.test/%E6%97%A5")),
        ("mailto:ann@a.test", "ann@a.test", Target()),
        ("mailto:ann@a.test", "Ann", Target(shown="ann@a.test")),
        ("docs/README.md", "the readme", Target(shown="docs/README.md")),
        ("file:///etc/passwd", "file", Target(shown="file:///etc/passwd")),
        ("https://", "nowhere", Target(shown="https://")),
    ],
)
def test_a_link_shows_its_address_unless_its_label_does(address: str, label: str, target: Target) -> None:
    """Only web addresses become links, and a label that says something else is followed by the address."""
    assert target_of(address, label) == target


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "JavaScript:x", "java%0Ascript:x", "vbscript:x", "data:text/html,x", "tg://user?id=1"],
)
def test_what_runs_or_pings_is_neither_linked_nor_shown(address: str) -> None:
    """Nothing is left of such an address."""
    assert target_of(address, "click") == Target()


def test_a_host_in_other_letters_is_shown_in_ascii() -> None:
    """A label that looks like the address is not the address when its host is spelled with look-alikes."""
    address = "https://xn--pple-43d.test/"
    assert target_of(address, "https://аpple.test/").shown == address


def test_a_long_address_is_shown_by_its_beginning_with_the_whole_host() -> None:
    """The reader always sees where a link leads."""
    host = "h" * 50 + ".test"
    target = target_of(f"https://{host}/{'q' * 500}", "x", limit=20)
    assert target.shown == f"https://{host}/…"
    assert not target.full


def test_a_name_before_the_host_cannot_push_the_host_out_of_sight() -> None:
    """An address with an @ in front of its host is never shortened."""
    address = f"https://bank.test{'a' * 500}@evil.test/"
    assert target_of(address, "bank", limit=20).shown == address
