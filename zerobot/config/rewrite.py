"""Changing a TOML text so that comments, order and spacing stay; apart, since only this needs an editor of TOML."""

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Item, Table

from zerobot.config.keys import KeyPath


def rewritten(text: str, path: KeyPath, value: object) -> str | None:
    """Put a value into a text, with the tables that it needs; None when the text's form does not let it."""
    try:
        document = tomlkit.parse(text)
        table: object = document
        for depth, part in enumerate(path[:-1], 1):
            if not isinstance(table, dict):
                return None
            if part not in table:
                _add(table, str(part), tomlkit.table(is_super_table=depth < len(path) - 1))
            table = table[part]
        if not isinstance(table, dict):
            return None
        if path[-1] in table:
            table[path[-1]] = value
        else:
            _add(table, str(path[-1]), tomlkit.item(value))
        result = tomlkit.dumps(document)
        tomlkit.parse(result)
    except (TOMLKitError, ValueError):
        return None
    return result


def _add(table: dict[str, object], key: str, value: Item) -> None:
    """Add a key right behind the last one: what follows that, blank lines and comments, belongs to the next table."""
    if not isinstance(table, Table):
        table[key] = value
        return
    body = table.value.body
    tail: list[Item] = []
    while body and body[-1][0] is None:
        tail.insert(0, body.pop()[1])
    table.append(key, value)
    for item in tail:
        table.value.append(None, item)
