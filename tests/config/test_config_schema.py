"""The JSON Schema, and what the configuration does not have yet."""

import json

import pytest

from tests.config.conftest import Load
from zerobot.config import later
from zerobot.config.json_schema import json_schema
from zerobot.config.keys import matches
from zerobot.config.kinds import CHANNEL_GROUP, Kinds, installed_kinds
from zerobot.config.tables import Tables


def test_the_schema_has_every_table(kinds: Kinds) -> None:
    """Its own tables, those of each kind that works, and the kinds of providers are in it, and it is JSON."""
    schema = json.loads(json.dumps(json_schema(kinds)))
    assert schema["additionalProperties"] is False
    channels = schema["properties"]["channels"]
    assert sorted(channels["properties"]) == ["console", "discord", "email", "remote", "slack", "telegram"]
    definitions = schema["$defs"]
    assert definitions["ProviderTable"]["properties"]["kind"]["enum"] == ["anthropic", "demo", "openai"]
    assert "instructions_file" in definitions["AgentSettings"]["properties"]
    assert "pairing" not in definitions["channel-console"]["properties"]


def test_the_schema_takes_a_secret_from_a_file(kinds: Kinds) -> None:
    """Either the secret or its file is required, and no default of a secret is shown."""
    telegram = json_schema(kinds)["$defs"]["channel-telegram"]
    assert telegram["allOf"] == [{"oneOf": [{"required": ["bot_token"]}, {"required": ["bot_token_file"]}]}]
    assert "bot_token" not in telegram.get("required", [])


def test_every_reference_of_the_schema_leads_somewhere(kinds: Kinds) -> None:
    """No `$ref` is left that nothing defines."""
    schema = json_schema(kinds)
    text = json.dumps(schema)
    names = {part.partition('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert names <= schema["$defs"].keys()


@pytest.mark.parametrize("key", later.KEYS)
def test_what_comes_later_is_no_key_yet(key: str) -> None:
    """A key is either read or refused as coming, never both."""
    path = tuple("name" if part == "*" else part for part in key.split("."))
    assert path[-1] not in Tables({}).keys(path[:-1])
    assert matches(path, key)


def test_kinds_are_found_by_entry_points() -> None:
    """What a package declares is a kind; nothing of it is loaded to know its name."""
    assert {"console", "telegram"} <= installed_kinds().channels.keys()
    assert {"anthropic", "demo", "openai", "openai_responses"} <= installed_kinds().providers.keys()
    assert CHANNEL_GROUP == "zerobot.channels"


def test_the_demo_provider_is_not_loaded_to_be_there(load: Load) -> None:
    """A default configuration imports no provider."""
    assert list(load("").settings.providers) == ["demo"]
