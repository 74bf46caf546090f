"""What ran inside of tools, and steps beside the loop: read in a replay, named, and never claimed."""

import copy
import json
from typing import Any

import pytest

from replay_recorder import recorded_tool
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.compare.sentences import agreement_sentence
from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.proof import INNER_REQUESTS, read_proof
from sessions_app.core.replay.words import ReplayFacts, proof_rows, verdict_in_words
from tests.recorder.playing import last_record
from tests.recorder.replaying import replayed
from tests.recorder.scenarios import Play, Scenario, call, says, support_agent

INSIDE = "1 step inside of tools was not played"


@recorded_tool(kind="read")
def look_inside(order: str) -> str:
    return f"inside of {order}"


def tool_with_a_recorded_tool() -> Play:
    agent = support_agent(says(call("outer", {"order": "A-1001"}, "call_1")), says("Done."))

    @agent.tool_plain
    def outer(order: str) -> str:
        return look_inside(order)

    return Play(agent, "go")


@pytest.fixture(scope="module")
def nested() -> dict[str, Any]:
    """Steps: 1 model, 2 tool, 3 what ran inside of it, 4 model."""
    return dict(json.loads(last_record(Scenario(tool_with_a_recorded_tool), "run")))


def sentence_of(record: dict[str, Any]) -> str:
    result, _ = replayed(json.dumps(record).encode())
    assert result.verdict == "reproduced"
    return verdict_in_words(ReplayFacts(verdict="reproduced", proof=read_proof(result.facts["proof"])))


def test_a_step_inside_of_a_tool_is_not_counted_and_is_named(nested):
    result, _ = replayed(json.dumps(nested).encode())

    assert [step.get("parent") for step in nested["steps"]] == [None, 1, 2, None]
    assert sentence_of(nested) == f"Reproduced: same 3 steps, same answer; {INSIDE}"
    assert ("other steps", "not played", INSIDE) in proof_rows(read_proof(result.facts["proof"]))
    assert "look_inside" in result.facts["played_back"]


def test_a_recording_and_its_replay_do_not_compare_what_was_not_played(nested):
    content = json.dumps(nested).encode()
    _, made = replayed(content)
    assert made is not None

    found = compare_runs(parse_native(content), made)

    assert [pair.status for pair in found.steps] == ["same", "same", "not_comparable", "same"]
    assert found.identical is None
    assert agreement_sentence(found).startswith("No difference in 3 steps, ")
    assert "; 1 step not played" in agreement_sentence(found)


def test_a_replay_beside_another_recording_shows_what_differs_inside(nested):
    other = copy.deepcopy(nested)
    other["run_id"], other["steps"][2]["result"] = "other", "something else"
    _, made = replayed(json.dumps(nested).encode())
    assert made is not None

    found = compare_runs(parse_native(json.dumps(other).encode()), made)

    assert found.divergence is not None
    assert (found.divergence.left_step.index, found.divergence.path) == (3, "result")


def test_what_ran_inside_of_a_call_that_was_not_made_is_not_kept(nested):
    record = copy.deepcopy(nested)
    record["steps"][0]["response"]["parts"] = [{"part_kind": "text", "content": "Done."}]

    _, made = replayed(json.dumps(record).encode())

    assert made is not None
    assert "look_inside" not in [step.name for step in made.steps]


@pytest.mark.parametrize(
    ("step", "named"),
    [
        ({"kind": "retrieval", "name": "search", "query": "q", "chunks": []}, "; 1 retrieval step was not played"),
        ({"kind": "agent", "name": "sub", "run_id": "other", "result": "b"}, "; 1 agent step was not played"),
        ({"kind": "other", "name": "prompt.build", "result": "b"}, ""),
    ],
    ids=["retrieval", "agent", "other"],
)
def test_steps_beside_the_loop_are_named(nested, step, named):
    record = copy.deepcopy(nested)
    del record["steps"][2]
    record["final"]["after"] = 3
    record["steps"].append(step)

    assert sentence_of(record) == f"Reproduced: same 3 steps, same answer{named}"


def test_the_proof_of_the_requests_says_that_those_inside_of_tools_were_not_made_again(nested):
    untouched, _ = replayed(json.dumps(nested).encode())
    record = copy.deepcopy(nested)
    prompt, answer = {"part_kind": "user-prompt", "content": "look"}, {"part_kind": "text", "content": "looked"}
    asked = {"request": {"messages": [{"kind": "request", "parts": [prompt]}]}}
    record["steps"][2] = {"kind": "model", "name": "inner", "parent": 2, **asked}
    record["steps"][2]["response"] = {"kind": "response", "parts": [answer]}

    result, _ = replayed(json.dumps(record).encode())

    assert untouched.facts["proof"]["requests"] == {"state": "proven", "reason": None}
    assert result.facts["proof"]["requests"] == {"state": "proven", "reason": INNER_REQUESTS}
    assert sentence_of(record) == f"Reproduced: same 3 steps, same answer; {INSIDE}"
