"""What model calls cost, as far as that is known."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from sessions_app.core.cost_figures import MOST_BARS, Facts, bar_length, cost_figures
from sessions_app.core.pricing import Cost, Price, PriceList
from sessions_app.core.step_summary import StepSummary
from sessions_app.templatetags.money import cost, dollars

DAY = date(2026, 5, 1)


def price(model: str, amount: int, since: date | None = None) -> Price:
    return Price(model=model, since=since, input_price=Decimal(amount), output_price=Decimal(10 * amount))


def call(model: str | None = "gpt-4o", tokens: tuple[int | None, int | None] = (1_000_000, 100_000)) -> StepSummary:
    step = StepSummary(index=1, kind="model", name="chat", text=0, model=model)
    step.input_tokens, step.output_tokens = tokens
    return step


@pytest.mark.parametrize(
    ("model", "on", "amount"),
    [
        ("gpt-4o", DAY, 2),
        ("gpt-4o", DAY - timedelta(days=1), 1),
        ("gpt-4o-mini", DAY, 4),
        ("gpt-4o-2024", DAY, 3),
        ("claude", DAY, None),
    ],
)
def test_the_price_is_that_of_the_name_and_the_day(model, on, amount):
    prices = PriceList(
        [price("gpt-4o", 1), price("gpt-4o", 2, DAY), price("gpt-4o*", 3), price("gpt-4o-m*", 4, DAY - timedelta(9))]
    )

    found = prices.price_of(model, on)

    assert (found and found.input_price) == amount


@pytest.mark.parametrize(
    ("name", "is_priced"),
    [("openai:gpt-4o", True), ("gateway/openai:gpt-4o", True), ("fallback:gpt-4o", False), ("gpt-4o:free", False)],
)
def test_a_provider_in_front_of_a_model_is_no_other_model(name, is_priced):
    prices = PriceList([price("gpt-4o", 1)])
    run = ("run", Facts(agent="a", model=None, began=datetime(2026, 5, 1, tzinfo=UTC)), [call(name), call()])

    assert (prices.price_of(name, DAY) is not None) is is_priced
    assert len(cost_figures([run], prices, "model").of_names) == (1 if is_priced else 2)


def test_a_price_that_begins_later_says_nothing_of_the_time_before():
    assert PriceList([price("gpt-4o", 1, DAY)]).price_of("gpt-4o", DAY - timedelta(days=1)) is None


def test_input_and_output_are_added_up():
    found = PriceList([price("gpt-4o", 2)]).cost_of_run([call(), call(None)], "gpt-4o", DAY)

    assert found == Cost(dollars=Decimal(8), priced=2, input_tokens=2_000_000, output_tokens=200_000)


@pytest.mark.parametrize(
    ("step", "uncounted"),
    [(call("claude"), 0), (call(tokens=(5, None)), 1), (call(tokens=(None, 5)), 1), (call(None), 0)],
)
def test_what_is_not_known_stays_unknown(step, uncounted):
    found = PriceList([price("gpt-4o", 2)]).cost_of_run([step], None, DAY)

    assert (found.unpriced, found.uncounted, found.is_known) == (1, uncounted, False)
    assert "unknown" in cost(found)


def test_a_cost_that_is_known_in_part_says_so():
    found = PriceList([price("gpt-4o", 2)]).cost_of_run([call(), call("claude")], None, DAY)

    assert "at least $4.00" in cost(found)


def test_costs_are_grouped_by_agent_or_by_model():
    facts = Facts(began=datetime(2026, 5, 1, tzinfo=UTC), agent="desk", model=None)
    prices, runs = PriceList([price("gpt-4o", 2)]), [("r1", facts, [call(), call("claude")])]

    by_agent, by_model = cost_figures(runs, prices, "agent"), cost_figures(runs, prices, "model")

    assert by_agent.of_names == {
        "desk": Cost(
            dollars=Decimal(4),
            priced=1,
            unpriced=1,
            input_tokens=2_000_000,
            output_tokens=200_000,
            unpriced_tokens=1_100_000,
        )
    }
    assert by_model.names == ["gpt-4o", "claude"]
    assert by_model.unpriced_models == {"claude"}
    assert [each.models for each in by_model.dearest] == [("gpt-4o", "claude")]


@pytest.mark.parametrize("days", [0, 1, 30, 400, 9000])
def test_no_time_takes_more_bars_than_are_shown(days):
    first = datetime(2020, 1, 1, tzinfo=UTC)
    last = first + timedelta(days=days)

    assert (last - first) / bar_length(first, last) <= MOST_BARS - 1


@pytest.mark.parametrize(
    ("amount", "words"),
    [("0", "$0.00"), ("1204.5", "$1,204.50"), ("0.42", "$0.42"), ("0.0031", "$0.0031"), ("0.000012345", "$0.000012")],
)
def test_small_amounts_keep_two_digits_that_count(amount, words):
    assert dollars(Decimal(amount)) == words
