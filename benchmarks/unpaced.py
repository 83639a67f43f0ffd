"""The daemon with Telegram's pace lifted, for measuring how fast it is where the platform would not let it be.

Everything else is what `zerobot run` does. Run by the benchmarks as `python -m benchmarks.unpaced CONFIG`.
"""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from channels.telegram import KIND
from zerobot.config.loader import load_config
from zerobot.core.channel import Pace
from zerobot.daemon.app import run_daemon

_CALLS = (100_000, 1.0)


def main() -> None:
    """Run until SIGTERM."""
    config = load_config(Path(sys.argv[1]), os.environ)
    kind = replace(KIND, pace=Pace(draft_interval=1.1, chat_calls=_CALLS, bot_calls=_CALLS))
    channel = {"telegram": (kind, config.settings.channels["telegram"])}
    asyncio.run(run_daemon(config, only_channels=(), extra_channels=channel))


if __name__ == "__main__":
    main()
