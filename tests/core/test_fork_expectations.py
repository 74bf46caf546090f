from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.fork.expectations import Expectation, Judged, read_expectation
from sessions_app.core.payload import BINARY, Payload
from sessions_app.core.run import AgentCall, Call, ErrorInfo, ModelCall, OtherCall, Run, Step, ToolCall

TEXT = Payload.of_text("Your order is cancelled.")
MODEL = ModelCall(history=None, response=None)
LOOK = ToolCall(tool_name="look")


def make_run(*calls: Call, parents: dict[int, int] | None = None, **fields: Any) -> Run:
    steps = tuple(
        Step(index=index, name="step", call=call, parent=(parents or {}).get(index))
        for index, call in enumerate(calls, start=1)
    )
    return Run(**{"run_id": "r1", "session_id": "s1", "status": "ok", "output": TEXT, "steps": steps, **fields})


def met(expected: Any, run: Run, at_step: int = 1) -> bool | None:
    return read_expectation(expected).judge(run, at_step).met


def of_json(text: str) -> Run:
    return make_run(output=Payload(content=text.encode()))


CRASHED = make_run(status="error", output=None, error=ErrorInfo(type="TimeoutError", message="too late"))
SILENT = make_run(output=None)


@pytest.mark.parametrize(
    ("expected", "run", "is_met"),
    [
        ({"contains": "CANCELLED"}, make_run(), True),
        ({"contains": "shipped"}, make_run(), False),
        ({"contains": "timeouterror: too"}, CRASHED, True),
        ({"contains": "cancelled"}, CRASHED, False),
        ({"contains": "x"}, SILENT, None),
        ({"contains": "café"}, of_json('"caf\\u00e9 [1]"'), True),
        ({"contains": '"name": "café"'}, of_json('{"name":"caf\\u00e9"}'), True),
        ({"contains": '{"name":"caf\\u00e9"}'}, of_json('{"name":"caf\\u00e9"}'), True),
        ({"contains": "tea"}, of_json('{"name":"caf\\u00e9"}'), False),
        ({"contains": "png"}, make_run(output=Payload(content=b"\x89PNG\xff", media_type=BINARY)), True),
        ({"equals": "Your order is cancelled."}, make_run(), True),
        ({"equals": "your order is cancelled."}, make_run(), False),
        ({"equals": {"a": 1, "b": [2]}}, of_json('{"b": [2], "a": 1}'), True),
        ({"equals": {"a": 1.0, "b": [2]}}, of_json('{"b": [2], "a": 1}'), False),
        ({"equals": [True]}, of_json("[1]"), False),
        ({"equals": [1]}, make_run(output=Payload.of_text("[1]")), True),
        ({"equals": "[1]"}, make_run(output=Payload.of_text("[1]")), True),
        ({"equals": "[1]"}, of_json("[1]"), False),
        ({"equals": None}, of_json("null"), True),
        ({"equals": None}, SILENT, None),
        ({"equals": None}, CRASHED, False),
        ({"equals": "\ud800"}, make_run(), False),
    ],
)
def test_expected_outcome(expected, run, is_met):
    assert met(expected, run) is is_met


@pytest.mark.parametrize(("limit", "is_met"), [(0, False), (1, False), (2, True), (3, True)])
def test_at_most_calls_counts_each_call_of_the_tool(limit, is_met):
    run = make_run(MODEL, LOOK, MODEL, ToolCall(tool_name="cancel"), ToolCall(tool_name="look", outcome="failed"))

    assert met({"at_most_calls": {"tool": "look", "n": limit}}, run) is is_met


def test_at_most_calls_of_a_tool_that_was_not_called():
    assert met({"at_most_calls": {"tool": "look", "n": 0}}, make_run(MODEL)) is True
    assert met({"at_most_calls": {"tool": "look", "n": 0}}, make_run(MODEL, LOOK, output=None)) is False


@pytest.mark.parametrize(("at_step", "steps"), [(1, 4), (2, 3), (4, 2), (5, 1), (9, 0)])
def test_ends_within_counts_the_loops_own_steps_after_the_fork(at_step, steps):
    """What ran inside of a tool and work of other kinds is no step of the loop."""
    calls: list[Call] = [MODEL, LOOK, OtherCall(), AgentCall(run_id=None), MODEL, LOOK, LOOK, MODEL]
    run = make_run(*calls, parents={7: 6, 8: 6})

    judged = [met({"ends_within": limit}, run, at_step) for limit in range(1, 6)]

    assert judged == [steps <= limit for limit in range(1, 6)]


