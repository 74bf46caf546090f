"""How often a fork with a live model met what was expected, and what of it can be known."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.fork.sampling import Budget, Outcome, Samples, estimate, group_outcomes, outcome_of, wilson
from sessions_app.core.payload import Payload
from sessions_app.core.run import ErrorInfo, ModelCall, Run, Step, ToolCall

COUNTS = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def make_run(run_id: str = "a", output: Any = None, **fields: Any) -> Run:
    payload = Payload.of_text(output) if isinstance(output, str) else Payload.of_json(output)
    fields = {"status": "ok", "output": None if output is None else payload, **fields}
    return Run(run_id=run_id, session_id="s", **fields)


def make_outcome(output: Any, run_id: str = "a", met: bool | None = None) -> Outcome:
    return outcome_of(make_run(run_id, output), met)


# --- the interval ------------------------------------------------------------------------------


@given(COUNTS)
def test_the_interval_holds_the_share_that_was_seen(counts):
    met, n = counts

    low, high = wilson(met, n)

    assert 0 <= low <= met / n <= high <= 1
    assert low < high


@given(COUNTS, st.integers(2, 20))
def test_the_interval_narrows_with_more_samples(counts, times):
    met, n = counts
    few, many = wilson(met, n), wilson(met * times, n * times)

    assert many[1] - many[0] < few[1] - few[0]


@given(COUNTS)
def test_the_interval_of_what_was_not_met_is_the_mirror(counts):
    met, n = counts
    low, high = wilson(met, n)

    assert wilson(n - met, n) == pytest.approx((1 - high, 1 - low))


def test_the_interval_is_that_of_the_books():
    assert wilson(15, 50) == pytest.approx((0.1910, 0.4375), abs=5e-5)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=5e-5)


def test_nothing_seen_is_nothing_known():
    assert wilson(0, 0) == (0.0, 1.0)


def coverage(z: float, *, share: float = 0.3, n: int = 50, repetitions: int = 2000) -> float:
    """In how many repetitions the interval holds the true share."""
    chance = random.Random(20)
    seen = [sum(chance.random() < share for _ in range(n)) for _ in range(repetitions)]
    intervals = [wilson(met, n, z) for met in seen]
    return sum(low <= share <= high for low, high in intervals) / repetitions


def test_the_interval_holds_the_true_share_nineteen_times_of_twenty():
    assert 0.93 <= coverage(1.96) < 0.99


def test_an_interval_of_one_in_two_is_found_out():
    assert coverage(0.674) < 0.93


# --- the budget --------------------------------------------------------------------------------


def make_steps(*tokens: int | None) -> tuple[Step, ...]:
    """Model steps 1, 3, 5 …, each followed by a tool."""
    made = []
    for count in tokens:
        call = ModelCall(history=None, response=None, input_tokens=count, output_tokens=10)
        made.append(Step(index=len(made) + 1, name="model", call=call))
        made.append(Step(index=len(made) + 1, name="look", call=ToolCall(tool_name="look")))
    return tuple(made)


def test_the_budget_counts_from_the_forks_step_on():
    run = make_run(steps=make_steps(100, 200, 400))

    assert estimate(run, 3, 20) == Budget(requests=40, input_tokens=20 * 600, output_tokens=20 * 20)
    assert estimate(run, 4, 20) == Budget(requests=20, input_tokens=20 * 400, output_tokens=20 * 10)


def test_the_budget_makes_up_no_tokens():
    run = make_run(steps=make_steps(100, None))

    assert estimate(run, 1, 2).input_tokens is None
    assert estimate(run, 1, 2).output_tokens == 40
    assert estimate(run, 1, 2).to_json() == {"requests": 4, "input_tokens": None, "output_tokens": 40}


def test_what_a_tool_asks_inside_costs_nothing():
    outer, tool = make_steps(100)
    inner = Step(index=3, name="model", call=ModelCall(history=None, response=None, input_tokens=5), parent=2)

    assert estimate(make_run(steps=(outer, tool, inner)), 1, 1).requests == 1


# --- outcomes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [("It is late.", "It  is\nlate. "), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ('{"a": 1}', {"a": 1})],
)
def test_outcomes_that_say_the_same_are_one_group(left, right):
    [group] = group_outcomes([make_outcome(left, "a"), make_outcome(right, "b")])

    assert (group.count, group.run_ids) == (2, ("a", "b"))


@pytest.mark.parametrize(
    ("left", "right"),
    [("It is late.", "It is not late."), ({"a": 1}, {"a": "1"}), ({"a": 1}, {"a": True}), ("[1]", [2])],
)
def test_outcomes_that_differ_are_two_groups(left, right):
    assert len(group_outcomes([make_outcome(left), make_outcome(right)])) == 2


def test_errors_are_alike_by_their_type():
    def failed(type: str, message: str) -> Outcome:
        return outcome_of(make_run(status="error", error=ErrorInfo(type=type, message=message)))

    groups = group_outcomes([failed("KeyError", "a"), failed("KeyError", "b"), failed("ValueError", "a")])

    assert [(group.words, group.count) for group in groups] == [("KeyError", 2), ("ValueError", 1)]


def test_an_error_is_not_the_same_as_a_text_of_its_name():
    error = outcome_of(make_run(status="error", error=ErrorInfo(type="KeyError", message=None)))

    assert len(group_outcomes([error, make_outcome("KeyError")])) == 2


def test_the_largest_group_comes_first():
    groups = group_outcomes([make_outcome(text) for text in ("a", "b", "c", "b")])

    assert [group.words for group in groups] == ["b", "a", "c"]


def test_long_outcomes_are_shortened_and_still_told_apart():
    groups = group_outcomes([make_outcome("x" * 5000 + end) for end in "ab"])

    assert [len(group.words) for group in groups] == [300, 300]


# --- all of them -------------------------------------------------------------------------------


def test_samples_say_how_many_met_what_was_expected():
    samples = Samples(n=5)
    for run_id, text, met in (("a", "yes", True), ("b", "no", False), ("c", "yes", True)):
        samples = samples.add(make_outcome(text, run_id, met))
    samples = samples.fail("It is busy (429).")

    assert samples.to_json() == {
        "n": 5,
        "done": 3,
        "met": 2,
        "unjudged": 0,
        "again": 3,
        "interval": list(wilson(2, 3)),
        "groups": [
            {"words": "yes", "count": 2, "run_ids": ["a", "c"]},
            {"words": "no", "count": 1, "run_ids": ["b"]},
        ],
        "errors": [{"words": "It is busy (429).", "count": 1}],
    }


def test_what_nobody_judged_is_no_part_of_the_share():
    samples = Samples(n=3).add(make_outcome("yes", met=True)).add(make_outcome("yes")).to_json()

    assert (samples["done"], samples["met"], samples["unjudged"]) == (2, 1, 1)
    assert samples["interval"] == list(wilson(1, 1))


def test_samples_that_only_a_person_can_judge_have_no_interval():
    samples = Samples(n=1).add(make_outcome("yes")).to_json()

    assert (samples["met"], samples["interval"], samples["unjudged"]) == (None, None, 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([True, False, None])), min_size=1, max_size=30))
def test_every_sample_is_in_one_group(seen):
    samples = Samples(n=30)
    for number, (text, met) in enumerate(seen):
        samples = samples.add(make_outcome(text, f"r{number}", met))

    groups = samples.to_json()["groups"]

    assert sorted(run_id for group in groups for run_id in group["run_ids"]) == sorted(
        f"r{number}" for number in range(len(seen))
    )
