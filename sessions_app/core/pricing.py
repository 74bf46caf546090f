"""What the model calls of a run cost. A price that nobody gave, or tokens that were not captured, stay unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache

from sessions_app.core.step_summary import StepSummary

_MILLION = Decimal(1_000_000)
_PROVIDERS = frozenset(
    {"anthropic", "azure", "bedrock", "cerebras", "cohere", "deepseek", "fireworks", "google", "google-cloud"}
    | {"google-gla", "google-vertex", "groq", "huggingface", "litellm", "mistral", "moonshotai", "ollama", "openai"}
    | {"openai-chat", "openai-responses", "openrouter", "together", "vercel", "xai"}
)


def bare_model(name: str) -> str:
    """Without the provider that Pydantic AI puts in front: `gpt-4o` of `openai:gpt-4o`. Other names have colons too."""
    provider, _, model = name.partition(":")
    return model if model and provider.rpartition("/")[2] in _PROVIDERS else name


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """US dollars for a million tokens, from a day on; None is always."""

    model: str
    since: date | None
    input_price: Decimal
    output_price: Decimal


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What is known of a cost, and how many model calls it leaves out."""

    dollars: Decimal = Decimal(0)
    priced: int = 0
    unpriced: int = 0
    uncounted: int = 0
    """Of the calls left out, those whose model has a price: their tokens were not recorded."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Of all calls, as far as they were recorded."""
    unpriced_tokens: int = 0
    """Of the calls whose model has no price."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            dollars=self.dollars + other.dollars,
            priced=self.priced + other.priced,
            unpriced=self.unpriced + other.unpriced,
            uncounted=self.uncounted + other.uncounted,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            unpriced_tokens=self.unpriced_tokens + other.unpriced_tokens,
        )

    @property
    def calls(self) -> int:
        return self.priced + self.unpriced

    @property
    def without_price(self) -> int:
        return self.unpriced - self.uncounted

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def is_known(self) -> bool:
        """At least in part."""
        return self.priced > 0

    @property
    def is_whole(self) -> bool:
        return self.is_known and not self.unpriced


NOTHING = Cost()


class PriceList:
    """The prices of a project, found by name and day."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._by_model: dict[str, list[Price]] = defaultdict(list)
        for price in sorted(prices, key=lambda price: price.since or date.min, reverse=True):
            self._by_model[price.model].append(price)
        self._matching = cache(self._names)

    def __bool__(self) -> bool:
        return bool(self._by_model)

    def price_of(self, model: str, on: date) -> Price | None:
        """That of the name itself before those of patterns, longer patterns first, then those of the bare model; the
        newest that holds on the day."""
        names = (name for spelled in (model, bare_model(model)) for name in self._matching(spelled))
        listed = (price for name in names for price in self._by_model[name])
        return next((price for price in listed if price.since is None or price.since <= on), None)

    def _names(self, model: str) -> list[str]:
        patterns = [name for name in self._by_model if "*" in name and fnmatchcase(model, name.replace("[", "[[]"))]
        exact = [model] if model in self._by_model else []
        return exact + sorted(patterns, key=lambda name: (-len(name), name))

    def cost_of(self, step: StepSummary, model: str | None, on: date) -> Cost:
        """Of one model call; `model` answers for calls that name none."""
        name = step.model or model
        price = self.price_of(name, on) if name else None
        used = Cost(input_tokens=step.input_tokens or 0, output_tokens=step.output_tokens or 0)
        if price is None:
            return replace(used, unpriced=1, unpriced_tokens=used.tokens)
        if step.input_tokens is None or step.output_tokens is None:
            return replace(used, unpriced=1, uncounted=1)
        dollars = (step.input_tokens * price.input_price + step.output_tokens * price.output_price) / _MILLION
        return replace(used, dollars=dollars, priced=1)

    def cost_of_run(self, steps: Iterable[StepSummary], model: str | None, on: date) -> Cost:
        calls = (self.cost_of(step, model, on) for step in steps if step.kind == "model")
        return sum(calls, start=NOTHING)
