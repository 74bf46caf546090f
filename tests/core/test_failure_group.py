"""The fingerprint of a failure."""

import json
from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.failure_group import failure_group
from tests.builders import make_record, make_tool_step


def group(*steps: dict[str, Any], message: str | None = None, status: str = "error") -> str | None:
    error = {} if message is None else {"error": {"type": "TimeoutError", "message": message}}
    return failure_group(parse_native(json.dumps(make_record("r1", *steps, status=status, **error)).encode()))


def test_a_run_that_did_not_fail_has_none():
    assert group(status="ok") is None


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
