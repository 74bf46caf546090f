"""Runs that went well although something in them looks odd, each beside one in which it is."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.run import Run
from tests.core.test_trouble_in_the_middle import OK, call, conversation, told

NOT_FOUND = {"status": 404, "error": "not found"}
ANN = {"id": "ann", "name": "Ann"}


def warned(run: Run) -> list[str]:
    return [each.code for each in find_anomalies(run) if each.level == "warning"]


def sent_without(result: Any, answer: str, *, tool: str = "get_preferences", last: bool = False) -> Run:
    calls = [call(tool, {"user": "ann"}, result), call("send_newsletter", {"user": "ann"}, {"id": "N-1"})]
    return conversation("Send the newsletter to ann.", calls[::-1] if last else calls, answer)


@pytest.mark.parametrize(
    "answer", ["The newsletter was sent to ann.", "It was sent to ann with the default preferences."]
)
def test_what_is_not_there_and_not_needed_is_a_note(answer: str):
    run = sent_without(NOT_FOUND, answer)

    assert warned(run) == []
    assert told(run) == "5 steps · 2 tool calls · answered · step 2 failed"


@pytest.mark.parametrize(
    "run",
    [
        sent_without(NOT_FOUND, "It was sent to ann according to her preferences."),
        sent_without(NOT_FOUND, "The newsletter was sent to ann.", last=True),
        sent_without(NOT_FOUND, "The newsletter was sent to ann.", tool="check_consent"),
        sent_without({"status": 503, "error": "unavailable"}, "The newsletter was sent to ann."),
        conversation("What is SKU-7?", [call("get_price", {"sku": "SKU-7"}, NOT_FOUND)], "SKU-7 costs 9.50."),
    ],
)
def test_what_is_not_there_and_was_needed_is_found(run: Run):
    assert warned(run) == ["error_swallowed"]


def test_a_lookup_that_was_made_twice_is_a_note():
    calls = [call("get_user", {"id": "ann"}, ANN), call("list_orders", {"user": "ann"}, ["o1"])]
    run = conversation("What did ann buy?", [*calls, calls[0]], "Ann bought o1.")

    assert warned(run) == []
    assert told(run) == "7 steps · 3 tool calls · answered"


@pytest.mark.parametrize(
    "calls",
    [
        [call("get_user", {"id": "ann"}, ANN)] * 3,
        [call("get_user", {"id": "ann"}, ANN), call("get_plan", {"id": "ann"}, {"plan": "pro"})] * 2,
        [call("charge_card", {"id": "ann", "amount": 5}, OK)] * 2,
    ],
)
def test_a_loop_and_a_write_that_was_made_twice_are_found(calls: list[dict[str, Any]]):
    assert set(warned(conversation("Charge ann.", calls, "It is done."))) == {"duplicate_call"}


def charged(cents: int, asked: str, answer: str) -> list[str]:
    return warned(conversation(asked, [call("charge", {"amount_cents": cents}, {"id": "c"})], answer))


@pytest.mark.parametrize(
    ("cents", "asked", "answer"),
    [
        (500, "Charge me for 500 points.", "Charged for your 500 points."),
        (300, "Buy 300 miles.", "You have 300 miles."),
    ],
)
def test_a_count_of_other_things_is_no_amount(cents: int, asked: str, answer: str):
    assert charged(cents, asked, answer) == []


@pytest.mark.parametrize(
    ("cents", "asked", "answer"),
    [
        (50, "Refund 50 EUR.", "I refunded 50 EUR."),
        (50, "Refund $50 now.", "I refunded $50 now."),
        (50, "Refund 50 dollars.", "I refunded 50 dollars."),
        (500, "Charge me for 500 points.", "I charged 500 EUR."),
    ],
)
def test_so_many_of_the_larger_unit_are_found(cents: int, asked: str, answer: str):
    assert charged(cents, asked, answer) == ["other_receipt"]
