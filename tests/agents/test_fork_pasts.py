"""Forks come to their step through the recording, with all that the loop keeps for a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory

from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import ModelCall, Run, main_steps
from tests.agents.forking import forked, outcome, sources
from tests.recorder import scenarios
from tests.recorder.playing import WAYS, recorded
from tests.recorder.replaying import replayed
from tests.recorder.scenarios import Play, Scripted, call, says, support_agent

CLOCK: JsonObject = {"kind": "clock", "value": 0}


def shortened() -> Play:
    """Its requests begin at an answer of a tool."""
    orders = [says(call("lookup_order", {"order_id": f"ORD-{number}"}, f"c{number}")) for number in (1, 2)]
    history = ProcessHistory(lambda messages: messages[-1:])
    return Play(support_agent(*orders, says("Shipped."), capabilities=[history]), "Where?")


def words_before_a_call() -> Play:
    asks = says("Looking.", call("lookup_order", {"order_id": "ORD-1"}, "a"))
    return Play(support_agent(says(call("lookup_order", {"order_id": "ORD-2"}, "b")), asks, says("Shipped.")), "Where?")


COUNTING = (
    scenarios.model_retry,
    scenarios.validation_errors,
    scenarios.output_tool_retry,
    scenarios.native_output_retry,
    scenarios.empty_response,
    scenarios.output_retries_exhausted,
    scenarios.text_output_refused_for_good,
    scenarios.tool_retries_exhausted,
    scenarios.validation_retries_exhausted,
    scenarios.unknown_tool_retries_exhausted,
)
KEEPING = (scenarios.tools_that_appear, scenarios.tool_calls_limit, scenarios.rewritten_history, shortened)


@pytest.mark.parametrize("way", ["run", "run_stream"])
@pytest.mark.parametrize("make", [*COUNTING, *KEEPING], ids=lambda make: make.__name__)
def test_a_fork_that_changes_nothing_goes_on_with_what_the_loop_had_counted(make: Callable[[], Play], way: str):
    run = run_of(make, way)
    whole, _ = replayed(encode_native(run))

    for step in main_steps(run):
        for change in (CLOCK, *as_asked(run, step.index)):
            result, made = forked(run, step.index, change)
            assert ended(result) == ended(whole), (step.index, change)
            assert whole.verdict != "reproduced" or set(sources(made)) == {"recorded"}


def test_a_call_that_is_refused_behind_a_retry_is_refused_as_the_next_attempt():
    """Control: as the first call of its tool it is the first attempt."""
    refused, other = run_of(scenarios.unknown_tool), run_of(scenarios.one_tool)
    again: JsonObject = {"tool_calls": [{"name": "cancel_all", "arguments": {}}]}

    _, made = forked(refused, 3, {"kind": "model_answer", "step": 3, "value": again})
    _, control = forked(other, 3, {"kind": "model_answer", "step": 3, "value": again})

    assert (made.status, made.error.type) == ("error", "UnexpectedModelBehavior")
    assert control.steps[3].call.retry["attempt"] == 1


@pytest.mark.parametrize("step", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "change",
    [
        {"kind": "instructions", "value": "Be brief."},
        {"kind": "model", "value": {"model": "other"}},
        {"kind": "model", "value": {"settings": {"temperature": 1.0}}},
    ],
)
def test_other_instructions_and_models_hold_from_the_same_request_on_however_the_run_was_streamed(
    change: JsonObject, step: int
):
    """With `run_stream` the text before the second call is the output, and the run ends with that call."""
    ends: dict[str, Any] = {}
    for way in WAYS:
        result, made = forked(run_of(words_before_a_call, way), step, change)
        ends[way] = result.verdict, result.stopped and result.stopped["step"], sources(made)

    stop = 1 if step == 1 else 3 if step < 4 else 5
    stopped = "unknown_from_step", stop, ["recorded"] * (stop - 1) + ["unknown"]
    is_over = "reproduced", None, ["recorded"] * 4
    assert ends == {way: is_over if way == "run_stream" and step == 4 else stopped for way in WAYS}


def test_a_changed_system_prompt_stands_in_its_message_and_nowhere_else():
    play = Play(Agent(Scripted(says("Hi.")), system_prompt=("Be kind.", "Be short.")), "Hello")
    run = run_of(lambda: play)

    _, made = forked(run, 1, {"kind": "instructions", "value": "Be brief."})

    message = made.steps[0].call.history.message.value
    prompts = [part["content"] for part in message["parts"] if part["part_kind"] == "system-prompt"]
    assert (prompts, message["instructions"]) == (["Be brief."], None)


def test_instructions_beside_a_system_prompt_are_changed_and_the_prompt_is_not():
    play = Play(support_agent(says("Hi."), system_prompt="You are kind."), "Hello")

    _, made = forked(run_of(lambda: play), 1, {"kind": "instructions", "value": "Be brief."})

    message = made.steps[0].call.history.message.value
    assert (message["parts"][0]["content"], message["instructions"]) == ("You are kind.", "Be brief.")


def test_instructions_that_code_makes_anew_are_other_ones_where_they_differ():
    run = run_of(scenarios.dynamic_instructions)
    first, second = (instructions_of(step.call) for step in main_steps(run) if isinstance(step.call, ModelCall))
    assert first != second

    result, made = forked(run, 1, {"kind": "instructions", "value": first})

    assert (result.verdict, result.stopped["step"]) == ("unknown_from_step", 3)
    assert (sources(made), outcome(made)[0]) == (["recorded", "recorded", "unknown"], "cut_off")


def run_of(make: Callable[[], Play], way: str = "run") -> Run:
    return parse_native(recorded(make(), way)[-1])


def ended(result: Result) -> tuple[str, int | None]:
    """Of an output that code of the team's refused, neither a replay nor a fork can tell whether it is the same."""
    return result.verdict, result.divergence.step if result.divergence else None


def as_asked(run: Run, index: int) -> Iterator[JsonObject]:
    """The instructions and the model of the next request, given again."""
    asked = next((s.call for s in main_steps(run) if s.index >= index and isinstance(s.call, ModelCall)), None)
    if asked is not None:
        yield {"kind": "model", "value": {"model": asked.model, "settings": asked.settings.value}}
        yield {"kind": "instructions", "value": instructions_of(asked)}


def instructions_of(call: Any) -> str:
    return str(call.history.message.value["instructions"])


def test_what_lies_behind_the_end_of_what_can_be_replayed_is_no_difference_of_a_fork():
    """Another loop asked once more, about something else. Control: an answer that was changed."""
    record = json.loads(recorded(scenarios.one_tool(), "run")[-1])
    record["steps"].append({**record["steps"][2], "request": record["steps"][0]["request"]})
    run = parse_native(json.dumps(record).encode())
    assert judge(run).verdict == "replayable_to_step"

    same, _ = forked(run, 1, CLOCK)
    other, _ = forked(run, 3, {"kind": "model_answer", "step": 3, "value": {"text": "No."}})

    assert ended(same) == ("unknown_from_step", 4)
    assert same.facts["limit"]["reason"] == judge(run).reasons[0].message
    assert ended(other) == ("diverged", 3)
