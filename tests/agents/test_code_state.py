"""An agent that searches twenty times: its state, step by step, as the recorder wrote it down."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.tools import RunContext

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.own_code.fork import fork_with_own_agent
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.fork.order import Course, read_order
from sessions_app.core.formats.native import encode_native
from sessions_app.core.payload import Payload
from sessions_app.core.replay.agreement import produced
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import Run, ToolCall
from sessions_app.core.state import input_state, state_after
from tests.agents.forking import forked
from tests.agents.own_agents import fork_made_by, forked_by, never_asked, recorded_run, replayed_by
from tests.recorder.replaying import replayed
from tests.recorder.scenarios import Play, Scripted, call, says

SEARCHES = 20


@dataclass
class Search:
    retrieved_docs: list[str] = field(default_factory=list)
    searches: int = 0


def searcher(*script: Any, odd: int | None = None, answers_otherwise: int | None = None) -> Agent[Search, str]:
    """`odd` is the search that keeps something else; what it answers is the same."""
    agent: Agent[Search, str] = Agent(Scripted(*script), deps_type=Search, name="searcher")

    @agent.tool
    def search_docs(ctx: RunContext[Search], query: str) -> dict[str, Any]:
        """Search the documents."""
        ctx.deps.searches += 1
        ctx.deps.retrieved_docs.append("other" if ctx.deps.searches == odd else f"doc {ctx.deps.searches}")
        return {"docs": [], "count": int(ctx.deps.searches == answers_otherwise)}

    return agent


def twenty_searches(found: tuple[str, ...] = (), **settings: Any) -> Run:
    script = [says(call("search_docs", {"query": "refund policy"}, f"c{n}")) for n in range(SEARCHES)]
    kept = Search(retrieved_docs=list(found))
    return recorded_run(
        lambda: Play(searcher(*script, says("I found nothing.")), "What is the refund policy?", deps=kept),
        state=lambda: asdict(kept),
        **settings,
    )


def registered(**changes: Any) -> OwnAgent:
    made = OwnAgent(agent=searcher(), deps_of_state=search_of, state_of_deps=asdict)
    return replace(made, **changes)


def search_of(state: Any) -> Search:
    return Search(retrieved_docs=list(state["retrieved_docs"]), searches=state["searches"])


@pytest.fixture(scope="module", params=[1, 5], ids=["a snapshot each step", "every fifth step"])
def run(request: pytest.FixtureRequest) -> Run:
    return twenty_searches(found=("doc 0",), snapshot_every=request.param)


def made_by(run: Run, result: Result) -> tuple[Result, Run]:
    assert result.observations is not None
    return produced(run, result, result.observations, run_id="again")


def states(run: Run) -> list[Any]:
    return [state_after(run, step) for step in range(len(run.steps) + 1)]


def test_the_recorder_writes_down_the_state_that_the_run_began_with(run: Run):
    assert run.initial_state is not None
    first = run.initial_state.value
    assert (first["retrieved_docs"], first["searches"], first["step_number"]) == (["doc 0"], 0, 0)
    assert state_after(run, len(run.steps))["searches"] == SEARCHES


def test_a_rebuilt_replay_goes_through_the_recorded_states(run: Run):
    result, made = replayed(encode_native(run))

    assert made is not None
    assert result.verdict == "reproduced"
    assert result.facts["proof"]["state"]["reason"] == "carried over from the recording, not run"
    assert states(made) == states(run)


def test_the_code_goes_through_the_recorded_states_by_itself(run: Run):
    result, made = made_by(run, replayed_by(run, registered(), runs_tools=True))

    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)
    assert result.facts["proof"]["state"] == {"state": "proven", "reason": None}
    assert states(made) == states(run)


def test_no_snapshot_stands_behind_the_request_at_which_a_replay_stopped(run: Run):
    """Control: played on, the run has as many steps as the recording."""
    code = registered(agent=searcher(answers_otherwise=6))

    _, stopped = made_by(run, replayed_by(run, code, runs_tools=True))
    _, played_on = made_by(run, replayed_by(run, code, runs_tools=True, on_difference="play_on"))

    assert (stopped.steps[-1].kind, stopped.steps[-1].source) == ("model", "unknown")
    assert any(step.kind == "other" for step in stopped.steps)
    assert len(played_on.steps) == len(run.steps)


def test_the_code_may_change_what_it_is_given(run: Run):
    """Its tools append to the very list that stood in the state."""
    before = encode_native(run)
    code = registered(deps_of_state=lambda state: Search(state["retrieved_docs"], state["searches"]))

    result, made = made_by(run, replayed_by(run, code, runs_tools=True))

    assert (result.verdict, result.divergence) == ("reproduced", None)
    assert states(made) == states(run)
    assert encode_native(run) == before


def test_where_the_tools_are_frozen_the_recorded_states_are_carried_over(run: Run):
    result, made = made_by(run, replayed_by(run, registered()))

    assert (result.verdict, result.divergence) == ("reproduced", None)
    assert result.facts["proof"]["state"]["state"] == "not_comparable"
    assert states(made) == states(run)


def test_without_a_recorded_state_there_is_nothing_to_begin_with(run: Run):
    without = replace(run, initial_state=None, steps=tuple(replace(step, state=None) for step in run.steps))

    refused = replayed_by(without, registered(), runs_tools=True)
    with_own = replayed_by(without, registered(deps=Search(["doc 0"])), runs_tools=True)

    assert refused.verdict == "could_not_run"
    assert "no state of this run was recorded" in str(refused.error)
    assert with_own.verdict == "reproduced"


def test_a_run_that_ended_before_its_first_snapshot_says_its_first_state_alone():
    kept = Search()
    script = says(call("search_docs", {"query": "refund policy"}, "c")), says("I found nothing.")
    short = recorded_run(lambda: Play(searcher(*script), "Go", deps=kept), state=lambda: asdict(kept))

    result, _ = made_by(short, replayed_by(short, registered(), runs_tools=True))

    assert (result.verdict, result.divergence) == ("reproduced", None)
    assert result.facts["proof"]["state"] == {
        "state": "not_comparable",
        "reason": "only the state at the beginning was recorded",
    }


def test_snapshots_do_not_part_a_course_that_a_live_model_may_leave(run: Run):
    """Where nothing is asked that was not recorded."""
    order = read_order({"at_step": 1, "agent": "s", "on_difference": "live", "tools": {"run": True}})

    live = {"response": {"kind": "response", "parts": [{"part_kind": "text", "content": "There is one."}]}}
    same = forked_by(run, registered(), order)
    other = forked_by(run, registered(agent=searcher(answers_otherwise=13)), order, ask=lambda question: live)

    calls = [step.index for step in run.steps if isinstance(step.call, ToolCall)]
    assert (same.verdict, same.divergence) == ("reproduced", None)
    assert other.divergence is not None
    assert (other.divergence.step, other.divergence.path) == (calls[12], "result.count")


def test_a_state_that_one_search_leaves_otherwise_is_found_at_the_next_snapshot(run: Run):
    code = registered(agent=searcher(odd=13))
    result, made = made_by(run, replayed_by(run, code, runs_tools=True))

    calls = [step.index for step in run.steps if isinstance(step.call, ToolCall)]
    snapshot = next(step.index for step in run.steps if step.index > calls[12] and step.kind == "other")
    assert result.divergence is not None
    assert (result.verdict, result.divergence.step) == ("diverged", snapshot)
    assert (result.divergence.recorded, result.divergence.replayed) == ("doc 13", "other")
    assert states(made)[:snapshot] == states(run)[:snapshot]
    assert states(made)[-1] != states(run)[-1]


def test_a_fork_gives_the_changed_state_of_a_step_to_the_code():
    """As `fork_run(run_id, step_id, {"retrieved_docs": []})` does."""
    run, given = twenty_searches(found=("doc 0",), snapshot_every=1), []

    def noting(state: Any) -> Search:
        given.append(state)
        return search_of(state)

    at = [step.index for step, _ in run.model_calls][10]
    patch = [{"op": "replace", "path": "/retrieved_docs", "value": []}]
    order = read_order({"at_step": at, "agent": "s", "changes": [{"kind": "state", "step": at, "patch": patch}]})
    forked = forked_by(run, registered(deps_of_state=noting), order)

    assert forked.error is None
    assert [(state["retrieved_docs"], state["searches"]) for state in given] == [([], 10)]
    assert state_after(run, at - 1)["retrieved_docs"] == [f"doc {n}" for n in range(11)], "what it would have been"


def test_between_the_calls_of_an_answer_no_state_can_be_given_to_the_code(run: Run):
    at = next(step.index for step in run.steps if isinstance(step.call, ToolCall))
    patch = [{"op": "replace", "path": "/retrieved_docs", "value": []}]
    order = read_order({"at_step": at, "agent": "s", "changes": [{"kind": "state", "step": at, "patch": patch}]})

    refused = forked_by(run, registered(), order)

    assert refused.verdict == "could_not_run"
    assert "Fork at a step of the model" in str(refused.error)


def test_runs_that_differ_in_their_state_alone_differ(run: Run):
    assert run.initial_state is not None
    other = replace(run, initial_state=Payload.of_json({**run.initial_state.value, "searches": 1}))

    found = compare_runs(run, other)

    assert found.identical is False
    assert found.divergence is not None
    assert "state" in found.divergence.path


# --- what code outside of tools does to the state


def noting(at: int | None, *script: Any, word: str = "looked") -> Agent[Search, str]:
    """Its instructions change the state before this request; each of its tools does."""
    agent: Agent[Search, str] = Agent(Scripted(*script), deps_type=Search, name="noting")

    @agent.instructions
    def note(ctx: RunContext[Search]) -> str | None:
        if ctx.run_step == at:
            ctx.deps.retrieved_docs.append(word)
        return None

    @agent.tool
    async def look(ctx: RunContext[Search], number: int) -> str:
        """Look."""
        ctx.deps.retrieved_docs.append(f"{word} {number}")
        return "found"

    return agent


ONE_BY_ONE = says(call("look", {"number": 1}, "1")), says(call("look", {"number": 2}, "2")), says("Done.")
BESIDE_EACH_OTHER = says(call("look", {"number": 1}, "1"), call("look", {"number": 2}, "2")), says("Done.")


def noted(at: int | None, script: tuple[Any, ...] = ONE_BY_ONE, every: int = 1) -> Run:
    kept = Search()
    return recorded_run(
        lambda: Play(noting(at, *script), "Go", deps=kept), state=lambda: asdict(kept), snapshot_every=every
    )


def replayed_with(run: Run, agent: Agent[Search, str]) -> Result:
    return made_by(run, replayed_by(run, registered(agent=agent), runs_tools=True))[0]


@pytest.mark.parametrize("every", [1, 2, 5])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_instructions_that_change_the_state_as_they_did_reproduce(at: int, every: int):
    result = replayed_with(noted(at, every=every), noting(at))

    assert (result.verdict, result.divergence) == ("reproduced", None)
    assert result.facts["proof"]["state"] == {"state": "proven", "reason": None}


@pytest.mark.parametrize(("at", "snapshot"), [(1, 2), (2, 6), (3, 10)])
def test_instructions_that_change_the_state_today_differ_behind_their_request(at: int, snapshot: int):
    result = replayed_with(noted(None), noting(at))

    assert result.divergence is not None
    assert (result.verdict, result.divergence.step, result.divergence.replayed) == ("diverged", snapshot, "looked")


@pytest.mark.parametrize("every", [1, 2])
def test_between_calls_of_one_answer_no_state_is_held_against_another(every: int):
    """They may end in any order; behind them the state counts."""
    run = noted(None, BESIDE_EACH_OTHER, every)

    same, other = replayed_with(run, noting(None)), replayed_with(run, noting(None, word="seen"))

    assert (same.verdict, same.divergence) == ("reproduced", None)
    behind = max(step.index for step in run.steps if step.kind == "tool") if every == 1 else len(run.steps) - 1
    assert other.divergence is not None
    assert other.divergence.step is not None
    assert (other.verdict, other.divergence.path) == ("diverged", "state.retrieved_docs[0]")
    assert other.divergence.step > behind


def test_a_count_of_the_teams_own_is_not_taken_for_the_recorders():
    kept = Search()
    run = recorded_run(
        lambda: Play(noting(None, *ONE_BY_ONE), "Go", deps=kept),
        state=lambda: {"step_number": 0, **asdict(kept)},
        snapshot_every=1,
    )
    code = registered(agent=noting(None, word="seen"), state_of_deps=lambda deps: {"step_number": 0, **asdict(deps)})

    result, _ = made_by(run, replayed_by(run, code, runs_tools=True))

    assert result.divergence is not None
    assert (result.verdict, result.divergence.step) == ("diverged", 4)


def test_the_run_of_a_fork_has_the_changed_state_and_what_the_code_made_of_it(run: Run):
    """Recorded snapshots behind it know nothing of that state. Control: before the fork's step all is as recorded."""
    at = next(step.index for step in run.steps if step.index > 20 and step.kind == "model")
    patch = [{"op": "replace", "path": "/retrieved_docs", "value": []}]
    order = read_order(
        {
            "at_step": at,
            "agent": "searcher",
            "tools": {"run": True},
            "on_difference": "play_on",
            "changes": [{"kind": "state", "step": at, "patch": patch}],
        }
    )
    clock = PinnedClock(run.started_at)

    fork = fork_with_own_agent(
        run, "forked", registered(), order, Course(), ask=never_asked, on_progress=lambda *_: None, clock=clock
    )
    result, made = asyncio.run(fork)
    clock.release()

    assert made is not None
    searched = [step.index for step in made.steps if isinstance(step.call, ToolCall) and step.index > at]
    docs = [state_after(made, index)["retrieved_docs"] for index in searched]
    assert states(made)[: at - 1] == states(run)[: at - 1]
    assert state_after(made, at)["retrieved_docs"] == []
    first = state_after(run, at - 1)["searches"] + 1
    assert docs == [[f"doc {n}" for n in range(first, first + count)] for count in range(1, len(searched) + 1)]
    assert state_after(made, len(made.steps))["retrieved_docs"] == docs[-1]
    assert (result.verdict, result.facts["proof"]["state"]["state"]) == ("reproduced", "not_comparable")
    counters = [(state["step_number"], state["iteration_count"]) for state in states(made)]
    assert counters == [(state["step_number"], state["iteration_count"]) for state in states(run)], "snapshots count on"
    snapshots = {(step.index > at, step.source) for step in made.steps if step.kind == "other"}
    assert snapshots == {(False, "recorded"), (True, "own_code")}


