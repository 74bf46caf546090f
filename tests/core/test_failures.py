"""What runs that failed alike have in common."""

import pytest

from sessions_app.core.failures import outcome_of, signs_of


def anomaly(message, code="empty_result_retried", level="warning"):
    return {"code": code, "message": message, "steps": [2], "level": level}


def signs(*anomalies, status="ok", error=None):
    return signs_of(status=status, error=error, anomalies=anomalies)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Timeout after 60 s at ORD-5521", "Timeout after 3.5 s at ORD-1"),
        ('No order "A-1"', 'No order "B-2"'),
        ("no item 'red one' here", "no item 'blue' here"),
        ("lost 4f1c2d9a7b", "lost 0011223344"),
    ],
)
def test_what_is_of_one_run_alone_is_left_out(first, second):
    assert signs(status="error", error=first) == signs(status="error", error=second) != ()


def test_other_words_are_another_failure():
    assert signs(status="error", error="It doesn't answer, can't go on") != signs(status="error", error="It is away")


def test_what_may_be_meant_is_no_sign():
    again = anomaly("Duplicate call: search", code="duplicate_call")

    assert signs(again, anomaly("Slow", code="slow_step", level="info")) == ()
    assert signs(again, anomaly("Empty result retried: search")) == ("Empty result retried: search",)


def test_an_error_that_ended_a_run_is_named_once():
    ended = anomaly("Ended without an answer: TimeoutError: late", code="no_answer")

    assert signs(ended, status="error", error="TimeoutError: late") == (ended["message"],)
    assert signs(status="error", error="TimeoutError: late") == ("TimeoutError: late",)


@pytest.mark.parametrize(
    ("now", "status", "outcome"),
    [
        ((), "ok", "fixed"),
        ((), "cut_off", "not_known"),
        (("b",), "ok", "still_fails"),
        (("b", "c"), "error", "still_fails"),
        (("c",), "error", "fails_otherwise"),
    ],
)
def test_one_sign_that_stays_is_no_fix(now, status, outcome):
    assert outcome_of(("a", "b"), now=now, status=status) == outcome
