"""The text of EPUB books (EPUB 3.3): the chapters of the spine, as pages of the Web are read."""

from collections.abc import Iterator
from itertools import islice

from zerobot.tools.documents.document import Document
from zerobot.tools.documents.endings import Ending, UnreadableError
from zerobot.tools.documents.package import Package, Start, resolved
from zerobot.tools.page_child import to_markdown

MEDIA = "application/epub+zip"
MAX_CHAPTER = 2_000_000
"""Characters of a chapter's text."""
MAX_PIECES = 128
"""Of a chapter's page, 8 MiB in all: what comes later is left out."""


def epub(package: Package) -> Document:
    """The text of a book.

    Raises:
        UnreadableError: It names no contents.
    """
    roots = (event for event in package.events("META-INF/container.xml") if isinstance(event, Start))
    main = next((root.attributes.get("full-path", "") for root in roots if root.name == "rootfile"), "")
    if not package.has(main):
        raise UnreadableError(Ending.DAMAGED)
    if package.has("META-INF/encryption.xml") and _content_is_encrypted(package):
        raise UnreadableError(Ending.PROTECTED)
    return Document("an EPUB book", _chapters(package, main))


def _content_is_encrypted(package: Package) -> bool:
    # Fonts may be obfuscated in a book that is open to all.
    events = [event for event in package.events("META-INF/encryption.xml") if isinstance(event, Start)]
    named = [event.attributes.get("URI", "") for event in events if event.name == "CipherReference"]
    return any(name.endswith(("html", "htm", "xml")) for name in named)


def _chapters(package: Package, main: str) -> Iterator[str]:
    folder = main.rpartition("/")[0]
    targets: dict[str, str] = {}
    spine: list[str] = []
    for event in package.events(main):
        if isinstance(event, Start) and event.name == "item":
            targets[event.attributes.get("id", "")] = resolved(folder, event.attributes.get("href", ""))
        elif isinstance(event, Start) and event.name == "itemref":
            spine.append(event.attributes.get("idref", ""))
    for ident in spine:
        part = targets.get(ident, "")
        if package.has(part):
            html = b"".join(islice(package.pieces(part), MAX_PIECES)).decode("utf-8", "replace")
            yield to_markdown(html, "", MAX_CHAPTER)
            yield ""
