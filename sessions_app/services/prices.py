"""List prices of models, as far as they are publicly known, for whoever fills in the table of prices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version


@dataclass(frozen=True, kw_only=True, slots=True)
class ListPrice:
    """US dollars for a million tokens, and who says so."""

    model: str
    """Whose price it is: a dated version costs what its model does."""
    input_price: Decimal
    output_price: Decimal
    source: str
    """The package, which gives no date for its prices."""
    page: str
    """Address of the provider's own list; empty where the package names none."""


def list_price(model: str) -> ListPrice | None:
    """From the data that comes with `genai-prices`; None where it knows the model not, or no one price of it."""
    return _listed(model) or (_listed(undated) if (undated := _DATED.sub("", model)) != model else None)


_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def _listed(model: str) -> ListPrice | None:
    from genai_prices import data_snapshot  # takes a second, and is needed here alone

    try:
        # Frameworks put the provider in front: `openai:gpt-4o`.
        provider, found = data_snapshot.get_snapshot().find_provider_model(model.rpartition(":")[2], None, None, None)
    except LookupError:
        return None
    prices = found.prices if not isinstance(found.prices, list) else found.prices[-1].prices
    amounts = (_base(prices.input_mtok), _base(prices.output_mtok))
    if amounts[0] is None or amounts[1] is None:
        return None
    return ListPrice(
        model=model,
        input_price=amounts[0],
        output_price=amounts[1],
        source=f"genai-prices {version('genai-prices')}",
        page=next(iter(provider.pricing_urls or ()), ""),
    )


def _base(price: object) -> Decimal | None:
    """Of tiers the first one."""
    amount = getattr(price, "base", price)
    return amount if isinstance(amount, Decimal) else None
