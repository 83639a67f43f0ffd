"""How code is loaded: what makes the start of a process short."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Load code without looking for garbage meanwhile: nothing of it is, and looking takes a tenth of the time."""
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()
