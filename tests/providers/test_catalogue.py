"""What is known of models, and that what is not known is never taken to be free."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from importlib.resources import files

import pytest

from zerobot.config.schema import ModelTable
from zerobot.core.usage import Usage
from zerobot.providers.catalogue import UNPRICED, Catalogue, Price, cost, cost_text, shipped, total

ENTRIES = shipped()
ADDRESSES = {
    "claude": "https://api.anthropic.com",
    "gpt": "https://api.openai.com/v1",
    "router": "https://openrouter.ai/api/v1",
    "local": "http://127.0.0.1:11434/v1",
}


def catalogue(own: Mapping[str, ModelTable] | None = None) -> Catalogue:
    """The file's entries under some tables."""
    return Catalogue(entries=ENTRIES, own=own or {}, addresses=ADDRESSES)


def test_every_entry_makes_sense() -> None:
    """Known keys, whole prices, windows that hold an answer, and no name twice."""
    known = set(ModelTable.model_fields)
    names: list[str] = []
    for entry in ENTRIES:
        names += entry.match
        assert entry.values.keys() <= known
        assert ("input_price" in entry.values) is ("output_price" in entry.values)
        assert entry.values["context_window"] >= entry.values.get("max_output", 1)
        assert all(value > 0 for value in entry.values.values())
        assert entry.values.get("cache_read_price", 0) <= entry.values.get("input_price", 0)
    assert len(set(names)) == len(names)


def test_the_file_says_where_to_correct_it() -> None:
    """Prices change; the file is plain TOML and names the table that overrides it."""
    text = files("zerobot.providers").joinpath("catalogue.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["vendor"]
    assert '[models."PROVIDER/MODEL"]' in text


@pytest.mark.parametrize(
    ("reference", "window", "input_price"),
    [
        ("claude/claude-sonnet-4-5", 200_000, "3"),
        ("claude/claude-sonnet-4-5-20250929", 200_000, "3"),
        ("claude/claude-opus-4-20250514", 200_000, "15"),
        ("claude/claude-opus-4-5-20251101", 200_000, "5"),
        ("claude/claude-opus-4-99", None, None),
        ("claude/claude-sonnet-4-5-turbo", None, None),
        ("gpt/gpt-4o", 128_000, "2.5"),
        ("gpt/gpt-4o-2024-08-06", 128_000, "2.5"),
        ("gpt/gpt-4o-2024-05-13", 128_000, "5"),
        ("gpt/gpt-4o-mini-2024-07-18", 128_000, "0.15"),
        ("gpt/gpt-4o-audio-preview", None, None),
        ("gpt/gpt-4.1", 1_047_576, "2"),
        ("gpt/gpt-5-chat-latest", 128_000, "1.25"),
        ("gpt/claude-sonnet-4-5", 200_000, None),
        ("router/anthropic/claude-sonnet-4.5", 200_000, None),
        ("local/llama3", None, None),
        ("demo/demo", None, None),
        ("nobody/gpt-4o", 128_000, None),
        ("demo", None, None),
    ],
)
def test_a_model_is_found_by_its_name(reference: str, window: int | None, input_price: str | None) -> None:
    """With a stamp too; a name that only begins alike is another model; prices are the vendor's own alone."""
    known = catalogue()
    assert known.window_of(reference) == window
    price = known.price_of(reference)
    assert (price and price.input) == (input_price and Decimal(input_price))


def test_what_the_configuration_says_counts() -> None:
    """Key by key, over the file's."""
    own = {
        "claude/claude-sonnet-4-5": ModelTable(context_window=1_000_000, input_price=2.5),
        "router/x": ModelTable(input_price=0.1, output_price=0.3),
        "router/half": ModelTable(input_price=0.1),
    }
    known = catalogue(own)
    facts = known.facts("claude/claude-sonnet-4-5")
    assert (facts.context_window, facts.max_output) == (1_000_000, 64_000)
    assert facts.price == Price(
        input=Decimal("2.5"), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75")
    )
    assert known.price_of("router/x") == Price(
        input=Decimal("0.1"), output=Decimal("0.3"), cache_read=Decimal("0.1"), cache_write=Decimal("0.1")
    )
    assert known.price_of("router/half") is None


@pytest.mark.parametrize(
    ("reference", "sees"),
    [
        ("claude/claude-sonnet-4-5", True),
        ("router/openai/gpt-4o", True),
        ("gpt/o3-mini", False),
        ("local/llava", False),
        ("local/qwen-vl", True),
        ("gpt/gpt-4.1", False),
    ],
)
def test_who_sees_pictures(reference: str, *, sees: bool) -> None:
    """By the catalogue, wherever the model is; the configuration counts over it; who is not known does not see."""
    own = {"local/qwen-vl": ModelTable(vision=True), "gpt/gpt-4.1": ModelTable(vision=False)}
    assert catalogue(own).facts(reference).vision is sees


def test_a_local_model_is_free_only_when_that_is_said() -> None:
    """Nothing known is `unpriced`; zero is a price that somebody wrote down."""
    usage = Usage(input_tokens=1000, output_tokens=1000)
    assert catalogue().cost_of("local/llama3", usage) is None
    free = catalogue({"local/llama3": ModelTable(input_price=0, output_price=0)})
    assert free.cost_of("local/llama3", usage) == 0


def test_a_cost_is_exact() -> None:
    """Fresh, cached, written and output tokens each at their own price; input counts all of its three kinds."""
    price = catalogue().price_of("claude/claude-sonnet-4-5")
    usage = Usage(input_tokens=1_000, output_tokens=200, cache_read_tokens=600, cache_write_tokens=300)
    # 100 fresh at 3, 600 read at 0.3, 300 written at 3.75, 200 of output at 15, for a million.
    assert cost(usage, price) == Decimal("0.004605")
    assert cost(usage, None) is None


def test_a_cost_of_unknown_tokens_is_unknown() -> None:
    """A provider that reported nothing did not work for nothing."""
    assert catalogue().cost_of("claude/claude-sonnet-4-5", None) is None


def test_more_cached_than_all_is_not_paid_back() -> None:
    """A server that counts cached input apart makes nothing negative."""
    price = Price(input=Decimal(1), output=Decimal(1), cache_read=Decimal(1), cache_write=Decimal(1))
    assert cost(Usage(input_tokens=5, cache_read_tokens=10), price) == Decimal("0.00001")


def test_a_sum_with_something_unknown_is_unknown() -> None:
    """An unpriced part makes the whole unpriced."""
    assert total([Decimal(1), Decimal("0.5")]) == Decimal("1.5")
    assert total([]) == 0
    assert total([Decimal(1), None]) is None


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, UNPRICED),
        (Decimal(0), "$0.00"),
        (Decimal("0.00000001"), "<$0.0001"),
        (Decimal("0.004605"), "$0.0046"),
        (Decimal("12.345"), "$12.34"),
    ],
)
def test_a_cost_is_written_for_people(amount: Decimal | None, text: str) -> None:
    """Small amounts are not rounded to nothing, and what is not known says so."""
    assert cost_text(amount) == text
