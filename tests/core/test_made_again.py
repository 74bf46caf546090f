"""Calls that failed and succeeded later, where the retry alone is not the whole story."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.test_trouble_in_the_middle import BUSY, OK, TIMEOUT, call, conversation, told

HELD = {"type": "ConflictError", "message": "409 snap-22 is under retention lock. Deletion is not permitted."}
DELETE: tuple[str, Any] = ("delete_snapshot", {"snapshot": "snap-22"})
SUITE: tuple[str, Any] = ("shell", {"cmd": "pytest -q"})
RED = "FAILED tests/test_totals.py::test_cents - assert 10.50 == 10.48\n1 failed in 1.9s\n[exit code 1]"
RETRIED = "step 2 failed, then succeeded on retry"


def story_of(*calls: dict[str, Any]) -> str:
    return told(conversation("Make some room.", calls, "There is room again.")).split(" · answered · ")[1]


def unlocked(tool: str, arguments: Any, error: Any = HELD) -> str:
    return story_of(call(*DELETE, error=error), call(tool, arguments, OK), call(*DELETE, {"deleted": "snap-22"}))


def test_what_another_tool_did_to_a_thing_between_a_refusal_and_success_is_told():
    line = unlocked("set_attributes", {"snapshot": "snap-22", "lock": False})

    assert line == "step 2 was refused; step 4 called set_attributes on snap-22, then step 6 succeeded"


@pytest.mark.parametrize(
    "line",
    [
        unlocked("set_attributes", {"snapshot": "snap-31", "lock": False}),
        unlocked("get_attributes", {"snapshot": "snap-22"}),
        unlocked("set_attributes", {"snapshot": "snap-22", "lock": False}, error=BUSY),
    ],
    ids=["another thing", "a lookup", "busy"],
)
def test_what_changed_nothing_that_was_refused_is_a_retry(line: str):
    assert line == RETRIED


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (
            "tests/test_totals.py",
            "step 2 failed; step 4 called edit_file on tests/test_totals.py, then step 6 succeeded",
        ),
        ("invoices/totals.py", RETRIED),
    ],
)
def test_a_check_that_passes_after_the_file_that_holds_it_was_edited_is_told(path: str, line: str):
    edit = call("edit_file", {"path": path, "old": "10.48", "new": "10.50"}, "1 replacement")

    assert story_of(call(*SUITE, RED), edit, call(*SUITE, "41 passed in 1.9s\n[exit code 0]")) == line


TWICE = "step 2 timed out, was sent again at step 4: it may have happened twice"


@pytest.mark.parametrize(
    ("tool", "fields", "error", "line"),
    [
        ("book_hotel", {}, TIMEOUT, TWICE),
        ("reserver", {}, TIMEOUT, TWICE),
        ("book_hotel", {"idempotency_key": "k-7"}, TIMEOUT, RETRIED),
        ("get_offer", {}, TIMEOUT, RETRIED),
        ("book_hotel", {}, BUSY, RETRIED),
    ],
)
def test_a_write_out_of_time_that_was_sent_again_without_a_key_may_have_happened_twice(
    tool: str, fields: dict[str, str], error: Any, line: str
):
    asked = {"offer": "OF-3391", **fields}

    assert story_of(call(tool, asked, error=error), call(tool, asked, {"reservation": "RS-88213"})) == line


def test_three_are_told_apart_and_the_others_counted():
    calls = [
        each
        for n in range(5)
        for each in (call("pay", {"bill": n}, error=TIMEOUT), call("pay", {"bill": n}, {"payment": f"p_{n}"}))
    ]

    line = told(conversation("Pay them.", calls, "Paid."))

    assert (line.count("may have happened twice"), line.endswith(" · 2 more likewise")) == (3, True)
