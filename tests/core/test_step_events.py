"""Lists of step events: what a step was given and decided is compared as well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.run import Run

Event = dict[str, Any]


def events() -> list[Event]:
    return [
        {
            "step_id": f"s{n}",
            "input_state": {"n": n - 1},
            "decision": "go on",
            "tool_name": "count",
            "tool_args": {"by": 1},
            "tool_result": n,
            "output_state": {"n": n},
            "timestamp": f"2026-01-01T00:00:0{n}Z",
        }
        for n in (1, 2, 3)
    ]


def run_of(listed: list[Event]) -> Run:
    parsed = parse_document(json.dumps({"run_id": "a", "events": listed}).encode())
    return parsed if isinstance(parsed, Run) else parsed[0]


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("input_state", {"n": 777}, "input_state.n"),
        ("input_state", {"n": 1, "more": True}, "input_state.more"),
        ("decision", "stop", "decision"),
        ("output_state", {"n": 5}, "state.n"),
    ],
)
def test_each_field_of_an_event_is_compared(field: str, value: object, path: str):
    other = events()
    other[1][field] = value

    comparison = compare_runs(run_of(events()), run_of(other))

    found = comparison.divergence
    assert comparison.identical is False
    assert found is not None
    assert found.left_step is not None
    assert (found.left_step.index, found.path) == (2, path)


def test_the_same_events_are_identical():
    assert compare_runs(run_of(events()), run_of(events())).identical
