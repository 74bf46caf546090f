"""Snapshots of the agent's state: what the server rebuilds is what the agent had."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent

import replay_recorder
from replay_recorder import AgentStateSnapshot, StatefulAgent, mask, record, recorded_tool, snapshot
from replay_recorder.writing.json_patch import diff, same
from sessions_app.core.run import OtherCall, Run, Step
from sessions_app.core.state import apply_patch, broken_links, state_after
from tests.recorder.local_server import local_server
from tests.recorder.recordings import BREAKING_POINTS, break_at, only_run_of, records_of
from tests.recorder.scenarios import Scripted, call, says

EMPTY = {"step_number": 0, "iteration_count": 0, "memory": [], "context_variables": {}, "tool_results": []}


@recorded_tool
def look() -> None: ...


def run_with(work: Callable[[], Any], **settings: Any) -> Run:
    @record
    def agent() -> None:
        work()

    return only_run_of(agent, **settings)


def snapshots(run: Run) -> list[Step]:
    return [step for step in run.steps if "snapshot" in step.extra]


def states(run: Run) -> list[Any]:
    """What the server rebuilds at every snapshot."""
    return [state_after(run, step.index) for step in snapshots(run)]


# --- snapshots in the recording


def test_the_server_rebuilds_exactly_what_was_there():
    memory: list[Any] = []

    def work() -> None:
        snapshot("start", memory=memory, context={"user": "ü/~", "n": 1})
        memory.append({"role": "user", "content": "hi"})
        look()
        snapshot("then", memory=memory, context={"n": 1.0}, tool_results=[{"ok": True}], plan={"a/b": [1]})
        memory.clear()
        snapshot("last", memory=memory)

    run = run_with(work)

    assert run.initial_state is not None
    assert run.initial_state.value == EMPTY
    first = {**EMPTY, "context_variables": {"user": "ü/~", "n": 1}}
    then = {
        "step_number": 1,
        "iteration_count": 1,
        "memory": [{"role": "user", "content": "hi"}],
        "context_variables": {"n": 1.0},
        "tool_results": [{"ok": True}],
        "plan": {"a/b": [1]},
    }
    # json.dumps tells 1 from 1.0, which == does not.
    assert [json.dumps(state, sort_keys=True) for state in states(run)] == [
        json.dumps(state, sort_keys=True) for state in (first, then, {**then, "memory": []})
    ]
    assert broken_links(run) == []


def test_a_snapshot_is_a_step_with_its_label_where_it_was_taken():
    @recorded_tool
    def tool() -> None:
        snapshot("before cancel")

    def work() -> None:
        tool()
        snapshot()

    run = run_with(work)

    assert [(step.name, step.parent, step.extra["snapshot"]) for step in snapshots(run)] == [
        ("before cancel", 1, {"label": "before cancel", "automatic": False}),
        ("snapshot", None, {"label": None, "automatic": False}),
    ]
    assert isinstance(snapshots(run)[0].call, OtherCall)


def test_two_runs_do_not_share_their_state():
    @record
    def agent(text: str) -> None:
        snapshot(memory=[text])

    def work() -> None:
        agent("a")
        agent("b")

    one, other = (json.loads(each) for each in records_of(work))
    assert one["steps"][0]["state"] == {"after": [{"op": "add", "path": "/memory/-", "value": "a"}]}
    assert other["steps"][0]["state"] == {"after": [{"op": "add", "path": "/memory/-", "value": "b"}]}


def test_bytes_grow_with_what_is_added_and_not_with_what_is_there():
    def size(turns: int) -> int:
        def work() -> None:
            memory: list[Any] = []
            for turn in range(turns):
                memory.append({"role": "user", "content": f"message {turn:05}"})
                snapshot(memory=memory, tool_results=memory)

        return sum(len(json.dumps(step.state.after)) for step in snapshots(run_with(work)) if step.state)

    assert size(200) < 11 * size(20)


def test_what_is_redacted_is_in_no_patch_and_the_state_fits_all_the_same():
    def work() -> None:
        snapshot(memory=["sk-1", "old"], context={"sk-2": 1})
        snapshot(memory=["sk-1", "new", "memory"], context={"sk-2": 2})

    run = run_with(work, redact=mask(r"sk-\d", "memory", "new", "1"))

    assert [(state["memory"], state["context_variables"]) for state in states(run)] == [
        (["[redacted]", "old"], {"sk-2": 1}),
        (["[redacted]", "[redacted]", "[redacted]"], {"sk-2": 2}),
    ]


def test_what_is_not_given_is_as_it_was_at_the_last_snapshot():
    memory = [["a"]]

    def work() -> None:
        snapshot(memory=memory, plan="x")
        memory[0].append("b")
        snapshot(context={"n": 1})

    _, second = states(run_with(work))
    assert (second["memory"], second["plan"], second["context_variables"]) == ([["a"]], "x", {"n": 1})


def test_outside_a_run_nothing_is_recorded(tmp_path: Path):
    replay_recorder.install(spool=tmp_path)
    try:
        snapshot("nowhere", memory=[1])
    finally:
        replay_recorder.uninstall()

    assert list((tmp_path / "ready").iterdir()) == []


def test_a_state_that_is_no_json_is_kept_in_its_nearest_form():
    def work() -> None:
        snapshot(memory=[b"\x00", {1, 2}, threading.Lock])

    (state,) = states(run_with(work))
    assert state["memory"][:2] == [{"base64": "AA=="}, [1, 2]]


# --- automatic snapshots


def test_a_run_of_twelve_steps_has_automatic_snapshots_at_five_and_ten():
    memory: list[int] = []

    def work() -> None:
        for number in range(1, 13):
            memory.append(number)
            look()
            if number == 3:
                snapshot("by hand", memory=memory)

    run = run_with(work, state=lambda: {"memory": memory, "context": {"size": len(memory)}})

    said = [(step.extra["snapshot"], state_after(run, step.index)) for step in snapshots(run)]
    automatic = {"label": "automatic snapshot", "automatic": True}
    assert [(fact, state["step_number"], state["memory"][-1]) for fact, state in said] == [
        ({"label": "by hand", "automatic": False}, 3, 3),
        (automatic, 5, 5),
        (automatic, 10, 10),
    ]
    assert said[-1][1]["context_variables"] == {"size": 10}


@pytest.mark.parametrize(("every", "numbers"), [(0, []), (3, [3, 6]), (7, [7])])
def test_the_interval_is_a_setting(every: int, numbers: list[int]):
    run = run_with(lambda: [look() for _ in range(7)], state=lambda: {}, snapshot_every=every)

    assert [state["step_number"] for state in states(run)] == numbers


def test_requests_inside_of_a_tool_are_no_steps_of_the_agent():
    def reserve() -> str:
        for _ in range(3):
            with suppress(HTTPError):  # the server has nothing at this address
                urllib.request.urlopen(server.url)
        return "reserved"

    answers = (says(call("reserve", {}, "a")), says(call("reserve", {}, "b")), says("Done."))
    agent = Agent(Scripted(*answers), tools=[reserve])
    with local_server() as server:
        run = only_run_of(lambda: asyncio.run(agent.run("Two")), state=lambda: {}, snapshot_every=2, http=True)

    assert sum(isinstance(step.call, OtherCall) and step.http is not None for step in run.steps) == 4
    assert [state["step_number"] for state in states(run)] == [2, 4]


def test_without_a_way_to_get_the_state_there_are_no_snapshots():
    run = run_with(lambda: [look() for _ in range(7)])

    assert (snapshots(run), len(run.steps), run.initial_state) == ([], 7, None)


def test_a_state_that_cannot_be_had_stops_nothing_and_tools_it_calls_are_no_steps():
    answers = iter([ValueError, ValueError, None, {"memory": [1]}])  # at the start, and after each second step

    def state() -> Any:
        look()
        answer = next(answers)
        if answer is ValueError:
            raise answer
        return answer

    run = run_with(lambda: [look() for _ in range(6)], state=state, snapshot_every=2)

    assert [step.name for step in run.steps] == ["look"] * 6 + ["automatic snapshot"]
    assert states(run) == [{**EMPTY, "step_number": 6, "iteration_count": 6, "memory": [1]}]


# --- an agent that keeps its state


def order_bot() -> StatefulAgent:
    agent = StatefulAgent(object(), "OrderBot")
    agent.add_tool_result("lookup_order", {"id": "ORD-5521"}, "Found: shipped")
    agent.add_tool_result("check_eligibility", {"id": "ORD-5521"}, "Eligible for cancel")
    return agent


FIRST_TWO = [
    {"step": 1, "tool": "lookup_order", "args": {"id": "ORD-5521"}, "result": "Found: shipped"},
    {"step": 2, "tool": "check_eligibility", "args": {"id": "ORD-5521"}, "result": "Eligible for cancel"},
]


def test_restoring_goes_back_and_says_to_which_step(caplog: pytest.LogCaptureFixture):
    agent = order_bot()
    before_cancel = agent.take_snapshot("before cancel")
    agent.add_tool_result("cancel_order", {"id": "ORD-5521"}, "ERROR: already delivered")
    agent.memory.append("later")

    with caplog.at_level(logging.INFO, logger="replay_recorder"):
        said = agent.restore_snapshot(before_cancel)

    assert said == "Restored to step 2"
    assert caplog.messages == ["OrderBot: Restored to step 2"]
    assert (agent.step, agent.tool_results, agent.memory) == (2, FIRST_TWO, [])


def test_snapshots_are_listed_with_their_labels_and_share_nothing_with_the_agent():
    agent = order_bot()
    agent.memory.append({"role": "user", "parts": ["a"]})
    agent.context["cart"] = ["x"]
    kept = agent.take_snapshot("before cancel")

    agent.memory[0]["parts"].append("b")
    agent.context["cart"].append("y")
    agent.tool_results[0]["args"]["id"] = "other"
    agent.restore_snapshot(kept)
    agent.memory[0]["parts"].append("c")

    assert [each.label for each in agent.snapshots] == ["before cancel"]
    assert kept == AgentStateSnapshot(
        step_number=2,
        memory=[{"role": "user", "parts": ["a"]}],
        context_variables={"cart": ["x"]},
        tool_results=FIRST_TWO,
        iteration_count=2,
        label="before cancel",
    )


def test_a_tool_result_is_a_copy_of_what_was_given():
    agent, args = StatefulAgent(None), {"ids": [1]}
    agent.add_tool_result("tool", args, args)

    args["ids"].append(2)

    assert agent.tool_results == [{"step": 1, "tool": "tool", "args": {"ids": [1]}, "result": {"ids": [1]}}]


@pytest.mark.parametrize(("every", "steps"), [(5, [5, 10]), (4, [4, 8, 12]), (0, [])])
def test_an_agent_takes_a_snapshot_after_every_few_results(every: int, steps: list[int]):
    agent = StatefulAgent(None, snapshot_every=every)

    for number in range(12):
        agent.add_tool_result("tool", {}, number)

    assert [(each.step_number, len(each.tool_results)) for each in agent.snapshots] == [(n, n) for n in steps]


def test_a_wrong_interval_is_refused():
    with pytest.raises(ValueError, match="snapshot_every"):
        StatefulAgent(None, snapshot_every=-1)


def test_inside_a_recorded_run_the_agents_snapshots_are_recorded():
    def work() -> None:
        agent = order_bot()
        agent.context["cart"] = ["x"]
        agent.take_snapshot("before cancel")
        for _ in range(3):
            agent.add_tool_result("tool", {}, None)

    run = run_with(work)

    assert [step.extra["snapshot"] for step in snapshots(run)] == [
        {"label": "before cancel", "automatic": False},
        {"label": "automatic snapshot", "automatic": True},
    ]
    before, automatic = states(run)
    assert before == {
        "step_number": 2,
        "iteration_count": 2,
        "memory": [],
        "context_variables": {"cart": ["x"]},
        "tool_results": FIRST_TWO,
    }
    assert (automatic["step_number"], len(automatic["tool_results"])) == (5, 5)


def test_what_cannot_be_copied_is_kept_in_its_nearest_form():
    agent = StatefulAgent(None)
    agent.context["lock"] = threading.Lock()
    agent.context["n"] = 1

    kept = agent.take_snapshot()

    assert kept.context_variables["n"] == 1
    assert isinstance(kept.context_variables["lock"], str)


def test_a_snapshot_is_saved_and_loaded_whole(tmp_path: Path):
    agent = order_bot()
    agent.memory.append({"text": "ü 😀", "n": [1, 1.5, None]})
    path = tmp_path / "snapshot.json"

    for kept in (agent.take_snapshot("label"), agent.take_snapshot()):
        kept.save(path)
        assert AgentStateSnapshot.load(path) == kept

    assert set(json.loads(path.read_text())) == {
        "step_number", "memory", "context_variables", "tool_results", "iteration_count"
    }  # fmt: skip
    assert [each.name for each in tmp_path.iterdir()] == ["snapshot.json"]


@pytest.mark.parametrize("content", ["[]", "{}", '{"step_number": 1, "other": 2}', "{"])
def test_a_file_that_is_no_snapshot_is_refused_in_words(content: str, tmp_path: Path):
    path = tmp_path / "snapshot.json"
    path.write_text(content)

    with pytest.raises(ValueError, match=r"holds no snapshot|Expecting"):
        AgentStateSnapshot.load(path)


@pytest.mark.parametrize(("owner", "name"), BREAKING_POINTS)
def test_a_broken_recorder_changes_nothing(owner: type, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    times = break_at(monkeypatch, owner, name)

    @record
    def work() -> StatefulAgent:
        snapshot("by hand", memory=[1])
        agent = order_bot()
        agent.take_snapshot()
        look()
        return agent

    replay_recorder.install(spool=tmp_path, state=lambda: {}, snapshot_every=1)
    try:
        agent = work()
    finally:
        replay_recorder.uninstall()

    assert (agent.step, len(agent.snapshots)) == (2, 1)
    assert times != []


# --- JSON Patch

LEAF = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, -0.0, 1.0]) | st.text("a/~é", max_size=3)


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner | st.lists(inner, max_size=3) | st.dictionaries(st.text("a/~-0", max_size=2), inner, max_size=3)


JSON = around(around(LEAF))


@settings(deadline=None)
@given(JSON, JSON)
def test_a_patch_leads_to_the_other_value(before: Any, after: Any):
    made = apply_patch(before, diff(before, after))

    assert json.dumps(made, sort_keys=True) == json.dumps(after, sort_keys=True)
    assert diff(after, made) == []


@given(JSON, JSON)
@example(0.0, -0.0)
@example(1, True)
@example([1], [1.0])
def test_same_is_written_alike(one: Any, other: Any):
    assert same(one, other) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def test_a_list_that_grew_gives_one_operation_for_each_new_item():
    assert diff({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}, 3, 4]}) == [
        {"op": "add", "path": "/a/-", "value": 3},
        {"op": "add", "path": "/a/-", "value": 4},
    ]


def test_what_stands_in_front_or_in_the_middle_is_one_operation_too():
    assert diff([2, 3], [1, 2, 3]) == [{"op": "add", "path": "/0", "value": 1}]
    assert diff([1, 2, 3], [1, 3]) == [{"op": "remove", "path": "/1"}]


def test_a_result_that_was_taken_back_is_still_a_step_of_the_run():
    def work() -> None:
        agent = order_bot()
        before_cancel = agent.take_snapshot("before cancel")
        agent.add_tool_result("cancel_order", {"id": "ORD-5521"}, "ERROR: already delivered")
        agent.restore_snapshot(before_cancel)
        agent.add_tool_result("cancel_order", {"id": "ORD-5522"}, "cancelled")

    run = run_with(work)

    results = [(call.tool_name, call.arguments.value, call.result.value) for _, call in run.tool_calls]
    assert results == [
        ("lookup_order", {"id": "ORD-5521"}, "Found: shipped"),
        ("check_eligibility", {"id": "ORD-5521"}, "Eligible for cancel"),
        ("cancel_order", {"id": "ORD-5521"}, "ERROR: already delivered"),
        ("cancel_order", {"id": "ORD-5522"}, "cancelled"),
    ]
    assert {(step.started_at, step.duration_ms) for step, _ in run.tool_calls} == {(None, None)}


def test_a_kept_result_of_a_recorded_tool_is_no_second_step():
    @recorded_tool
    def lookup_order(id: str) -> str:
        return "Found: shipped"

    def work() -> None:
        agent = StatefulAgent(None)
        for order in ("ORD-1", "ORD-2"):
            agent.add_tool_result("lookup_order", {"id": order}, lookup_order(order))
        agent.add_tool_result("lookup_order", {"id": "ORD-3"}, "Found: by phone")

    run = run_with(work)

    assert [call.arguments.value for _, call in run.tool_calls] == [{"id": "ORD-1"}, {"id": "ORD-2"}, {"id": "ORD-3"}]