def test_recorded_snapshots_do_to_a_changed_state_what_fits_it(run: Run):
    """Where the tools are frozen their changes are carried over. Control: with the recorded state all of them fit."""
    at = next(step.index for step in run.steps if step.index > 20 and step.kind == "model")
    rule = {"kind": "rule", "when": "state.nothing = 1", "answer": "x"}

    def made(operation: dict[str, Any]) -> tuple[Result, Run]:
        change = {"kind": "state", "step": at, "patch": [operation]}
        return forked(run, at, change, rule)

    without, with_more = (
        made({"op": "remove", "path": "/retrieved_docs"}),
        made({"op": "add", "path": "/x", "value": 1}),
    )

    end = len(run.steps)
    assert (state_after(without[1], end).get("retrieved_docs"), state_after(without[1], end)["searches"]) == (
        None,
        state_after(run, end)["searches"],
    )
    assert any("does not fit any more" in note for note in without[0].facts["lint"])
    assert state_after(with_more[1], end) == {**state_after(run, end), "x": 1}
    assert with_more[0].facts["lint"] == []


def reading(*script: Any) -> Agent[Search, str]:
    """Its instructions say what its state holds."""
    agent = searcher(*script)

    @agent.instructions
    def found(ctx: RunContext[Search]) -> str:
        return f"{len(ctx.deps.retrieved_docs)} documents were found."

    return agent


