"""Libraries that the daemon's libraries look for, that it does without, and that cost time or memory all the same."""

import sys
from importlib.util import find_spec

_NOT_WANTED = "httpx._main"
"""The command line of httpx: click, rich and pygments come with it, 4 MiB and 30 ms at the start."""
_LOOKED_FOR = "sniffio"
"""httpcore tries to import it for every lock and event that it makes, some 15 times a turn; each time Python searches
all its path again. Where it is not installed the profiler counts a seventh of a turn for it."""


def declare_absent() -> None:
    """Let the attempts to import these fail at once; to be called before httpx is imported.

    A module that is None in `sys.modules` cannot be imported; both libraries take that as "not installed":
    https://docs.python.org/3/reference/import.html#the-module-cache
    """
    absent: dict[str, None] = {_NOT_WANTED: None}
    if find_spec(_LOOKED_FOR) is None:
        absent[_LOOKED_FOR] = None
    for name in absent.keys() - sys.modules.keys():
        sys.modules[name] = None  # type: ignore[assignment]
