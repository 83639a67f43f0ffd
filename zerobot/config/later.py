"""What the configuration will have but this version does not do: refused, so that no switch is dead."""

KEYS: tuple[str, ...] = (
    "daemon.http_listen",
    "schedules",
    "mcp",
)
"""Keys and tables; `*` stands for the name of a table."""
