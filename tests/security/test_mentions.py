"""Places that people have named."""

import pytest

from zerobot.security.mentions import is_named

URL = "https://a.example/page?x=1"


@pytest.mark.parametrize(
    "text", [URL, f"read {URL}", f"read {URL}, please", f"see ({URL}).", f"<{URL}>", f"**{URL}**", f"{URL}\nand tell"]
)
def test_a_place_is_named_where_it_stands_whole(text: str) -> None:
    """In a sentence, in brackets, with a full stop."""
    assert is_named(URL, [text])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.example",
        "https://a.example/page",
        f"{URL}&y=2",
        f"{URL}/more",
        f"x{URL}",
        f"http://b.example/{URL}",
        f"{URL}.evil.example",
    ],
)
def test_another_place_is_not_this_one(text: str) -> None:
    """Not a longer one, nor a shorter one, nor one that it is a part of."""
    assert not is_named(URL, [text])


@pytest.mark.parametrize(
    "text",
    [
        f"[In answer to Zero:]\n> see {URL}\n> or not\n\nthanks",
        f"[In answer to {URL} :]\n> hello\n\nwho is that?",
        f"yes\n>{URL}\n",
        f"first\n[In answer to Bob:]\n> {URL}\n\nsecond",
    ],
)
def test_what_somebody_answers_is_not_said_by_him(text: str) -> None:
    """The quoted message may be the model's own, or a stranger's."""
    assert not is_named(URL, [text])
    assert is_named(URL, [f"{text}\nread {URL}"])


def test_no_place_is_named_by_nobody() -> None:
    """A call that goes to no place of the Web."""
    assert not is_named("", ["anything"])
