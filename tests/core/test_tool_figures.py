"""What is said of tools over runs."""

from typing import Any

import pytest

from sessions_app.core.step_summary import StepSummary
from sessions_app.core.tool_figures import tool_figures


def call(index: int, *, name: str = "search", arguments: bytes = b"a", **more: Any) -> StepSummary:
    return StepSummary(index=index, kind="tool", name=name, text=0, arguments_key=arguments, **more)


def test_calls_and_errors_are_counted_by_tool_and_model_calls_are_not():
    model = StepSummary(index=3, kind="model", name="chat", text=0)
    steps = (call(1, has_error=True), call(2, name="send"), model, call(4, tells_failure=True))

    found = tool_figures([("r1", steps)])

    assert [(tool.name, len(tool.calls), len(tool.failed), tool.runs) for tool in found] == [
        ("search", 2, 2, 1),
        ("send", 1, 0, 1),
    ]


def test_a_retry_is_a_call_with_the_same_arguments_after_a_failed_one_in_the_same_run():
    again = (call(1, has_error=True), call(2, name="send"), call(3, outcome="retried"), call(4), call(5))

    (search, _) = tool_figures([("r1", again), ("r2", (call(1),))])

    assert [found.step.index for found in search.retries] == [3, 4]


def test_a_call_with_other_arguments_is_no_retry_of_the_one_that_failed():
    steps = (call(1, arguments=b"74", has_error=True), call(2, arguments=b"75"), call(3, arguments=b"74"))

    (migrate,) = tool_figures([("r1", steps)])

    assert [found.step.index for found in migrate.retries] == [3]


def test_the_next_call_after_the_loop_asked_for_a_retry_is_none_with_other_arguments():
    steps = (call(1, arguments=b"74", outcome="retried"), call(2, arguments=b"075"), call(3, arguments=b"74"))

    (migrate,) = tool_figures([("r1", steps)])

    assert [found.step.index for found in migrate.retries] == [3]


def test_a_call_whose_arguments_were_not_captured_is_no_retry():
    steps = [StepSummary(index=n, kind="tool", name="search", text=0, has_error=True) for n in (1, 2)]

    (search,) = tool_figures([("r1", steps)])

    assert search.retries == []


def test_percentiles_are_times_that_were_measured():
    (search,) = tool_figures([("r1", [call(n, duration_ms=float(n)) for n in range(1, 101)])])

    assert (search.percentile(50), search.percentile(95)) == (50.0, 95.0)
    assert search.slowest[0].step.index == 100


@pytest.mark.parametrize(("calls", "p95"), [(4, None), (5, 5.0)])
def test_of_few_calls_only_the_middle_is_told(calls, p95):
    (search,) = tool_figures([("r1", [call(n, duration_ms=float(n)) for n in range(1, calls + 1)])])

    assert (search.percentile(50) is None, search.percentile(95)) == (False, p95)


def test_without_times_there_is_no_percentile():
    (search,) = tool_figures([("r1", (call(1),))])

    assert search.percentile(95) is None


def test_drift_is_another_answer_to_the_same_arguments_in_another_run():
    def drifted(*runs: tuple[str, tuple[StepSummary, ...]]) -> list[list[tuple[str, bytes | None]]]:
        (tool,) = tool_figures(runs)
        return [[(found.run, found.step.result_key) for found in group] for group in tool.drifted]

    one, two = call(1, result_key=b"1"), call(2, result_key=b"2")
    assert drifted(("r1", (one,)), ("r2", (two,))) == [[("r1", b"1"), ("r2", b"2")]]
    assert drifted(("r1", (one, two))) == []
    assert drifted(("r1", (one,)), ("r2", (one,))) == []
    assert drifted(("r1", (one,)), ("r2", (call(1, arguments=b"b", result_key=b"2"),))) == []
