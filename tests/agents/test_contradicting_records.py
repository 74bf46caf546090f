"""Records written by hand of which one fact denies another: the judge says it beforehand, and the replay ends there."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from tests.agents.test_odd_fields import Record, reproduces, small_record
from tests.recorder.playing import last_record, recorded
from tests.recorder.rare_agents import (
    answered_from_outside_while_it_runs,
    hidden_tool_that_a_search_of_the_team_finds,
    result_from_outside_with_a_prompt,
)
from tests.recorder.replaying import assert_promise_kept, replayed
from tests.recorder.scenarios import (
    Play,
    Scenario,
    call,
    denial_beside_another_call,
    model_retry,
    one_tool,
    parallel_tools,
    says,
    support_agent,
)

MAIL = {"kind": "tool", "tool_name": "send_mail", "arguments": {}, "result": "sent"}


def judged(record: Record) -> tuple[str, int | None]:
    """The first reason, once the replay has kept what was promised."""
    said = assert_promise_kept(json.dumps(record).encode())
    return said.reasons[0].code, said.step


def _changed(change: Callable[[Record], Any]) -> Record:
    record = small_record()
    change(record)
    return record


def _foreign(place: int, **more: Any) -> Callable[[Record], Any]:
    def change(record: Record) -> None:
        record["steps"].insert(place, MAIL | more)
        record["steps"][-1 if place == 1 else 2]["request"]["after"] = 1

    return change


def _same_step_again(record: Record) -> None:
    record["steps"].append(copy.deepcopy(record["steps"][1]))


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (_foreign(1), 1),
        (_foreign(1, parent=1), 1),
        (_foreign(1, call_id="zz"), 1),
        (_foreign(3, call_id="zz"), 3),
        (_same_step_again, 3),
    ],
    ids=["without an id", "with a parent", "with an id", "behind the end", "the same again"],
)
def test_a_tool_step_that_no_answer_asks_for_is_judged_at_its_place(change: Callable[[Record], Any], step: int):
    assert judged(_changed(change)) == ("call_of_no_answer", step)


def _without_an_answer() -> Record:
    """Its tool step stays."""
    record: Record = json.loads(last_record(Scenario(model_retry), "run"))
    assert [step["kind"] for step in record["steps"]] == ["model", "tool", "model", "tool", "model"]
    del record["steps"][2], record["steps"][2]["parent"]
    record["steps"][3]["request"]["after"], record["final"]["after"] = 1, 4
    return record


def test_the_tool_step_of_a_model_step_that_is_gone_is_judged_at_its_place():
    assert judged(_without_an_answer()) == ("call_of_no_answer", 2)


def _with_an_answer_told_twice() -> Record:
    """In the last request, of which a history processor had cut the beginning."""
    looks = [says(call("lookup_order", {"order_id": f"ORD-{i}"}, f"c{i}")) for i in range(2)]
    cut = ProcessHistory(lambda messages: messages[-3:] if len(messages) > 3 else messages)
    make = partial(Play, support_agent(*looks, says("Done."), capabilities=[cut]), "Look.")
    record: Record = json.loads(last_record(Scenario(make), "run"))
    told = record["steps"][4]["request"]["messages"][0]["parts"]
    told.append(copy.deepcopy(told[0]))
    return record


@pytest.mark.parametrize(("make", "step"), [(_without_an_answer, 3), (_with_an_answer_told_twice, 5)])
def test_what_agreed_before_a_difference_is_the_same_in_the_produced_run(make: Callable[[], Record], step: int):
    recorded = parse_native(json.dumps(make()).encode())

    result, produced_run = replayed(encode_native(recorded))

    assert produced_run is not None
    found = compare_runs(recorded, produced_run).divergence
    assert result.divergence is not None
    assert (result.divergence.step, found and found.left_step and found.left_step.index) == (step, step)


def test_two_calls_of_one_id_in_one_answer_are_judged():
    def change(record: Record) -> None:
        parts = record["steps"][0]["response"]["parts"]
        parts.append(copy.deepcopy(parts[0]))

    assert judged(_changed(change)) == ("call_ids_doubled", 1)


@pytest.mark.parametrize("outcome", ["denied", "deferred", "unapproved", "interrupted", "crashed"])
def test_an_answer_beside_an_outcome_that_has_none_is_judged(outcome: str):
    assert judged(_changed(lambda record: record["steps"][1].update(outcome=outcome))) == ("answer_contradicted", 1)


@pytest.mark.parametrize("outcome", [None, "success", "failed", "retried"])
def test_other_outcomes_have_an_answer(outcome: str | None):
    assert reproduces(_changed(lambda record: record["steps"][1].update(outcome=outcome)))


@pytest.mark.parametrize("prior", [[], [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}]])
def test_a_decision_on_a_call_that_nobody_waits_for_is_judged(prior: list[Any]):
    assert judged(_changed(lambda record: record.update(prior=prior, deferred={"1": True}))) == (
        "call_contradicted",
        None,
    )


def _lost(record: Record) -> None:
    """The answer to the call beside it."""
    record["prior"].pop()


def _said_more(record: Record) -> None:
    record["prior"].append({"kind": "response", "parts": [{"part_kind": "text", "content": "Well."}]})


@pytest.mark.parametrize("change", [_lost, _said_more, lambda record: record["prior"].reverse()])
def test_a_run_is_resumed_with_results_for_all_calls_that_its_history_leaves_open(change: Callable[[Record], None]):
    record = json.loads(recorded(denial_beside_another_call())[-1])
    assert reproduces(record)

    change(record)

    assert judged(record) == ("call_contradicted", None)


@pytest.mark.parametrize("name", ["description", "parameters_json_schema"])
def test_a_definition_that_the_parameters_tell_in_part_and_the_tools_in_full_is_not_called_proven(name: str):
    record: Record = json.loads(last_record(Scenario(one_tool), "run"))
    del record["parameters"][0]["function_tools"][0][name]

    result, _ = replayed(json.dumps(record).encode())

    tool = record["parameters"][0]["function_tools"][0]["name"]
    assert (result.verdict, result.facts["proof"]["parameters"]["state"]) == ("reproduced", "not_comparable")
    assert f"lack the {name} of {tool}, which its tools have" in result.facts["proof"]["parameters"]["reason"]


@pytest.mark.parametrize(("outcome", "is_judged"), [("success", True), ("failed", False), (None, False)])
def test_a_call_that_went_well_has_no_error(outcome: str | None, is_judged: bool):
    record = small_record()
    record["steps"][1] |= {"outcome": outcome, "error": {"type": "Late", "message": "over"}}

    found = [reason.code for reason in judge(parse_native(json.dumps(record).encode())).reasons]

    assert ("answer_contradicted" in found) is is_judged
    assert not is_judged or judged(record) == ("answer_contradicted", 1)


def test_the_step_of_a_call_that_is_not_there_is_not_that_of_the_call_beside_it():
    """The call itself is in the answer; what has no record is its result."""
    record = json.loads(last_record(Scenario(parallel_tools), "run"))
    (lost,) = (step for step in record["steps"] if step.get("call_id") == "p0")
    place = record["steps"].index(lost) + 1
    record["steps"].remove(lost)
    record["steps"][-1]["request"]["after"] = 1
    del record["final"]

    result = replayed(json.dumps(record).encode())[0]

    assert result.divergence is not None
    assert (result.verdict, result.divergence.step, result.divergence.path) == ("fixture_missing", place, "result")


def test_a_resumed_run_whose_first_request_lacks_its_prompt_is_judged():
    record: Record = json.loads(recorded(result_from_outside_with_a_prompt())[-1])
    assert assert_promise_kept(json.dumps(record).encode()).verdict == "replayable"
    first = next(step for step in record["steps"] if step["kind"] == "model")
    assert first["request"]["messages"][-1]["parts"].pop()["part_kind"] == "user-prompt"

    assert judged(record) == ("input_contradicts", None)


def _described_otherwise(record: Record, name: str) -> None:
    next(tool for tool in record["tools"] if tool["name"] == name)["description"] = "Pay everything."


def _left_out(record: Record, name: str) -> None:
    place = next(at for at, tool in enumerate(record["tools"]) if tool["name"] == name)
    record["steps"][-1]["tools"].remove(place)


@pytest.mark.parametrize(("forge", "step"), [(_described_otherwise, None), (_left_out, 4)])
def test_a_tool_of_the_library_that_the_record_defines_in_two_ways_is_judged_at_its_request(
    forge: Callable[[Record, str], None], step: int | None
):
    record: Record = json.loads(recorded(hidden_tool_that_a_search_of_the_team_finds())[-1])
    untouched, _ = replayed(json.dumps(record).encode())
    assert untouched.facts["proof"]["parameters"]["state"] == "proven"
    forge(record, "search_tools")

    assert judged(record) == ("tools_contradicted", step)


def _approved_with(record: Record, arguments: Any) -> Record:
    record["steps"][1]["approved_arguments"] = arguments
    return record


def test_arguments_that_a_call_was_approved_with_are_those_that_its_tool_was_given():
    record = json.loads(last_record(Scenario(one_tool), "run"))
    given = json.loads(record["steps"][1]["arguments"])
    assert "ran_with" not in record["steps"][1]

    assert judged(_approved_with(record, given | {"order_id": "other"})) == ("call_contradicted", 1)

    assert reproduces(_approved_with(record, given))
    assert reproduces(_approved_with(record | {"recorder.ran_with": False}, given | {"order_id": "other"}))


@pytest.mark.parametrize("name", ["content", "metadata"])
@pytest.mark.parametrize("outcome", ["retried", "failed", "denied"])
def test_a_call_that_gave_no_result_gave_nothing_beside_one(outcome: str, name: str):
    made = {"retried": model_retry, "failed": _failing, "denied": denial_beside_another_call}[outcome]
    record = json.loads(last_record(Scenario(made), "run"))
    assert reproduces(record)
    step = next(step for step in record["steps"] if step.get("outcome") == outcome)

    step[name] = ["more"]

    said = assert_promise_kept(json.dumps(record).encode())
    assert said.reasons[0].code == "call_contradicted"


@pytest.mark.parametrize("outcome", [None, "refused"])
def test_a_call_that_was_denied_says_so_in_its_step(outcome: str | None):
    record = json.loads(last_record(Scenario(denial_beside_another_call), "run"))
    step = next(step for step in record["steps"] if step.get("outcome") == "denied")

    step["outcome"] = outcome

    said = assert_promise_kept(json.dumps(record).encode())
    assert said.reasons[0].code == "call_contradicted"


@pytest.mark.parametrize("play", [one_tool, parallel_tools])
def test_a_request_that_was_answered_is_not_made_again(play: Callable[[], Play]):
    record = json.loads(last_record(Scenario(play), "run"))
    assert reproduces(record)

    record["steps"].append(copy.deepcopy(record["steps"][-1]))

    assert judged(record) == ("other_course", len(record["steps"]) - 1)


@pytest.mark.parametrize("given", ['{"order_id": "ORD-1"}', {"order_id": "ORD-1"}])
def test_arguments_that_a_step_writes_otherwise_than_the_model_did_are_judged(given: Any):
    record = json.loads(last_record(Scenario(lambda: _asking(given)), "run"))
    assert record["steps"][1]["arguments"] == given
    assert reproduces(record)

    record["steps"][1]["arguments"] = '{"order_id":  "ORD-1"}'

    assert judged(record) == ("spelling_contradicted", 1)


@pytest.mark.parametrize("said", ["", None, "{ }"])
def test_no_arguments_are_written_as_the_model_wrote_them(said: str | None):
    record = json.loads(last_record(Scenario(lambda: _asking("{}")), "run"))
    assert reproduces(record)
    record["steps"][1]["arguments"] = said

    assert judged(record) == ("spelling_contradicted", 1)


def _asking(arguments: Any) -> Play:
    agent = support_agent(says(ToolCallPart("look", arguments, "a")), says("Fine."))

    @agent.tool_plain
    def look(order_id: str = "") -> str:
        return "nothing"

    return Play(agent, "Where?")


def _failing() -> Play:
    agent = support_agent(says(call("pay", {}, "a")), says("It failed."))

    @agent.tool_plain
    def pay() -> str:
        raise ToolFailed("No money left.")

    return Play(agent, "Pay")


@pytest.mark.parametrize("field", ["message", "type"])
def test_the_error_of_a_tool_that_failed_says_what_the_model_was_told(field: str):
    record = json.loads(last_record(Scenario(_failing), "run"))
    assert reproduces(record)
    assert record["steps"][1]["error"] == {"type": "ToolFailedError", "message": record["steps"][1]["result"]}

    record["steps"][1]["error"][field] = "Other"

    assert judged(record) == ("answer_contradicted", 1)


def test_tools_that_the_parameters_alone_hold_are_not_called_proven():
    record = json.loads(last_record(Scenario(one_tool), "run"))
    del record["steps"][0]["tools"]

    result, _ = replayed(json.dumps(record).encode())

    assert (result.verdict, result.facts["proof"]["parameters"]["state"]) == ("reproduced", "not_comparable")
    assert "lack lookup_order, which its parameters have" in result.facts["proof"]["parameters"]["reason"]


def test_a_call_that_a_run_was_resumed_with_is_no_output_where_its_tool_is_none():
    record: Record = json.loads(recorded(result_from_outside_with_a_prompt())[-1])
    step = next(step for step in record["steps"] if step["kind"] == "tool")
    assert "parent" not in step

    step["is_output"] = True

    assert judged(record) == ("call_contradicted", None)


@pytest.mark.parametrize("outcome", ["deferred", "unapproved"])
def test_a_call_that_still_waits_has_no_answer_from_outside(outcome: str):
    record: Record = json.loads(recorded(answered_from_outside_while_it_runs())[-1])
    place = next(at for at, step in enumerate(record["steps"]) if "waited_for" in step)
    assert reproduces(record)

    record["steps"][place]["outcome"] = outcome
    del record["steps"][place]["waited_for"]

    assert judged(record) == ("answer_contradicted", place)
