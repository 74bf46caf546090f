"""What a replay on another machine is worth: the observed run beside the recording, and every change found."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

import replay_recorder
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge_code
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.observed_pairs import Tools
from sessions_app.core.replay.own_machine import judge_observed
from sessions_app.core.run import Run
from tests.recorder.openai_playing import agent, bytes_of, calls, lookup, one_record, run
from tests.recorder.openai_playing import says as message
from tests.recorder.playing import last_record, record_of
from tests.recorder.replaying import ENDS, assert_same_run
from tests.recorder.scenarios import SCENARIOS

Record = dict[str, Any]


def judged(record: bytes, observed: bytes, tools: Tools = "frozen") -> tuple[Result, Run]:
    result, made = judge_observed(parse_native(record), parse_native(observed), tools=tools, run_id="observed-1")
    assert made is not None
    return result, parse_native(encode_native(made))


def observed_again(scenario: Any, record: bytes) -> bytes:
    """The same agent once more, with the recorded answers."""
    play, said = scenario.make(), json.loads(record)
    arguments = {
        **play.arguments,
        "model": replay_recorder.replay_model(said),
        "capabilities": [*(play.arguments.get("capabilities") or ()), replay_recorder.frozen_tools(said)],
    }

    async def work() -> None:
        try:
            await play.agent.run(play.prompt, **arguments)
        except Exception:
            return

    return record_of(work)[-1]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_an_agent_that_is_as_it_was_ends_as_the_judge_says(scenario):
    record = last_record(scenario, "run")

    result, made = judged(record, observed_again(scenario, record))

    limit = judge_code(parse_native(record), runs_tools=False).limit
    if limit is None:
        assert (result.verdict, result.divergence) == ("reproduced", None)
        assert_same_run(parse_native(record), made)
    else:
        assert result.verdict in ENDS, result.divergence
        assert result.divergence.step == limit.step


@pytest.mark.parametrize(("tools", "output"), [("frozen", None), ("run", "booked ORD-1")])
def test_what_a_function_was_given_for_the_answer_is_no_answer_of_the_run(tools, output):
    record = last_record(next(each for each in SCENARIOS if str(each) == "output_function"), "run")

    _, made = judged(record, record, tools)

    assert (made.status, made.output and made.output.parsed) == ("ok", output)


# --- one thing changed ---------------------------------------------------------------------------


def last_changed(text: str) -> str:
    return text[:-1] + ("x" if text[-1:] != "x" else "y")


def tool_answers(record: Record) -> Iterator[tuple[int, Record]]:
    """Each text that a tool answered with its last letter changed, with its step."""
    for index, step in enumerate(record["steps"]):
        if step["kind"] == "tool" and isinstance(step.get("result"), str) and step["result"]:
            changed = copy.deepcopy(record)
            changed["steps"][index]["result"] = last_changed(step["result"])
            yield index + 1, changed


def model_answers(record: Record) -> Iterator[tuple[int, Record]]:
    for index, step in enumerate(record["steps"]):
        for position, part in enumerate((step.get("response") or {}).get("parts") or []):
            if part["part_kind"] == "text" and part["content"]:
                changed = copy.deepcopy(record)
                said = changed["steps"][index]["response"]["parts"][position]
                said["content"] = last_changed(part["content"])
                yield index + 1, changed


def requests(record: Record) -> Iterator[tuple[int, Record]]:
    for index, step in enumerate(record["steps"]):
        for place, asked in enumerate((step.get("request") or {}).get("messages") or []):
            if asked.get("instructions"):
                changed = copy.deepcopy(record)
                changed["steps"][index]["request"]["messages"][place]["instructions"] += "!"
                yield index + 1, changed


CHANGES = {"result": tool_answers, "response": model_answers, "messages": requests}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_one_changed_letter_is_found_where_it_was_observed(scenario):
    content = last_record(scenario, "run")
    limit = judge_code(parse_native(content), runs_tools=False).limit
    for path, changes in CHANGES.items():
        for step, changed in changes(json.loads(content)):
            if limit is not None and step >= (limit.step or 0):
                continue
            result, _ = judged(content, json.dumps(changed).encode(), "run")
            assert (result.verdict, result.divergence.step) == ("diverged", step), path
            assert result.divergence.path.startswith(path)
            assert result.facts["proof"]["outcome"]["state"] != "proven"


def sdk_record() -> Record:
    script = [calls("lookup", '{"order": "A"}', "c1")], [message("It has shipped.")]
    return one_record(lambda: run(agent(*script, tools=[lookup])))


@pytest.mark.parametrize("path", CHANGES)
def test_one_changed_letter_is_found_in_a_run_of_the_openai_agents_sdk(path):
    record = sdk_record()
    found = list(CHANGES[path](record))

    assert found
    for step, changed in found:
        result, _ = judged(bytes_of(record), bytes_of(changed), "run")
        assert (result.verdict, result.divergence.step) == ("diverged", step)


def observed_and(change: Any) -> tuple[Result, Run]:
    record = sdk_record()
    changed = copy.deepcopy(record)
    change(changed)
    return judged(bytes_of(record), bytes_of(changed))


def test_an_observation_that_ends_early_is_no_reproduction():
    def early(record: Record) -> None:
        del record["steps"][2], record["final"], record["output"]

    result, made = observed_and(early)

    assert (result.verdict, result.divergence.step) == ("answers_left_over", 3)
    assert len(made.steps) == 2


@pytest.mark.parametrize("steps", [0, 2])
def test_an_error_that_ends_an_observation_early_is_the_difference_and_not_what_it_left_over(steps: int):
    def tripped(record: Record) -> None:
        del record["steps"][steps:], record["final"], record["output"]
        record |= {"status": "error", "error": {"type": "InputGuardrailTripwireTriggered", "message": "No."}}

    result, _ = observed_and(tripped)

    found = result.divergence
    assert (result.verdict, found and (found.step, found.path, found.recorded)) == (
        "diverged",
        (steps + 1, "error", None),
    )
    assert result.facts["proof"]["outcome"]["reason"] == f"differs at step {steps + 1}, error"
    assert result.facts["proof"]["same_steps"] == steps
    assert result.facts["left_over"][-1] == 3


def test_an_observation_that_asks_once_more_ran_past_its_recording():
    def again(record: Record) -> None:
        last = copy.deepcopy(record["steps"][2])
        record["steps"].append({**last, "request": {"after": 3, "messages": []}, "response": None, "error": "no more"})

    result, made = observed_and(again)

    assert (result.verdict, result.divergence.step) == ("ran_past_recording", 4)
    assert made.steps[3].source == "unknown"


def test_a_call_that_was_never_recorded_is_a_missing_fixture():
    def other(record: Record) -> None:
        record["steps"][1]["call_id"] = "c9"

    result, _ = observed_and(other)

    assert result.verdict == "fixture_missing"
    assert result.facts["asked_for"]["call_id"] == "c9"


@pytest.mark.parametrize(
    ("kind", "ends"), [("RequestNotRecorded", ("fixture_missing", "http")), ("KeyError", ("diverged", "result"))]
)
def test_a_tool_whose_request_was_not_recorded_has_no_answer(kind, ends):
    record = sdk_record()
    changed = copy.deepcopy(record)
    error = {"type": kind, "message": "GET https://shop.example/x: no HTTP was recorded for this call"}
    changed["steps"][1] |= {"outcome": "crashed", "error": error}
    del changed["steps"][1]["result"], changed["steps"][2], changed["final"], changed["output"]

    result, _ = judged(bytes_of(record), bytes_of(changed), "run")

    assert (result.verdict, result.divergence.path) == ends
    assert result.divergence.step == 2
    if kind == "RequestNotRecorded":
        assert result.divergence.replayed == "GET https://shop.example/x"


@pytest.mark.parametrize(
    ("beside", "ends"),
    [
        ({"outcome": "interrupted", "result": None}, ("fixture_missing", 3)),
        ({"result": {"id": 1}}, ("fixture_missing", 3)),
        ({"result": "another"}, ("diverged", 2)),
    ],
    ids=["cut off", "not put into words yet", "another answer"],
)
def test_what_was_cut_off_beside_a_request_that_was_not_recorded_is_no_difference(beside, ends):
    """Control: a call that came to its end, and to another answer."""
    script = [calls("lookup", '{"order": "A"}', "c1"), calls("lookup", '{"order": "B"}', "c2")], [message("Shipped.")]
    record = one_record(lambda: run(agent(*script, tools=[lookup])))
    changed = copy.deepcopy(record)
    error = {"type": "RequestNotRecorded", "message": "GET https://shop.example/x: no HTTP was recorded for this call"}
    changed["steps"][1] |= beside
    changed["steps"][2] |= {"outcome": "crashed", "error": error}
    del changed["steps"][2]["result"], changed["steps"][3:], changed["final"], changed["output"]
    changed["steps"][1] = {name: value for name, value in changed["steps"][1].items() if value is not None}

    result, _ = judged(bytes_of(record), bytes_of(changed), "run")

    assert (result.verdict, result.divergence.step) == ends


@pytest.mark.parametrize("times", [("2026-03-01T10:00:02Z", "2026-03-01T10:00:01Z"), (None, None)])
def test_recorded_requests_of_a_call_are_listed_in_the_order_in_which_they_were_sent(times):
    """The last one stands on the tool's own step."""
    record = sdk_record()
    on_call, before = (
        {"method": method, "url": f"https://shop.example/{method.lower()}", "status": 200}
        | ({"started_at": at} if at else {})
        for method, at in zip(("GET", "DELETE"), times, strict=True)
    )
    record["steps"][1]["http"] = on_call
    record["steps"].insert(2, {"kind": "other", "name": "HTTP DELETE", "parent": 2, "http": before})
    record["final"]["after"] = 4
    changed = copy.deepcopy(record)
    error = {
        "type": "RequestNotRecorded",
        "message": "GET https://shop.example/x: no recorded exchange has this address",
    }
    changed["steps"][1] |= {"outcome": "crashed", "error": error}
    del changed["steps"][1]["result"], changed["steps"][2:], changed["final"], changed["output"]

    result, _ = judged(bytes_of(record), bytes_of(changed), "run")

    assert result.divergence.recorded == ["DELETE https://shop.example/delete", "GET https://shop.example/get"]


