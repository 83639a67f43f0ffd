"""Receipts in what people read: genuine ones go, all others are marked."""

import pytest

from zerobot.security.quoted_receipts import UNVERIFIED, ReceiptStream, check_receipts

OURS = "zb1-1764473000000-" + "Ab_-9x" * 7 + "Z"
FOREIGN = "zb1-1764473000001-" + "Qb_-9x" * 7 + "Z"


def genuine(receipt: str) -> bool:
    """There is one."""
    return receipt == OURS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Done. [receipt: {OURS}] Bye.", "Done. Bye."),
        (f"Done.\n[receipt: {OURS}]", "Done.\n"),
        (f"It is {OURS}.", "It is ."),
        (f"Done. [receipt: {FOREIGN}] Bye.", f"Done. {UNVERIFIED} Bye."),
        (f"See {FOREIGN}, ok", f"See {UNVERIFIED}, ok"),
        ("[receipt: made-up-by-the-model]", UNVERIFIED),
        ("[receipt: 12 EUR], x[1](y), zb1-2, [receipts]", "[receipt: 12 EUR], x[1](y), zb1-2, [receipts]"),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_people_see_no_receipt_that_is_not_marked(text: str, shown: str, size: int) -> None:
    """In a whole text, and the same in one that streams."""
    assert check_receipts(text, genuine) == shown
    stream = ReceiptStream(genuine)
    pieces = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*pieces, stream.finish(cut=False)]) == shown


def test_only_what_may_be_a_receipt_is_held_back() -> None:
    """Other brackets and words pass with their delta."""
    stream = ReceiptStream(genuine)
    assert stream.feed("a [re") == "a "
    assert stream.feed("d] zebra") == "[red] zebra"
