"""The searching half of `search_files`, a script that runs in a process of its own so that it can be ended.

Python's `re` cannot be interrupted, and some patterns take longer than the universe has. This process reads the
pattern and then files from its standard input (a JSON line with `name` and `size`, then that many bytes) and writes
a JSON line for each hit. It opens nothing, and imports nothing of zerobot.
"""

import json
import re
import sys


def main() -> None:
    """Search until the input ends or enough was found."""
    order = json.loads(sys.stdin.buffer.readline())
    pattern = re.compile(order["pattern"], re.IGNORECASE if order["ignore_case"] else 0)
    left = order["max_hits"]
    while left > 0 and (header := sys.stdin.buffer.readline()):
        file = json.loads(header)
        text = sys.stdin.buffer.read(file["size"]).decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if pattern.search(line):
                hit = {"name": file["name"], "line": number, "text": line[: order["max_line"]]}
                sys.stdout.write(json.dumps(hit) + "\n")
                left -= 1
                if left == 0:
                    break
        sys.stdout.flush()


if __name__ == "__main__":
    main()
