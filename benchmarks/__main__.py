"""`python -m benchmarks`: measures the daemon beside the bare libraries and prints a table."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from importlib.util import find_spec

from benchmarks.crowd import crowd
from benchmarks.engine import ENGINE
from benchmarks.measures import MEASURES, Effort
from benchmarks.report import Row, table
from benchmarks.size import size


def main() -> int:
    """Measure what is asked for; 1 when something is not as aimed for, 2 when it cannot be measured here."""
    known = {**MEASURES, "crowd": crowd, **ENGINE, "size": size}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples, a shorter run; size only when named")
    parser.add_argument("--only", action="append", choices=list(known), metavar="NAME", help=", ".join(known))
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    if missing := _missing():
        print(f"not here: {missing}", file=sys.stderr)
        return 2
    names = options.only or [name for name in known if not (options.quick and name == "size")]
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += known[name](Effort(options.quick))
    if options.json:
        print(json.dumps([asdict(row) | {"verdict": row.verdict} for row in rows], ensure_ascii=False, indent=1))
    else:
        print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} at the end\n")
        print(table(rows))
    return int(any(row.verdict not in {"", "ok"} for row in rows))


def _missing() -> str:
    """What has to be there before anything can be measured; empty when it is."""
    if sys.platform != "linux":
        return "Linux; memory and processor time are read from /proc"
    libraries = [name for name in ("zerobot", "telegram", "discord", "slack_sdk", "httpx") if find_spec(name) is None]
    return f"{', '.join(libraries)}; run pip install -e '.[all]'" if libraries else ""


if __name__ == "__main__":
    sys.exit(main())
