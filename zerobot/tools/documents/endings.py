"""How the reading of a document ends; the process that reads tells it by its exit status."""

from enum import IntEnum


class Ending(IntEnum):
    """An exit status. The numbers are none that Python, a shell or a signal gives by itself."""

    COMPLETE = 0
    NO_DOCUMENT = 10
    PROTECTED = 11
    OLD_OFFICE = 12
    DAMAGED = 13
    TOO_LARGE = 14
    NO_LIBRARY = 15
    TOO_SLOW = 16
    """Of the process too: by the signal that ends it, or by whoever waits for it."""
    TOO_LONG = 17
    """The text, of which no more is wanted."""


WHY = {
    Ending.NO_DOCUMENT: "it is not a kind of document that can be read",
    Ending.PROTECTED: "it is protected by a password, or encrypted in a way that is not known here",
    Ending.OLD_OFFICE: "it is in the binary form of Office before 2007 (.doc, .xls, .ppt); "
    "saved as .docx, .xlsx, .pptx or PDF it can be read",
    Ending.DAMAGED: "it is damaged, or not what it seems to be",
    Ending.TOO_LARGE: "it unpacks to more than can be read",
    Ending.NO_LIBRARY: "the library that reads this kind is not installed; "
    "whoever runs the bot can add it: pip install 'zerobot[documents]'",
    Ending.TOO_SLOW: "it takes too long to read",
    Ending.TOO_LONG: "it is too long",
}
"""Clauses for people and models."""


class UnreadableError(Exception):
    """There is no text to be had from a document."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(WHY[ending])
        self.ending = ending