def searched_once(make: Any) -> tuple[Run, int]:
    """A run with a snapshot behind each step, and the step of its second request."""
    kept = Search(retrieved_docs=["doc 0"])
    script = says(call("search_docs", {"query": "refund policy"}, "c")), says("I found nothing.")
    run = recorded_run(lambda: Play(make(*script), "Go", deps=kept), state=lambda: asdict(kept), snapshot_every=1)
    return run, [step.index for step, _ in run.model_calls][1]


def without_docs(at: int) -> dict[str, Any]:
    patch = [{"op": "replace", "path": "/retrieved_docs", "value": []}]
    return {"at_step": at, "agent": "s", "changes": [{"kind": "state", "step": at, "patch": patch}]}


@pytest.mark.parametrize("runs_tools", [False, True], ids=["frozen", "tools run"])
def test_a_step_that_stops_unknown_began_with_the_changed_state(runs_tools: bool):
    run, at = searched_once(reading)
    order = read_order({**without_docs(at), "tools": {"run": runs_tools}})

    result, made = fork_made_by(run, registered(agent=reading()), order)

    assert made is not None
    assert (result.verdict, made.steps[-1].index, made.steps[-1].source) == ("unknown_from_step", at, "unknown")
    assert input_state(made, at)["retrieved_docs"] == []
    assert input_state(run, at)["retrieved_docs"] != []


@pytest.mark.parametrize("runs_tools", [False, True], ids=["frozen", "tools run"])
@pytest.mark.parametrize(("agent", "verdict"), [(searcher, "reproduced"), (reading, "diverged")])
def test_a_changed_state_that_nobody_reads_makes_no_difference(agent: Any, verdict: str, runs_tools: bool):
    """The person's own change is no difference by itself. Control: of an agent whose instructions read it."""
    run, at = searched_once(agent)
    order = read_order({**without_docs(at), "on_difference": "play_on", "tools": {"run": runs_tools}})

    result, made = fork_made_by(run, registered(agent=agent()), order)

    assert made is not None
    assert input_state(made, at)["retrieved_docs"] == []
    assert (result.verdict, result.divergence is None) == (verdict, verdict == "reproduced")
    assert result.divergence is None or result.divergence.path.startswith("messages")
