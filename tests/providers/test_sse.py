from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.providers.sse import SseEvent, SseLimitError, SseParser


def read(*pieces: bytes, end: bool = False) -> list[SseEvent]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + (parser.end() if end else [])


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_all_three_line_ends_are_lines(line_end: str) -> None:
    """LF, CRLF and a bare CR end a line, and an empty line ends an event."""
    raw = f"event: a{line_end}data: 1{line_end}data: 2{line_end}{line_end}data:3{line_end}{line_end}"
    assert read(raw.encode()) == [SseEvent("a", "1\n2"), SseEvent("message", "3")]


def test_comments_ids_and_unknown_fields_are_passed_over() -> None:
    """Only `data` and `event` mean something; an event without data is none."""
    assert read(b": hi\nid: 7\nretry: 5\nx: y\ndata\n\nevent: lonely\n\ndata: z\n\n") == [
        SseEvent("message", ""),
        SseEvent("message", "z"),
    ]


def test_one_blank_after_the_colon_is_no_data() -> None:
    """A second blank is."""
    assert read(b"data:  x\n\n") == [SseEvent("message", " x")]


def test_a_byte_order_mark_is_dropped() -> None:
    """Also when it comes in two pieces; later it is a character like any other."""
    assert read(b"\xef\xbb", b"\xbfdata: x\n\n", b"data: \xef\xbb\xbf\n\n") == [
        SseEvent("message", "x"),
        SseEvent("message", "\ufeff"),
    ]


def test_broken_utf8_is_replaced_and_reading_goes_on() -> None:
    """One bad byte costs one character."""
    assert read(b"data: a\xffb\n\ndata: c\n\n") == [SseEvent("message", "a\ufffdb"), SseEvent("message", "c")]


def test_a_character_cut_by_the_network_is_whole() -> None:
    """UTF-8 that is split over reads is joined."""
    emoji = "👋".encode()
    assert read(b"data: " + emoji[:2], emoji[2:] + b"\n\n") == [SseEvent("message", "👋")]


def test_the_end_gives_an_event_that_lacks_its_blank_line() -> None:
    """Proxies cut the last blank line off; before the end the event is not given."""
    assert read(b"data: x\n") == []
    assert read(b"data: x", end=True) == [SseEvent("message", "x")]


def test_a_line_beyond_the_limit_is_refused() -> None:
    """Neither a finished nor an endless line fills the memory."""
    with pytest.raises(SseLimitError):
        SseParser(max_line=10).feed(b"data: 12345678\n")
    parser = SseParser(max_line=10)
    parser.feed(b"data: 12")
    with pytest.raises(SseLimitError):
        parser.feed(b"345")


def test_an_event_beyond_the_limit_is_refused() -> None:
    """Many short lines are as bad as a long one."""
    parser = SseParser(max_event=20)
    with pytest.raises(SseLimitError):
        parser.feed(b"data: 1234\n" * 10)


_TEXT = st.lists(
    st.sampled_from(
        [b"data: ", b"event: ", b":", b"\r", b"\n", b"\r\n", "ü👋".encode(), b"\xff", b"x", b"\xef\xbb\xbf"]
    )
).map(b"".join)


@settings(max_examples=200, deadline=None)
@given(_TEXT, st.lists(st.integers(0, 60), max_size=8))
def test_the_cut_into_pieces_makes_no_difference(raw: bytes, cuts: list[int]) -> None:
    """However the network cuts the bytes, the events are the same."""
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    pieces = [raw[start:stop] for start, stop in pairwise(places)]
    assert read(*pieces, end=True) == read(raw, end=True)
