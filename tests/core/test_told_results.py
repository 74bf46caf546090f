"""Results of tools as requests tell them."""

from __future__ import annotations

import json
from typing import Any

from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.plan import make_plan
from sessions_app.core.replay.told_answers import as_told
from sessions_app.core.run import Fixture, Run
from sessions_app.core.told_results import told_results
from tests.builders import make_growing_record, make_record, make_tool_step
from tests.growth import LINEAR, growth


def told(content: str, call_id: str = "c1") -> dict[str, Any]:
    part = {"part_kind": "tool-return", "tool_name": "search", "tool_call_id": call_id, "content": content}
    return {"kind": "model", "request": {"messages": [{"kind": "request", "parts": [part]}]}}


def run_of(*steps: dict[str, Any], **fields: Any) -> Run:
    return parse_native(json.dumps(make_record("r1", *steps, **fields)).encode())


def contents(run: Run) -> dict[int, Any]:
    return {step: part["content"] for step, part in told_results(run.steps, run.final).items()}


def test_a_result_is_told_by_the_nearest_request_behind_its_call():
    call = make_tool_step(call_id="c1")

    assert contents(run_of(told("before"), call, told("first"), told("again"))) == {2: "first"}
    assert contents(run_of(call, told("first"), call, told("second"))) == {1: "first", 3: "second"}
    assert contents(run_of(call, told("of another", "c2"))) == {}


def test_the_messages_that_a_run_ends_with_tell_results_too():
    final = {"messages": told("last")["request"]["messages"]}

    assert contents(run_of(make_tool_step(call_id="c1"), final=final)) == {1: "last"}


def test_results_are_read_in_linear_time():
    assert growth(_read, _calls(1000), _calls(4000)) < LINEAR


def _read(given: tuple[Run, list[Fixture]]) -> None:
    run, fixtures = given
    assert len(as_told(run, fixtures)) == len(run.steps) / 2


def _calls(times: int) -> tuple[Run, list[Fixture]]:
    run = parse_native(json.dumps(make_growing_record("r1", 2 * times)).encode())
    return run, list(make_plan(run).fixtures)
