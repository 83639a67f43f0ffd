"""On which line a key stands."""

import tomllib

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.config.keys import KeyPath, dotted, parse_key
from zerobot.config.positions import find_lines

TEXT = '''\
# a comment = 1
top = "a # b"
[a]
x.y = 1 # dotted
"quo.ted" = """
[not.a.table]
key = \\""" still inside ""\\
"""
raw = \'\'\'
b = 2\'\'\'\'
list = [ # comment ]
  1,
  { in = "]", deep = [ 2, 3 ] },
]
[a.b."c d"]
z = { p = 1, q = { r = 2 } }
[[rows]]
n = 1
[rows.sub]
m = 1
[[rows]]
n = 2
[rows.sub]
m = 2
[late.inner]
k = 1979-05-27T07:32:00Z
[late]
j = 1'''

LINES: dict[KeyPath, int] = {
    ("top",): 2,
    ("a",): 3,
    ("a", "x"): 4,
    ("a", "x", "y"): 4,
    ("a", "quo.ted"): 5,
    ("a", "raw"): 9,
    ("a", "list"): 11,
    ("a", "list", 0): 12,
    ("a", "list", 1): 13,
    ("a", "list", 1, "in"): 13,
    ("a", "list", 1, "deep", 1): 13,
    ("a", "b"): 15,
    ("a", "b", "c d"): 15,
    ("a", "b", "c d", "z", "q", "r"): 16,
    ("rows",): 17,
    ("rows", 0): 17,
    ("rows", 0, "n"): 18,
    ("rows", 0, "sub", "m"): 20,
    ("rows", 1): 21,
    ("rows", 1, "n"): 22,
    ("rows", 1, "sub", "m"): 24,
    ("late", "inner"): 25,
    ("late", "inner", "k"): 26,
    ("late",): 27,
    ("late", "j"): 28,
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("path", "line"), LINES.items())
def test_every_form_of_toml_has_its_line(path: KeyPath, line: int, newline: str) -> None:
    """Tables, lists of tables, dotted and quoted keys, inline tables, all strings: each key is found where it is."""
    text = TEXT.replace("\n", newline)
    tomllib.loads(text)
    assert find_lines(text)[path] == line


KEYS = st.text(min_size=1, max_size=6)
LEAVES = st.one_of(st.integers(-9, 9), st.booleans(), st.text(max_size=8), st.floats(allow_nan=False, width=16))
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
    ),
    max_size=4,
)


def paths(value: object, path: KeyPath = ()) -> set[KeyPath]:
    """All paths of a document that lead to something other than a table or list."""
    if isinstance(value, dict):
        return {found for key, inner in value.items() for found in paths(inner, (*path, key))}
    if isinstance(value, list):
        return {found for index, inner in enumerate(value) for found in paths(inner, (*path, index))}
    return {path}


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_no_key_of_any_document_is_missed(tree: dict[str, object]) -> None:
    """Whatever a document holds, each of its values has a line."""
    text = tomlkit.dumps(tree)
    assert paths(tomllib.loads(text)) <= find_lines(text).keys()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=5).filter(lambda key: "\n" not in key and "=" not in key), min_size=1))
def test_a_dotted_key_reads_back(parts: list[str]) -> None:
    """A key as it is shown can be given to `get` and `set`."""
    shown = dotted(tuple(parts))
    if all(character.isprintable() for part in parts for character in part):
        assert parse_key(shown) == tuple(parts)


@pytest.mark.parametrize("text", ["", ".", "a.", "a b", "a=1", "a\nb", '"', "[a]"])
def test_what_is_no_key_is_refused(text: str) -> None:
    """A misspelt key is an error that shows how one looks."""
    with pytest.raises(ValueError, match="is no key"):
        parse_key(text)
