"""Mails for property tests: trees of parts whose contents are known, and mails that were damaged on the way."""

from __future__ import annotations

import base64
import quopri
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.channels.email.eml_cases import load

HEADER = b"From: Alice <alice@example.test>\r\nSubject: tree\r\nMIME-Version: 1.0\r\n"


@dataclass(frozen=True)
class Leaf:
    """A part with a content."""

    mime: str
    encoding: str
    content: bytes

    def render(self) -> bytes:
        """The part, with its header."""
        if self.encoding == "base64":
            body = base64.encodebytes(self.content).replace(b"\n", b"\r\n")
        elif self.encoding == "quoted-printable":
            body = quopri.encodestring(self.content.replace(b"\r", b""), quotetabs=True).replace(b"\n", b"\r\n")
        else:
            body = self.content
        return f"Content-Type: {self.mime}\r\nContent-Transfer-Encoding: {self.encoding}\r\n\r\n".encode() + body


@dataclass(frozen=True)
class Branch:
    """A multipart."""

    kind: str
    children: tuple[Leaf | Branch, ...]

    def render(self, number: str = "") -> bytes:
        """The multipart, with its header; its boundary is made of its place in the tree."""
        boundary = f"b{number}"
        parts = [
            child.render(f"{number}.{place}") if isinstance(child, Branch) else child.render()
            for place, child in enumerate(self.children, 1)
        ]
        head = f'Content-Type: multipart/{self.kind}; boundary="{boundary}"\r\n\r\n'.encode()
        delimiter = f"--{boundary}".encode()
        return head + b"".join(delimiter + b"\r\n" + part + b"\r\n" for part in parts) + delimiter + b"--"


def leaves(tree: Branch, number: str = "") -> Iterator[tuple[str, Leaf]]:
    """The leaves of a tree, each with the number by which IMAP knows it."""
    for place, child in enumerate(tree.children, 1):
        own = f"{number}.{place}" if number else str(place)
        if isinstance(child, Branch):
            yield from leaves(child, own)
        else:
            yield own, child


_BYTES = st.one_of(st.binary(max_size=200), st.binary(max_size=20).map(lambda some: some * 500))
_LINES = st.lists(st.text("abc -äß", max_size=20).filter(lambda line: not line.startswith("--")), max_size=5)
_LEAVES = st.one_of(
    st.builds(Leaf, st.sampled_from(["image/png", "application/pdf", "text/csv"]), st.just("base64"), _BYTES),
    st.builds(
        Leaf,
        st.just("application/x-thing"),
        st.just("quoted-printable"),
        st.text("ab =\n\t\0ÿ", max_size=200).map(lambda text: text.replace("\n", "").encode()),
    ),
    st.builds(
        Leaf,
        st.just("text/plain; charset=utf-8"),
        st.just("8bit"),
        _LINES.map(lambda lines: "\r\n".join(lines).encode()),
    ),
)
_KINDS = st.sampled_from(["mixed", "alternative", "related", "signed", "report", "unheard-of"])


def _branches(children: st.SearchStrategy[Leaf | Branch]) -> st.SearchStrategy[Branch]:
    return st.builds(Branch, _KINDS, st.lists(children, min_size=1, max_size=4).map(tuple))


trees: st.SearchStrategy[Branch] = _branches(st.recursive(_LEAVES, _branches, max_leaves=12))
"""Trees of up to a dozen leaves."""

_SEEDS = [case.raw for case in load("abefghijklnp") if len(case.raw) < 12_000]
_FRAGMENTS = [
    *(b'"', b"(", b")", b"<", b">", b"@", b"[", b"]", b":", b",", b";", b"=", b"\\", b"\0", b"\xff", b"%", b"'"),
    *(b"=?", b"?=", b"?Q?", b"?B?", b"\r\n", b"\n ", b"\r", b"--", b"--=_b0", b"--=_b0--", b"*0*=", b"+2AA-"),
    *(b"charset=utf-7", b"charset=hz", b"charset=utf-16", b"filename*=", b"boundary=", b"multipart/mixed"),
    *(b"From: ", b"Content-Type: ", b"Content-Transfer-Encoding: base64\r\n", b"\r\n\r\n"),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """One of the cases, after up to eight faults."""
    raw = bytearray(draw(st.sampled_from(_SEEDS)))
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, len(raw)))
        match draw(st.sampled_from(["insert", "remove", "repeat", "replace"])):
            case "insert":
                raw[at:at] = draw(st.sampled_from(_FRAGMENTS)) * draw(st.sampled_from([1, 1, 1, 40]))
            case "remove":
                del raw[at : at + draw(st.integers(1, 60))]
            case "repeat":
                raw[at:at] = raw[max(at - draw(st.integers(1, 200)), 0) : at]
            case _:
                raw[at : at + 3] = draw(st.binary(max_size=5))
    return bytes(raw)