def test_an_output_that_was_not_observed_is_not_the_recorded_one():
    result, _ = observed_and(lambda record: record.pop("output"))

    assert (result.verdict, result.divergence.path) == ("diverged", "output")


def test_what_the_machine_says_of_its_sources_is_not_taken_over():
    def claims(record: Record) -> None:
        for step in record["steps"]:
            step["source"] = "by_hand"

    _, made = observed_and(claims)

    assert [step.source for step in made.steps] == ["recorded"] * 3


# --- what the recorder itself ended --------------------------------------------------------------


def stopped_at_the_end(record: Record) -> None:
    """The last request was given no answer."""
    error = {"type": "RequestDiffers", "message": "Step 3: messages[1] differs."}
    record["steps"][2] |= {"error": error}
    record |= {"status": "error", "error": error}
    del record["steps"][2]["response"], record["final"], record["output"]


def test_an_error_of_the_recorder_is_no_outcome():
    record = sdk_record()
    changed = copy.deepcopy(record)
    stopped_at_the_end(changed)
    changed["steps"][1]["result"] = "lost"

    result, made = judged(bytes_of(record), bytes_of(changed), "run")

    assert (result.verdict, result.divergence.step, result.divergence.path) == ("diverged", 2, "result")
    assert result.facts["proof"]["outcome"]["reason"] == "the replay reached no outcome of its own"
    assert result.facts["proof"]["outcome_kind"] is None
    assert (made.status, made.error, made.steps[2].error) == ("cut_off", None, None)


