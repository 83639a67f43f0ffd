"""How much an installation with Telegram takes: a fresh environment, filled from the package index."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.process import MIB, ROOT
from benchmarks.report import Row

if TYPE_CHECKING:
    from benchmarks.measures import Effort

_NOT_OURS = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence")
"""What an environment has before anything is installed."""


def size(effort: "Effort") -> list[Row]:
    """Install the package with Telegram, and add up what that brought; without bytecode, pip and setuptools."""
    del effort
    with tempfile.TemporaryDirectory(prefix="zerobot-benchmark-") as folder:
        venv.create(folder, with_pip=True)
        command = [f"{folder}/bin/python", "-m", "pip", "install", "-q", "--no-compile", f"{ROOT}[telegram]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"size cannot be measured, pip says: {done.stderr.strip()[-500:]}", file=sys.stderr)
            return []
        (packages,) = Path(folder).glob("lib/python*/site-packages")
        ours = [entry for entry in packages.iterdir() if not entry.name.startswith(_NOT_OURS)]
        files = [file for entry in ours for file in (entry.rglob("*") if entry.is_dir() else [entry])]
        taken = sum(file.stat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts)
        count = sum(entry.name.endswith(".dist-info") for entry in ours)
    return [
        Row(measure="installed size with Telegram", unit="MiB", zerobot=taken / MIB, aim=45),
        Row(measure="installed distributions", unit="", zerobot=count, aim=40),
    ]
