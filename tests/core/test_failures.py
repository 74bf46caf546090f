"""What runs that failed alike have in common."""

import json
from typing import Any

import pytest

from sessions_app.core.failures import failure_group, outcome_of, signs_of
from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from tests.builders import make_record, make_tool_step


def anomaly(message, code="empty_result_retried", level="warning"):
    return Anomaly(code=code, message=message, steps=(2,), level=level)


def signs(*anomalies, status="ok", error=None):
    return signs_of(status=status, error=error, anomalies=anomalies)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Timeout after 60 s at ORD-5521", "Timeout after 3.5 s at ORD-1"),
        ('No order "A-1"', 'No order "B-2"'),
        ("no item 'red one' here", "no item 'blue' here"),
        ("lost 4f1c2d9a7b", "lost 0011223344"),
        ("lost 9c1d5d0e-52d7-4a66-8a37-55d5e1f0aa01", "lost 0c1d5d0f-aaaa-4b66-9a37-05d5e1f0aa02"),
    ],
)
def test_what_is_of_one_run_alone_is_left_out(first, second):
    assert signs(status="error", error=first) == signs(status="error", error=second) != ()


def test_other_words_are_another_failure():
    assert signs(status="error", error="It doesn't answer, can't go on") != signs(status="error", error="It is away")


def test_what_may_be_meant_is_a_sign_where_nothing_else_went_wrong():
    again = anomaly("Duplicate call: search", code="duplicate_call")

    assert signs(again, anomaly("11 tool calls", code="many_tool_calls")) == (again.message,)
    assert signs(anomaly("Duplicate call: search", code="duplicate_call", level="info")) == ()
    assert signs(again, anomaly("Empty result retried: search")) == ("Empty result retried: search",)


@pytest.mark.parametrize(
    ("code", "one", "other"),
    [
        ("unnamed_id", "pay acted on c_21, which nobody named; the question names c_12", "pay acted on c_9, which …"),
        ("other_id", "pay acted on C-2014; the question and the answer name C-2041", "pay acted on C-1; the …"),
        ("duplicate_call", "Duplicate call: charge (ch_3PqA and ch_3PqC)", "Duplicate call: charge (ch_1 and ch_2)"),
        (
            "one_of_many",
            "load for S-1 returned rows_lost 3, unlike the …",
            "load for S-22 returned rows_lost 4, unlike the …",
        ),
        (
            "no_source",
            "find found nothing for dogs, and the 3 …",
            "find found nothing, and the answer …",
        ),
        ("other_total", "The answer gives a total of 3, but …", "The answer gives a total of 4.5, but …"),
    ],
)
def test_values_of_one_run_are_no_part_of_what_went_wrong(code, one, other):
    assert signs(anomaly(one, code=code)) == signs(anomaly(other, code=code)) != ()


def test_an_error_that_ended_a_run_is_named_once():
    ended = anomaly("Ended without an answer: TimeoutError: late", code="no_answer")

    assert signs(ended, status="error", error="TimeoutError: late") == (ended.message,)
    assert signs(status="error", error="TimeoutError: late") == ("TimeoutError: late",)


@pytest.mark.parametrize(
    ("now", "status", "outcome", "of_another"),
    [
        ((), "ok", "fixed", "not_judged"),
        ((), "cut_off", "not_known", "not_known"),
        (("b",), "ok", "still_fails", "not_judged"),
        (("c",), "ok", "fails_otherwise", "not_judged"),
        (("b", "c"), "error", "still_fails", "still_fails"),
        (("c",), "error", "fails_otherwise", "fails_otherwise"),
    ],
)
def test_one_sign_that_stays_is_no_fix_and_an_answer_to_another_request_says_nothing(now, status, outcome, of_another):
    found = [outcome_of(("a", "b"), now=now, status=status, is_of_another_request=each) for each in (False, True)]

    assert found == [outcome, of_another]


def group(*steps: dict[str, Any], message: str | None = None, status: str = "error", agent: str = "desk") -> str | None:
    error = {} if message is None else {"error": {"type": "TimeoutError", "message": message}}
    run = parse_native(
        json.dumps(make_record("r1", *steps, status=status, agent={"name": agent}, output="Done.", **error)).encode()
    )
    return failure_group(run, find_anomalies(run))


def test_a_run_that_did_not_fail_has_none():
    fine = make_tool_step("search", result="1")

    assert group(fine, status="ok") is None


def test_agents_fail_each_for_itself():
    assert group(message="late", agent="desk") != group(message="late", agent="shop")


def test_a_run_that_ended_well_belongs_to_what_went_wrong_in_it():
    failed = make_tool_step("send", error={"type": "IOError", "message": "reset"})

    one, other = group(failed, status="ok"), group(failed, make_tool_step("search", result="1"), status="ok")

    assert one == other is not None
    assert one != group(failed)
    assert one != group(make_tool_step("pay", error={"type": "IOError", "message": "no"}), status="ok")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no answer after 30 s", "no answer after 31.5 s"),
        ("order 'A-1' is gone", "order 'B-77' is gone"),
        ("request 8f3a2c1e9b failed", "request 0011223344 failed"),
        ("503 for https://shop/orders/1", "503 for https://shop/orders/2?x=y"),
    ],
)
def test_ids_and_numbers_make_no_other_failure(one, other):
    assert group(message=one) == group(message=other)


def test_other_words_make_another_failure():
    assert group(message="deadline passed") != group(message="connection reset")


def test_where_it_failed_tells_failures_apart_that_say_nothing_else():
    failed = {"error": {"type": "IOError", "message": "reset"}}

    assert group(make_tool_step("search", **failed)) != group(make_tool_step("send", **failed))


def test_a_failure_in_the_middle_does_not_name_an_error_behind_it():
    failed = {"error": {"type": "IOError", "message": "reset"}}
    then = make_tool_step("answer", result="1")

    first, second = (group(make_tool_step(name, **failed), then, message="no") for name in ("search", "send"))

    assert first == second
