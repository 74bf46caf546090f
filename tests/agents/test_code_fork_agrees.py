"""A fork with the team's own code says of that code what a replay of it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.capabilities import AbstractCapability

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.agreement import produced
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.proof import PARTS
from sessions_app.core.run import Run
from tests.agents.own_agents import fork_made_by, own, place, recorded_run, replayed_by
from tests.agents.test_code_fork_tools import order_of
from tests.recorder.scenarios import SCENARIOS, Play, Scenario, Scripted, call, model_error, says

HOW: dict[str, JsonObject] = {"frozen": {}, "tools run": {"run": True}}
CODE = {"kind": "agent", "value": "desk"}
FAILS_AGAIN = (model_error,)
"""A fork gets past the failed request that it begins at."""


def stored(run: Run) -> Run:
    """As it was sent by somebody who spells JSON with spaces."""
    return parse_native(json.dumps(json.loads(encode_native(run))).encode())


def replay_of(run: Run, code: OwnAgent, how: str) -> Result:
    result = replayed_by(run, code, runs_tools=bool(HOW[how]), on_difference="play_on")
    assert result.observations is not None
    return produced(run, result, result.observations, run_id="again")[0]


def fork_of(run: Run, code: OwnAgent, how: str, at: int = 1) -> tuple[Result, Run]:
    result, made = fork_made_by(run, code, order_of(at, CODE, tools=HOW[how], on_difference="play_on"))
    assert made is not None
    return result, made


def proven(result: Result) -> JsonObject:
    """Of the state, a fork says in its own words how far it was carried over."""
    return {name: result.facts["proof"][name]["state"] for name in PARTS}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.make not in FAILS_AGAIN], ids=str)
def test_unchanged_code_is_proven_as_by_a_replay(scenario: Scenario, how: str):
    run = stored(recorded_run(scenario.make))

    replayed, (forked, _) = replay_of(run, own(scenario.make()), how), fork_of(run, own(scenario.make()), how)

    assert forked.verdict == replayed.verdict
    assert "proof" not in forked.facts or proven(forked) == proven(replayed)
    assert forked.facts.get("limit", {}).get("reason") == replayed.facts.get("limit", {}).get("reason")


# --- a desk of orders whose state is recorded


class Deletes(AbstractCapability[Any]):
    """Answers in the tool's place what the tool answered."""

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return "Deleted A2." if call.tool_name == "delete" else await handler(args)


class Total(BaseModel):
    number: int


def desk(
    *, words: str = "No such order.", done: str = "Deleted A2.", by: int = 2, hooks: list[Any] | None = None
) -> tuple[Play, dict[str, Any]]:
    """The agent and its state."""
    state: dict[str, Any] = {"deleted": []}
    script = (
        says(call("find", {"order": "A1"}, "a")),
        says(call("find", {"order": "A2"}, "b")),
        says(call("delete", {"order": "A2"}, "c")),
        says(call("final_result", {"number": 9}, "d")),
    )

    def doubled(total: Total) -> dict[str, int]:
        """Finish."""
        return {"number": total.number * by}

    agent: Agent[None, Any] = Agent(
        Scripted(*script), name="desk", output_type=doubled, capabilities=hooks or [], retries=2
    )

    @agent.tool_plain
    def find(order: str) -> dict[str, Any]:
        """Find one."""
        if order != "A2":
            raise ModelRetry(words)
        return {"id": order, "status": "open"}

    @agent.tool_plain
    def delete(order: str) -> str:
        """Delete one."""
        state["deleted"].append(order)
        return done

    return Play(agent, "Go"), state


def code_of(play: Play, state: dict[str, Any]) -> OwnAgent:
    return replace(own(play), deps_of_state=lambda given: None, state_of_deps=lambda deps: dict(state))


@pytest.fixture(scope="module")
def run() -> Run:
    """1 model, 3 find retried, 5 model, 7 find, 9 model, 11 delete, 13 model, 14 output; snapshots between."""
    play, state = desk()
    found = stored(recorded_run(lambda: play, state=lambda: dict(state), snapshot_every=1))
    tools = [(step.index, call.tool_name) for step, call in found.tool_calls]
    assert tools[:3] == [(3, "find"), (7, "find"), (11, "delete")]
    assert found.output is not None
    assert found.output.parsed == {"number": 18}
    return found


@pytest.mark.parametrize("at", [1, 5, 9])
def test_unchanged_tools_that_run_again_are_reproduced_with_the_snapshots_and_errors_around_them(run: Run, at: int):
    result, made = fork_of(run, code_of(*desk()), "tools run", at)

    assert place(result) == ("reproduced", None, None)
    assert set(proven(result).values()) == {"proven"}
    assert compare_runs(run, made).identical
    assert [step.error for step in made.steps] == [step.error for step in run.steps]


CHANGES: list[tuple[str, Callable[[], tuple[Play, dict[str, Any]]], tuple[int, str]]] = [
    ("tools run", lambda: desk(words="Nothing there."), (3, "result")),
    ("tools run", lambda: desk(done="Refused."), (11, "result")),
    ("tools run", lambda: desk(hooks=[Deletes()]), (11, "tool_ran")),
    ("frozen", lambda: desk(hooks=[Deletes()]), (11, "tool_ran")),
    ("tools run", lambda: desk(by=3), (0, "output.number")),
]


@pytest.mark.parametrize(("how", "make", "expected"), CHANGES)
def test_changed_code_differs_where_a_replay_of_it_differs(
    run: Run, how: str, make: Callable[[], tuple[Play, dict[str, Any]]], expected: tuple[int, str]
):
    replayed, (forked, made) = replay_of(run, code_of(*make()), how), fork_of(run, code_of(*make()), how)

    step, path = expected
    assert place(forked) == place(replayed) == ("diverged", step or len(run.steps), path)
    assert not compare_runs(run, made).identical
    assert proven(forked) == proven(replayed)


def test_a_tool_that_fails_in_other_words_fails_with_another_error(run: Run):
    _, made = fork_of(run, code_of(*desk(words="Nothing there.")), "tools run")

    error = made.steps[2].error
    assert error is not None
    assert (error.type, error.message) == ("ToolRetryError", "Nothing there.")


def test_the_outcome_of_a_function_that_ran_is_not_said_to_be_of_one_that_did_not(run: Run):
    """Control: with frozen tools it does not run."""
    ran, frozen = (fork_of(run, code_of(*desk()), how)[0] for how in ("tools run", "frozen"))

    assert "limit" not in ran.facts
    assert frozen.verdict == "unknown_from_step"
    assert frozen.facts["limit"]["reason"] == (
        "The answer was made by doubled, an output function that does not run in a replay."
    )
