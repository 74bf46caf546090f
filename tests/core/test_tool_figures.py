"""What is said of tools over runs."""

from typing import Any

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


def test_a_retry_follows_a_failed_call_of_the_same_tool_in_the_same_run():
    again = (call(1, has_error=True), call(2, name="send"), call(3, outcome="retried"), call(4), call(5))

    (search, _) = tool_figures([("r1", again), ("r2", (call(1),))])

    assert [found.step.index for found in search.retries] == [3, 4]


def test_percentiles_are_times_that_were_measured():
    (search,) = tool_figures([("r1", [call(n, duration_ms=float(n)) for n in range(1, 101)])])

    assert (search.percentile(50), search.percentile(95)) == (50.0, 95.0)
    assert search.slowest[0].step.index == 100


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
