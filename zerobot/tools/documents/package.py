"""Documents that are ZIP files of XML (Office Open XML, OpenDocument, EPUB), unpacked within limits.

Nothing is unpacked as a whole: what is packed small may be large without end, and XML can be built of entities that
multiply. Parts are read in pieces that are counted, and a document type, which alone can declare entities, is refused;
none of these formats uses one for the parts that are read here.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO
from urllib.parse import unquote
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from zerobot.tools.documents.endings import Ending, UnreadableError

MAX_UNPACKED = 256_000_000
"""Bytes of all parts together."""
PIECE = 1 << 16

_ENCRYPTED = 1
"""Of a part's flags (APPNOTE.TXT of PKWARE, section 4.4.4)."""


@dataclass(frozen=True, slots=True)
class Start:
    """An element begins."""

    name: str
    """Without its namespace."""
    attributes: dict[str, str]
    """Without namespaces; a colon stands before the names that have one: `id` and `:id` may stand side by side."""


@dataclass(frozen=True, slots=True)
class End:
    """An element ends."""

    name: str


Event = Start | End | str
"""Of an XML text, in its order; a `str` is text between tags, a piece of it perhaps."""


class Package:
    """A ZIP file whose parts are read once or more, up to a limit for all of it.

    Args:
        file: A ZIP file.
        limit: Bytes that may be unpacked.

    Raises:
        BadZipFile: It is none.
    """

    def __init__(self, file: BinaryIO, limit: int = MAX_UNPACKED) -> None:
        self._zip = ZipFile(file)
        self._left = limit

    def has(self, part: str) -> bool:
        """Whether there is a part of that name."""
        return part in self._zip.NameToInfo

    def pieces(self, part: str) -> Iterator[bytes]:
        """The bytes of a part.

        Raises:
            UnreadableError: It is missing, encrypted or packed in a way of its own, or the limit is reached.
        """
        if not self.has(part):
            raise UnreadableError(Ending.DAMAGED)
        info = self._zip.NameToInfo[part]
        if info.flag_bits & _ENCRYPTED:
            raise UnreadableError(Ending.PROTECTED)
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise UnreadableError(Ending.DAMAGED)
        with self._zip.open(info) as unpacked:
            while piece := unpacked.read(PIECE):
                self._left -= len(piece)
                if self._left < 0:
                    raise UnreadableError(Ending.TOO_LARGE)
                yield piece

    def events(self, part: str) -> Iterator[Event]:
        """The XML of a part.

        Raises:
            UnreadableError: As `pieces`, or it has a document type.
            ExpatError: It is no XML.
        """
        found: list[Event] = []
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = lambda name, attributes: found.append(
            Start(_local(name), {_attribute(key): value for key, value in attributes.items()})
        )
        parser.EndElementHandler = lambda name: found.append(End(_local(name)))
        parser.CharacterDataHandler = found.append
        parser.StartDoctypeDeclHandler = _refuse
        for piece in chain(self.pieces(part), [b""]):
            fault = None
            try:
                parser.Parse(piece, not piece)
            except expat.ExpatError as error:
                fault = error
            # What stands before a fault counts.
            yield from found
            found.clear()
            if fault:
                raise fault

    def relations(self, part: str) -> list[tuple[str, str, str]]:
        """Id, type (its last word) and target of each relation of a part ("": of the package), within the package.

        Open Packaging Conventions (ECMA-376 part 2): they stand in `_rels/NAME.rels` beside the part.
        """
        folder, name = posixpath.split(part)
        rels = posixpath.join(folder, "_rels", f"{name}.rels")
        if not self.has(rels):
            return []
        relations = [event.attributes for event in self.events(rels) if isinstance(event, Start)]
        return [
            (each.get("Id", ""), each.get("Type", "").rpartition("/")[2], resolved(folder, each["Target"]))
            for each in relations
            if "Target" in each and each.get("TargetMode") != "External"
        ]


def resolved(folder: str, reference: str) -> str:
    """The name of a part that is named relative to a folder of the package."""
    path = unquote(reference.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _attribute(name: str) -> str:
    return f":{_local(name)}" if " " in name else name


def _refuse(*_declaration: object) -> None:
    raise UnreadableError(Ending.DAMAGED)