@pytest.mark.parametrize("status", ["cut_off", "running"])
@pytest.mark.parametrize(
    "expected",
    [{"contains": "cancelled"}, {"equals": "x"}, {"at_most_calls": {"tool": "look", "n": 0}}, {"ends_within": 1}],
)
def test_run_that_has_not_ended_is_not_judged(status, expected):
    run = make_run(MODEL, LOOK, status=status)

    assert read_expectation(expected).judge(run, 1) == Judged(met=None, words="The fork has not finished.")


def test_words_are_judged_by_a_person():
    expectation = read_expectation("  It asks for the number. ")

    assert expectation == Expectation(words="It asks for the number.")
    assert expectation.judge(make_run(), 1) == Judged(met=None, words="Expected in words; read the outcome.")


@pytest.mark.parametrize(
    ("expected", "words", "seen"),
    [
        ({"contains": 'a "b"'}, 'the outcome contains "a \\"b\\""', 'It ended with "Your order is cancelled.".'),
        ({"equals": {"a": 1}}, 'the outcome equals {"a": 1}', 'It ended with "Your order is cancelled.".'),
        ({"at_most_calls": {"tool": "look", "n": 1}}, "at most 1 call of look", "look was called 1 ×."),
        ({"at_most_calls": {"tool": "look", "n": 1200}}, "at most 1,200 calls of look", "look was called 1 ×."),
        ({"ends_within": 1}, "ends within 1 step", "It ended 1 step after step 1."),
        ({"ends_within": 2}, "ends within 2 steps", "It ended 1 step after step 1."),
    ],
)
def test_words_say_what_was_expected_and_seen(expected, words, seen):
    expectation = read_expectation(expected)

    assert expectation.words == words
    assert expectation.judge(make_run(MODEL, LOOK), 1).words == seen


def test_words_of_long_values_are_short():
    run = make_run(output=Payload.of_text("x" * 1_000_000))
    expectation = read_expectation({"equals": ["y" * 1_000_000]})

    assert len(expectation.words) < 110
    assert len(expectation.judge(run, 1).words) < 330
    assert met({"contains": "x" * 999_999}, run)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, "expect"),
        ("", "expect"),
        (" ", "expect"),
        ("x" * 2001, "expect"),
        (3, "expect"),
        ([], "expect"),
        ({}, "expect"),
        ({"rhymes": True}, "expect"),
        ({"contains": "a", "equals": "a"}, "expect"),
        ({"contains": ""}, "expect.contains"),
        ({"contains": 3}, "expect.contains"),
        ({"at_most_calls": 3}, "expect.at_most_calls.tool"),
        ({"at_most_calls": {"n": 3}}, "expect.at_most_calls.tool"),
        ({"at_most_calls": {"tool": "", "n": 3}}, "expect.at_most_calls.tool"),
        ({"at_most_calls": {"tool": "a"}}, "expect.at_most_calls.n"),
        ({"at_most_calls": {"tool": "a", "n": -1}}, "expect.at_most_calls.n"),
        ({"at_most_calls": {"tool": "a", "n": True}}, "expect.at_most_calls.n"),
        ({"at_most_calls": {"tool": "a", "n": "3"}}, "expect.at_most_calls.n"),
        ({"ends_within": 0}, "expect.ends_within"),
        ({"ends_within": 1.0}, "expect.ends_within"),
        ({"ends_within": False}, "expect.ends_within"),
        ({"ends_within": 10**400}, "expect.ends_within"),
    ],
    ids=lambda each: str(each)[:50],
)
def test_what_is_no_expectation_is_refused_with_its_field(value, field):
    with pytest.raises(ForkError) as caught:
        read_expectation(value)

    assert caught.value.field == field
    assert caught.value.message.startswith(field)


def test_number_too_long_to_be_spelled_is_refused():
    with pytest.raises(ForkError) as caught:
        read_expectation({"equals": [10**5000]})

    assert caught.value.field == "expect.equals"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["tool", "n"]) | st.text(), inner),
    max_leaves=6,
)
CHECKS = st.sampled_from(["contains", "equals", "at_most_calls", "ends_within", "n"])


@given(VALUES | st.dictionaries(CHECKS, VALUES, min_size=1, max_size=2), VALUES)
def test_any_json_is_read_or_refused_and_judges(value, output):
    run = make_run(MODEL, LOOK, output=Payload.of_text(str(output).encode(errors="replace").decode()))

    with suppress(ForkError):
        assert read_expectation(value).judge(run, 1).met in (True, False, None)