@pytest.mark.parametrize("name", ["RequestDiffers", "ValueError"])
def test_an_error_that_was_recorded_is_the_agents_own_whatever_its_name(name):
    record = sdk_record()
    stopped_at_the_end(record)
    record["error"]["type"] = record["steps"][2]["error"]["type"] = name

    result, made = judged(bytes_of(record), bytes_of(copy.deepcopy(record)), "run")

    assert (made.status, made.error.type) == ("error", name)
    assert result.facts["proof"]["outcome_kind"] == "error"


# --- states --------------------------------------------------------------------------------------


def snapshots(first: Any, *states: tuple[int, Any]) -> Record:
    """A run with two calls in one answer, and states behind these steps of it."""
    script = [calls("lookup", '{"order": "A"}', "c1"), calls("lookup", '{"order": "B"}', "c2")], [message("Shipped.")]
    record = one_record(lambda: run(agent(*script, tools=[lookup])))
    return with_steps({**record, "initial_state": first}, *((behind, snapshot(state)) for behind, state in states))


def snapshot(state: Any) -> Record:
    change = {"after": [{"op": "replace", "path": "", "value": state}]}
    return {"kind": "other", "name": "automatic snapshot", "state": change}


def with_steps(record: Record, *more: tuple[int, Record]) -> Record:
    """Each behind the step of this index; 0 is before the first."""
    record = copy.deepcopy(record)
    steps, moved = [step for behind, step in more if behind == 0], {0: 0}
    for index, step in enumerate(record["steps"], start=1):
        steps.append(step)
        moved[index] = len(steps)
        steps += [each for behind, each in more if behind == index]
    histories = [record["final"], *(step["request"] for step in steps if step.get("request"))]
    for history in histories:
        if history.get("after") is not None:
            history["after"] = moved[history["after"]]
    return {**record, "steps": steps}


