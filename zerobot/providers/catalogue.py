"""What is known of models: how much they read and write, whether they see, and what that costs.

A number that is not known is None, never 0.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from typing import Any, Protocol

from zerobot.core.usage import Usage
from zerobot.providers.address import host_of

UNPRICED = "unpriced"
"""How a cost that nobody knows is written."""

_MILLION = 1_000_000
_STAMP = re.compile(r"(?:-latest|-\d{4}-\d\d-\d\d|-\d{8}|-\d{4}|-\d{3})?")


class KnownFacts(Protocol):
    """A table `[models."PROVIDER/MODEL"]`; None where it says nothing. Tokens, and USD for a million tokens."""

    @property
    def context_window(self) -> int | None:
        """Tokens that the model reads and writes together."""
        ...

    @property
    def max_output(self) -> int | None:
        """Tokens that one answer can have."""
        ...

    @property
    def vision(self) -> bool | None:
        """Whether it can be shown pictures."""
        ...

    @property
    def input_price(self) -> float | None:
        """Price of input."""
        ...

    @property
    def output_price(self) -> float | None:
        """Price of output."""
        ...

    @property
    def cache_read_price(self) -> float | None:
        """Price of input that was cached."""
        ...

    @property
    def cache_write_price(self) -> float | None:
        """Price of input that is written to the cache."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD for a million tokens."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of one model at one provider."""

    context_window: int | None = None
    max_output: int | None = None
    vision: bool = False
    """Whether it is known to see: a model without eyes that is sent a picture refuses, or makes up what is in it."""
    price: Price | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of the file."""

    hosts: frozenset[str]
    """Where its prices count."""
    match: tuple[str, ...]
    """Names of models."""
    values: Mapping[str, Decimal]
    """The numbers, by the names of `KnownFacts`."""
    vision: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The entries of the file, under what the configuration says."""

    entries: Sequence[Entry]
    own: Mapping[str, KnownFacts]
    """By PROVIDER/MODEL."""
    addresses: Mapping[str, str]
    """The base address of each provider, by the name of its table; without one it has none of the vendors' prices."""

    def facts(self, reference: str) -> ModelFacts:
        """Return what is known of a model.

        Args:
            reference: PROVIDER/MODEL.
        """
        provider, _, model = reference.partition("/")
        values: dict[str, Decimal] = {}
        vision = False
        if entry := _best(self.entries, model):
            at_home = host_of(self.addresses.get(provider, "")) in entry.hosts
            values = {key: value for key, value in entry.values.items() if at_home or not key.endswith("_price")}
            vision = entry.vision
        if own := self.own.get(reference):
            values |= _said(own)
            vision = vision if own.vision is None else own.vision
        return ModelFacts(
            context_window=_tokens(values.get("context_window")),
            max_output=_tokens(values.get("max_output")),
            vision=vision,
            price=_price(values),
        )

    def window_of(self, reference: str) -> int | None:
        """Return how many tokens a model reads and writes together; None when nobody knows."""
        return self.facts(reference).context_window

    def price_of(self, reference: str) -> Price | None:
        """Return what a model's tokens cost; None when it is unpriced."""
        return self.facts(reference).price

    def cost_of(self, reference: str, usage: Usage | None) -> Decimal | None:
        """Return what tokens of a model cost in USD; None when it is unpriced, or nobody knows how many they were."""
        return None if usage is None else cost(usage, self.price_of(reference))


def shipped() -> tuple[Entry, ...]:
    """Read the entries of the file that comes with zerobot."""
    text = files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8")
    document: Mapping[str, Any] = tomllib.loads(text, parse_float=Decimal)
    return tuple(
        Entry(
            hosts=frozenset(vendor["hosts"]),
            match=tuple(model["match"]),
            values={key: Decimal(value) for key, value in model.items() if key not in ("match", "vision")},
            vision=model["vision"],
        )
        for vendor in document["vendor"]
        for model in vendor["model"]
    )


def cost(usage: Usage, price: Price | None) -> Decimal | None:
    """Return what tokens cost in USD, exactly; None when the price is not known."""
    if price is None:
        return None
    fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
    return (
        fresh * price.input
        + usage.cache_read_tokens * price.cache_read
        + usage.cache_write_tokens * price.cache_write
        + usage.output_tokens * price.output
    ) / _MILLION


def total(costs: Iterable[Decimal | None]) -> Decimal | None:
    """Add costs up; one that is not known makes the sum unknown."""
    known = Decimal(0)
    for each in costs:
        if each is None:
            return None
        known += each
    return known


def cost_text(amount: Decimal | None) -> str:
    """Write a cost for people: four decimals below a dollar, two above, `unpriced` when it is not known."""
    if amount is None:
        return UNPRICED
    if 0 < amount < Decimal("0.0001"):
        return "<$0.0001"
    return f"${amount:.4f}" if 0 < amount < 1 else f"${amount:.2f}"


def _best(entries: Sequence[Entry], model: str) -> Entry | None:
    """Return the entry with the longest name that a model's name is, or begins with before a stamp."""
    name = _plain(model)
    found = [(len(match), entry) for entry in entries for match in entry.match if _is_named(name, _plain(match))]
    return max(found, key=lambda each: each[0])[1] if found else None


def _is_named(name: str, match: str) -> bool:
    return name.startswith(match) and bool(_STAMP.fullmatch(name, len(match)))


def _plain(model: str) -> str:
    return model.rpartition("/")[2].lower().replace(".", "-")


def _said(own: KnownFacts) -> dict[str, Decimal]:
    said = {
        "context_window": own.context_window,
        "max_output": own.max_output,
        "input_price": own.input_price,
        "output_price": own.output_price,
        "cache_read_price": own.cache_read_price,
        "cache_write_price": own.cache_write_price,
    }
    # By its text, as a float has digits that nobody wrote.
    return {key: Decimal(str(value)) for key, value in said.items() if value is not None}


def _tokens(value: Decimal | None) -> int | None:
    return None if value is None else int(value)


def _price(values: Mapping[str, Decimal]) -> Price | None:
    """Return the price if both of its halves are known; what is cached costs as much as other input unless known."""
    fresh, output = values.get("input_price"), values.get("output_price")
    if fresh is None or output is None:
        return None
    read, written = values.get("cache_read_price", fresh), values.get("cache_write_price", fresh)
    return Price(input=fresh, output=output, cache_read=read, cache_write=written)
