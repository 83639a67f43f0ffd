"""Durations and sizes, as people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.core.settings import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86400), ("1.5h", 5400), ("0s", 0), ("15", 15), (" 5 m ", 300)],
)
def test_a_duration_is_read_as_seconds(text: str, seconds: float) -> None:
    """Every unit of the contract counts, with a fraction too; no unit means seconds."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("value", [90, 1.5, 0])
def test_a_number_is_seconds(value: float) -> None:
    """A duration may be written as a plain number."""
    assert parse_duration(value) == value


@pytest.mark.parametrize(
    "value", ["-1s", "", "s", "1w", "1m30s", "inf", -1, -0.5, float("inf"), float("nan"), 10**400, "9" * 400, True, []]
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    """Negative, endless and misspelt durations are errors, and so is a truth value."""
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("20MB", 20_000_000),
        ("512KiB", 524_288),
        ("1GB", 10**9),
        ("1gib", 2**30),
        ("7B", 7),
        ("7", 7),
        ("0.5MB", 500_000),
    ],
)
def test_a_size_is_read_as_bytes(text: str, size: int) -> None:
    """KB, MB and GB count in thousands, KiB, MiB and GiB in 1024s; no unit means bytes."""
    assert parse_size(text) == size


@pytest.mark.parametrize("value", ["-1MB", "", "MB", "1TB", "1 M", -1, 1.5, 10**400, "9" * 400 + "GB", True, None])
def test_what_is_no_size_is_refused(value: object) -> None:
    """Negative and misspelt sizes are errors."""
    with pytest.raises(ValueError, match="is no size"):
        parse_size(value)


@settings(max_examples=50)
@given(st.integers(min_value=0, max_value=10**8).map(lambda tenths: tenths / 10))
def test_a_written_duration_reads_the_same(seconds: float) -> None:
    """What `show` prints for a duration can be put into a file."""
    assert parse_duration(format_duration(seconds)) == seconds


@settings(max_examples=50)
@given(st.integers(min_value=0, max_value=10**13))
def test_a_written_size_reads_the_same(size: int) -> None:
    """What `show` prints for a size can be put into a file."""
    assert parse_size(format_size(size)) == size