def state_proof(record: Record, observed: Record) -> tuple[str, str, str | None]:
    result, _ = judged(bytes_of(record), bytes_of(observed), "run")
    found = result.facts["proof"]["state"]
    return result.verdict, found["state"], found["reason"]


def counted(number: int, **more: Any) -> Record:
    return {"step_number": number, "iteration_count": number, **more}


def test_states_are_compared_as_values_and_not_as_operations():
    one = snapshots({"n": 0}, (1, {"n": 1, "m": 2}), (4, {"n": 2}))
    other = copy.deepcopy(one)
    taken = next(step for step in other["steps"] if step["kind"] == "other")
    taken["state"]["after"] = [
        {"op": "add", "path": "/m", "value": 2},
        {"op": "replace", "path": "/n", "value": 1},
    ]

    assert state_proof(one, other) == ("reproduced", "proven", None)
    assert state_proof(one, snapshots({"n": 0}, (1, {"n": 1, "m": 2}), (4, {"n": 3})))[0] == "diverged"


def test_states_between_calls_of_one_answer_may_come_in_another_order():
    one = snapshots({}, (2, {"c": ["A"]}), (3, {"c": ["A", "B"]}), (4, {"c": ["A", "B"]}))
    other = snapshots({}, (2, {"c": ["B"]}), (3, {"c": ["A", "B"]}), (4, {"c": ["A", "B"]}))
    lasting = snapshots({}, (2, {"c": ["B"]}), (3, {"c": ["B", "A"]}), (4, {"c": ["B", "A"]}))

    verdict, state, reason = state_proof(one, other)

    assert (verdict, state) == ("reproduced", "not_comparable")
    assert "the order in which the calls ended" in str(reason)
    assert state_proof(one, lasting)[:2] == ("diverged", "not_proven")


def test_a_state_behind_the_last_of_several_calls_differs_where_it_was_taken():
    """The recorder counts the steps that had ended: all that had begun. Control: among the calls one had not."""
    one, among, behind = (
        snapshots(counted(0), (3, counted(2, c=[first])), (3, counted(3, c=last)), (4, counted(4, c=last)))
        for first, last in (("A", ["A", "B"]), ("B", ["A", "B"]), ("A", ["A", "C"]))
    )

    assert [step["kind"] for step in one["steps"]] == ["model", "tool", "tool", "other", "other", "model", "other"]
    assert state_proof(one, among)[:2] == ("reproduced", "not_comparable")
    assert state_proof(one, behind) == ("diverged", "not_proven", "differs at step 5, state.c[1]")


def test_a_state_that_was_observed_nowhere_is_told():
    one = snapshots({"n": 0}, (1, {"n": 1}), (4, {"n": 2}))

    only_first = state_proof(one, snapshots({"n": 0}, (1, {"n": 1})))
    no_snapshots = state_proof(snapshots({"n": 0}), snapshots({"n": 0}, (1, {"n": 1})))

    assert only_first == ("reproduced", "not_comparable", "1 of 2 recorded states were observed at their places")
    assert no_snapshots == ("reproduced", "not_comparable", "only the state at the beginning was recorded")


def test_a_counter_of_the_recorder_counts_steps_that_only_the_recording_has():
    one = snapshots(counted(0, n=0), (1, counted(2, n=1)))
    one = with_steps(one, (0, {"kind": "other", "name": "warming up"}))

    assert state_proof(one, snapshots(counted(0, n=0), (1, counted(1, n=1))))[:2] == ("reproduced", "proven")
    assert state_proof(one, snapshots(counted(0, n=0), (1, counted(7, n=1))))[0] == "diverged"
