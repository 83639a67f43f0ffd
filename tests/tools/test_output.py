"""Output within bounds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.tools.output import CappedOutput


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet="abc", max_size=30).map(str.encode), max_size=20))
def test_the_beginning_and_the_end_are_kept(pieces: list[bytes]) -> None:
    """However the output is cut into pieces; what is left out is counted."""
    output = CappedOutput(head=10, tail=10)
    for piece in pieces:
        output.add(piece)
    whole = b"".join(pieces)
    if len(whole) <= 20:
        assert output.text() == whole.decode("utf-8", "replace")
    else:
        head, note, tail = output.text().split("\n")[0], f"{len(whole) - 20} bytes", output.text().rsplit("\n", 1)[-1]
        assert head == whole[:10].decode("utf-8", "replace")
        assert tail == whole[-10:].decode("utf-8", "replace")
        assert note in output.text()
