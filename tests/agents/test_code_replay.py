"""A team's own agent with the recorded answers: what is equal, and where today's code goes another way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, ProcessHistory
from pydantic_ai.exceptions import ModelRetry, SkipToolExecution, ToolFailed
from pydantic_ai.messages import ModelRequest, SystemPromptPart
from pydantic_ai.models.test import TestModel

from sessions_app.agents.own_code.registry import CannotLoadAgent, OwnAgent, load_agent
from sessions_app.core.fork.order import Breakpoint, Course
from sessions_app.core.fork.stops import Stops
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.registrations import read_registrations
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.produce import produced_run
from sessions_app.core.run import Run
from sessions_app.examples import agents as registered_agents
from tests.agents.own_agents import own, place, recorded_run, replayed_by
from tests.recorder import scenarios
from tests.recorder.replaying import assert_same_run
from tests.recorder.scenarios import SCENARIOS, Play, Scenario, Scripted, call, output_function_crash, says

STREAMED = (
    *(scenarios.parallel_tools, scenarios.validation_errors, scenarios.output_tool_retry, scenarios.tool_failed),
    *(scenarios.text_beside_a_call, scenarios.multimodal_tool_results, scenarios.output_validator_retry),
)


def example_run(name: str) -> Run:
    return parse_native(Path(f"sessions_app/examples/{name}.json").read_bytes())


def with_example(run: str, target: str) -> Result:
    return replayed_by(example_run(run), load_agent(f"sessions_app.examples.agents:{target}"))


# --- the same code gives the same run


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_recorded_agent_gives_the_recorded_run(scenario: Scenario):
    assert_same(scenario.make, "run")


@pytest.mark.parametrize("way", ["run_stream", "run_stream_events", "iter"])
@pytest.mark.parametrize("make", STREAMED, ids=lambda make: make.__name__)
def test_the_recorded_agent_gives_the_recorded_run_however_it_was_started(make: Callable[[], Play], way: str):
    assert_same(make, way)


def assert_same(make: Callable[[], Play], way: str) -> None:
    run = recorded_run(make, way)
    result = replayed_by(run, own(make()))
    if make is output_function_crash:
        assert place(result)[:2] == ("fixture_missing", 2)
        return
    if run.agent.output_function is not None:
        assert place(result)[:2] == ("unknown_from_step", len(run.steps) + 1)
        return

    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)
    assert set(result.facts["sources"]) <= {"recorded"}
    assert result.observations is not None
    again = produced_run(run, result.observations, run_id="again")
    assert_same_run(run, again)


# --- recordings that cannot be read, or tell a thing in two ways


def two_tools() -> Play:
    tools = [Tool(lambda: "seen", name="look"), Tool(lambda: "", name="unused")]
    return Play(Agent(Scripted(says(call("look", {}, "1")), says("Done.")), name="agent", tools=tools), "Look.")


UNKNOWN_PART = {"part_kind": "hologram", "content": "x"}


@pytest.mark.parametrize("runs_tools", [False, True])
@pytest.mark.parametrize("name", ["request", "response"])
def test_a_message_that_cannot_be_read_ends_a_replay_of_code_where_the_verdict_says(name: str, runs_tools: bool):
    run = recorded_run(scenarios.parallel_tools)
    record = json.loads(encode_native(run))
    last = max(index for index, step in enumerate(record["steps"], start=1) if step["kind"] == "model")
    step = record["steps"][last - 1]
    message = step["response"] if name == "response" else step["request"]["messages"][0]
    message["parts"].append(UNKNOWN_PART)
    changed = parse_native(json.dumps(record).encode())

    today = own(scenarios.parallel_tools())
    result = replayed_by(changed, today, runs_tools=runs_tools)

    assert (judge(changed).verdict, judge(changed).step) == ("replayable_to_step", last - 1)
    assert place(result)[:2] == ("unknown_from_step", last)
    assert place(replayed_by(run, own(scenarios.parallel_tools()), runs_tools=runs_tools))[0] == "reproduced"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("description", "FORGED", "define unused in two ways"),
        ("parameters_json_schema", {"type": "object"}, "define unused in two ways"),
        ("name", "forged", "lack unused, which its parameters have"),
        ("sequential", False, None),
    ],
)
def test_tools_told_in_two_ways_are_named_in_the_verdict_and_not_proven_by_code(
    name: str, value: Any, words: str | None
):
    record = json.loads(encode_native(recorded_run(two_tools)))
    place_of_unused = [tool["name"] for tool in record["tools"]].index("unused")
    record["tools"][place_of_unused][name] = value

    changed = parse_native(json.dumps(record).encode())
    result, judged = replayed_by(changed, own(two_tools())), judge(changed)

    if words is None:
        parameters = result.facts["proof"]["parameters"]
        assert (judged.verdict, result.verdict, parameters["state"]) == ("replayable", "reproduced", "proven")
        return
    assert [(judged.verdict, reason.code) for reason in judged.reasons] == [("cold", "tools_contradicted")]
    assert words in judged.words
    assert result.verdict == "could_not_run"


# --- tools that another tool makes available


def unlocking(*, by: str = "look") -> Play:
    """A tool of this name makes `more` available."""
    unlocked: list[str] = []
    model = Scripted(says(call("look", {}, "1")), says(call("more", {}, "2")), says("Done."))

    async def if_unlocked(ctx: Any, definition: Any) -> Any:
        return definition if unlocked else None

    agent = Agent(model, name="agent", tools=[Tool(lambda: "", name="more", prepare=if_unlocked)])

    @agent.tool_plain
    def look() -> str:
        unlocked.extend(["more"] if by == "look" else [])
        return "seen"

    return Play(agent, "Look.")


def test_a_frozen_tool_that_made_another_available_is_why_a_replay_ends_and_no_difference():
    run = recorded_run(unlocking)

    frozen = replayed_by(run, own(unlocking()))
    assert place(frozen) == ("unknown_from_step", 3, "steps[3]")
    assert frozen.facts["limit"]["code"] == "tool_not_run"
    assert "other tools than the one before it: more. A call in between" in frozen.facts["limit"]["reason"]
    assert place(replayed_by(run, own(unlocking()), runs_tools=True)) == ("reproduced", None, None)
    changed = place(replayed_by(run, own(unlocking(by="nobody")), runs_tools=True))
    assert changed[:2] == ("diverged", 3)


# --- what code made of what another tool wrote


def noting(way: str, *, words: str = "Notes", notes: str = "one") -> Play:
    """A tool that writes into what the agent's code reads, to make its instructions, tools, settings or history."""
    kept: list[str] = []

    def told() -> str:
        return f"{words}: {', '.join(kept)}"

    async def described(ctx: Any, definition: Any) -> Any:
        return replace(definition, description=told())

    def before(messages: list[Any]) -> list[Any]:
        return [ModelRequest(parts=[SystemPromptPart(told())]), *messages]

    more: dict[str, Any] = {
        "instructions": {"instructions": told},
        "tools": {"tools": [Tool(lambda: "", name="more", prepare=described)]},
        "settings": {"model_settings": lambda ctx: {"stop_sequences": [told()]}},
        "history": {"capabilities": [ProcessHistory(before)]},
    }
    agent = Agent(Scripted(says(call("note", {}, "1")), says("Done.")), name="agent", **more[way])

    @agent.tool_plain
    def note() -> None:
        kept.append(notes)

    return Play(agent, "Note it.")


NOTING = pytest.mark.parametrize("way", ["instructions", "tools", "settings", "history"])


@NOTING
def test_code_that_reads_what_a_frozen_tool_would_have_written_is_no_difference(way: str):
    run = recorded_run(lambda: noting(way))

    result = replayed_by(run, own(noting(way)))

    assert place(result) == ("unknown_from_step", 3, "steps[3]")
    assert result.facts["limit"]["code"] == "tool_not_run"
    assert "A call in between may have changed that (note), and no tool ran" in result.facts["limit"]["reason"]
    assert place(replayed_by(run, own(noting(way)), runs_tools=True)) == ("reproduced", None, None)


@NOTING
@pytest.mark.parametrize(
    ("changed", "frozen"), [({"words": "Seen"}, "diverged"), ({"notes": "1"}, "unknown_from_step")]
)
def test_code_that_was_changed_and_reads_what_a_tool_writes_is_a_difference(
    way: str, changed: dict[str, str], frozen: str
):
    run = recorded_run(lambda: noting(way))

    assert place(replayed_by(run, own(noting(way, **changed))))[:2] == (frozen, 1 if "words" in changed else 3)
    assert place(replayed_by(run, own(noting(way, **changed)), runs_tools=True))[0] == "diverged"


def late(*, words: str = "Be brief.", kept: int = 2) -> Play:
    """Code that reads nothing that tools write, with words and a history that may be others behind a call."""

    def cut(messages: list[Any]) -> list[Any]:
        return [messages[0], *messages[-kept:]] if len(messages) > 4 else messages

    looks = [says(call("look", {}, each)) for each in "12"]
    tools = [Tool(lambda: "seen", name="look")]
    agent = Agent(Scripted(*looks, says("Done.")), name="agent", tools=tools, capabilities=[ProcessHistory(cut)])

    @agent.instructions
    def brief(ctx: RunContext) -> str:
        return "Be brief." if ctx.run_step == 1 else words

    return Play(agent, "Look.")


def test_what_no_tool_can_have_changed_is_a_difference_behind_a_frozen_tool_as_well():
    run = recorded_run(late)

    assert place(replayed_by(run, own(late()))) == ("reproduced", None, None)
    assert place(replayed_by(run, own(late(words="Be terse.")))) == ("diverged", 3, "messages[2].instructions")
    assert place(replayed_by(run, own(late(kept=4))))[:2] == ("diverged", 5)


def test_a_tool_that_was_always_there_and_is_gone_today_is_a_difference_while_tools_are_frozen():
    today = Agent(name="agent", tools=[Tool(lambda: "seen", name="look")])

    assert place(replayed_by(recorded_run(two_tools), OwnAgent(agent=today)))[:2] == ("diverged", 1)


# --- the examples of a fresh installation


def test_the_order_desk_is_the_recorded_one():
    assert place(with_example("cancel_bug", "order_desk")) == ("reproduced", None, None)


def test_the_repaired_order_desk_refuses_at_the_tool_that_cancelled(monkeypatch):
    monkeypatch.setattr(registered_agents, "cancelled", [])  # others may have run the tools of the examples here
    result = with_example("cancel_bug", "order_desk_fixed")

    assert place(result) == ("diverged", 4, "result")
    assert result.divergence.recorded == "Order ORD-5521 cancelled. Reason: changed my mind"
    assert result.divergence.replayed == "Order ORD-5521 is not eligible for cancellation (status: delivered)."
    assert result.facts["stopped_before"] == 5  # what the model says to this nobody knows
    assert registered_agents.cancelled == []
    assert registered_agents.orders["ORD-5521"]["status"] == "delivered"


def test_the_repaired_assistant_says_by_itself_that_it_found_nothing():
    run = example_run("run_xyz789")
    result = with_example("run_xyz789", "v2_with_empty_check")

    assert place(result) == ("diverged", 3, "response")
    assert result.facts["sources"] == {"recorded": 2, "own_code": 1}
    assert result.observations is not None
    made = produced_run(run, result.observations, run_id="again")
    assert [step.kind for step in made.steps] == ["model", "tool", "model"]
    assert made.output.value == "I don't have any documents about refund policy. Please check with support."


def test_the_agents_of_the_examples_say_which_tools_only_read(capsys: pytest.CaptureFixture[str]):
    registered_agents.main()

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "order_desk: lookup_order (read), cancel_order (write)"
    assert lines[3] == "v2_with_empty_check: search_docs (read)"


# --- where the code differs


def agent_with(*, instructions: str = "You help customers.", **arguments: Any) -> OwnAgent:
    agent = Agent(Scripted(), instructions=instructions, name="agent", **arguments)

    @agent.tool_plain(retries=2)
    def lookup_order(order_id: str) -> dict[str, Any]:
        """Find one order by its id."""
        raise AssertionError("the tool itself ran")

    return OwnAgent(agent=agent)


def looked_up() -> Play:
    agent = Agent(
        Scripted(says(call("lookup_order", {"order_id": "ORD-1"}, "a")), says("Shipped.")),
        instructions="You help customers.",
        name="agent",
    )

    @agent.tool_plain(retries=2)
    def lookup_order(order_id: str) -> dict[str, Any]:
        """Find one order by its id."""
        return {"id": order_id, "status": "shipped"}

    return Play(agent, "Where?")


@pytest.fixture(scope="module")
def run() -> Run:
    """1 model, 2 lookup_order, 3 model."""
    return recorded_run(looked_up)


def with_another_tool() -> OwnAgent:
    changed = agent_with()
    changed.agent.tool_plain(name="extra")(lambda: "x")
    return changed


OTHER_REQUESTS = [
    (lambda: agent_with(instructions="You are terse."), "messages[0].instructions"),
    (with_another_tool, "parameters.function_tools[1]"),
]


@pytest.mark.parametrize(("make", "path"), OTHER_REQUESTS, ids=["prompt", "tools"])
def test_another_request_has_no_answer(run: Run, make: Callable[[], OwnAgent], path: str):
    result = replayed_by(run, make())

    assert place(result) == ("diverged", 1, path)
    assert result.facts["stopped_before"] == 1
    assert result.facts["sources"] == {"unknown": 1}
    assert result.observations.output is None


@pytest.mark.parametrize(("make", "path"), OTHER_REQUESTS, ids=["prompt", "tools"])
def test_a_replay_that_plays_on_says_that_the_answers_are_for_another_request(
    run: Run, make: Callable[[], OwnAgent], path: str
):
    result = replayed_by(run, make(), on_difference="play_on")

    assert place(result) == ("diverged", 1, path)
    assert result.facts["stopped_before"] is None
    assert result.facts["sources"] == {"recorded_for_another_request": 3}
    assert result.observations is not None
    assert result.observations.output.value == "Shipped."
    made = produced_run(run, result.observations, run_id="again")
    assert {step.source for step in made.steps} == {"recorded_for_another_request"}


def test_playing_on_changes_nothing_where_the_requests_are_the_recorded_ones(run: Run):
    result = replayed_by(run, agent_with(), on_difference="play_on")

    assert place(result) == ("reproduced", None, None)
    assert result.facts["sources"] == {"recorded": 3}


def test_what_the_code_does_otherwise_is_the_first_difference_where_it_comes_first(run: Run):
    guarded = agent_with(capabilities=[Guard(ModelRetry("No."))])
    terse = agent_with(instructions="You are terse.", capabilities=[Guard(ModelRetry("No."))])

    assert place(replayed_by(run, guarded, on_difference="play_on")) == ("diverged", 2, "result")
    result = replayed_by(run, terse, on_difference="play_on")
    assert place(result) == ("diverged", 1, "messages[0].instructions")
    assert result.facts["own_code"][0]["now"] == "No."


def test_a_tool_that_is_gone_stops_where_the_model_is_told(run: Run):
    gone = OwnAgent(agent=Agent(Scripted(), instructions="You help customers.", name="agent"))

    assert place(replayed_by(run, gone)) == ("diverged", 1, "parameters.function_tools[0]")


class Guard(AbstractCapability[Any]):
    """The team's own check, which stands inside of ours."""

    def __init__(self, outcome: Exception) -> None:
        self._outcome = outcome

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        raise self._outcome


@pytest.mark.parametrize(
    ("outcome", "path", "now"),
    [
        (ModelRetry("Not today."), "result", "Not today."),
        (ToolFailed("Closed."), "result", "Closed."),
        (SkipToolExecution({"id": "ORD-1", "status": "lost"}), "result.status", {"id": "ORD-1", "status": "lost"}),
        (KeyError("order"), "result", "KeyError: 'order'"),
    ],
    ids=["retry", "failed", "answered", "crash"],
)
def test_a_check_around_a_tool_decides_as_it_does_in_the_team_s_own_runs(
    run: Run, outcome: Exception, path: str, now: Any
):
    result = replayed_by(run, agent_with(capabilities=[Guard(outcome)]))

    assert place(result) == ("diverged", 2, path)
    act = result.facts["own_code"][0]
    assert (act["name"], act["recorded"], act["now"]) == ("lookup_order", {"id": "ORD-1", "status": "shipped"}, now)


def test_a_check_that_answers_the_same_keeps_the_tool_from_running(run: Run):
    same = SkipToolExecution({"id": "ORD-1", "status": "shipped"})

    result = replayed_by(run, agent_with(capabilities=[Guard(same)]))

    assert place(result) == ("diverged", 2, "tool_ran")
    assert result.facts["sources"] == {"recorded": 2, "own_code": 1}


class Says(AbstractCapability[Any]):
    """Answers in the model's place after a tool."""

    def __init__(self, words: str) -> None:
        self._words = words

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return says(self._words) if len(request_context.messages) > 1 else await handler(request_context)


@pytest.mark.parametrize(("words", "where"), [("Shipped.", (3, "messages[3].model_id")), ("Lost.", (3, "response"))])
def test_code_that_answers_for_the_model_is_compared_with_what_the_model_said(run: Run, words: str, where: Any):
    """The same words differ in who said them."""
    result = replayed_by(run, agent_with(capabilities=[Says(words)]))

    assert place(result) == ("diverged", *where)
    assert result.facts["sources"] == {"recorded": 2, "own_code": 1}
    assert [request.source for request in result.observations.requests] == ["recorded", "own_code"]


def test_arguments_that_pass_today_have_no_answer():
    run = recorded_run(scenarios.validation_errors)
    made = scenarios.validation_errors()
    agent = Agent(Scripted(), instructions="You help customers.", name="agent")
    for name, tool in made.agent._function_toolset.tools.items():
        if name != "search":
            agent._function_toolset.tools[name] = tool

    @agent.tool_plain(retries=3)
    def search(query: str, limit: int = 5) -> list[str]:
        """Search orders."""
        raise AssertionError("the tool itself ran")

    result = replayed_by(run, OwnAgent(agent=agent), on_difference="play_on")

    assert place(result) == ("diverged", 1, "parameters.function_tools[1].name")  # the tools stand in another order
    assert result.facts["own_code"][0]["now"] == "the arguments are accepted now"


def test_a_run_without_model_answers_cannot_run(run: Run):
    result = replayed_by(replace(run, steps=()), agent_with())

    words = "Only the final output was saved: no messages, no steps."
    assert (result.verdict, result.error) == ("could_not_run", words)


# --- what is registered


def test_registrations_are_read():
    found = read_registrations("a=pkg.mod:agent,  b-2 = x:make ,")

    assert found == {"a": "pkg.mod:agent", "b-2": "x:make"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "'a' is not of the form name=package.module:attribute"),
        ("a=mod", "'a=mod' is not of the form"),
        ("a=mod:b:c", "'a=mod:b:c' is not of the form"),
        ("a=__import__('os'):x", "is not of the form"),
        ("a=m:x, a=m:y", "'a' is registered twice"),
    ],
)
def test_a_registration_that_cannot_be_is_named(text: str, words: str):
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)")):
        read_registrations(text)


def test_an_agent_may_come_with_what_it_is_run_with():
    loaded = load_agent("tests.agents.test_code_replay:with_everything")

    assert (loaded.deps, loaded.arguments) == ({"tenant": "t"}, {"output_type": int})


def with_everything() -> tuple[Any, Any, dict[str, Any]]:
    return Agent(Scripted()), {"tenant": "t"}, {"output_type": int}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("tests.agents.test_code_replay:place_of_nothing", "the module has no 'place_of_nothing'"),
        ("sessions_app.examples.agents:MODEL", "'MODEL' is no agent of Pydantic AI or the OpenAI Agents SDK but str"),
    ],
)
def test_what_is_no_agent_is_refused(target: str, words: str):
    with pytest.raises(CannotLoadAgent, match=words):
        load_agent(target)


# --- what else a team's code may bring


class Outermost(AbstractCapability[Any]):
    """Wants to stand outside of everything, as recorders do."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)


class AnotherModel(AbstractCapability[Any]):
    """Chooses the model for each request."""

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        request_context.model = TestModel()
        return request_context


class WrappedModel(AbstractCapability[Any]):
    def get_wrapper_model(self, model: Any) -> Any:
        return TestModel()


def test_no_capability_of_the_team_s_gets_around_the_recording(run: Run):
    assert place(replayed_by(run, agent_with(capabilities=[Outermost()]))) == ("reproduced", None, None)


@pytest.mark.parametrize("capability", [AnotherModel, WrappedModel])
def test_a_capability_that_chooses_another_model_is_another_request(
    run: Run, capability: type[AbstractCapability[Any]]
):
    result = replayed_by(run, agent_with(capabilities=[capability()]), on_difference="play_on")

    assert place(result) == ("diverged", 1, "model")
    assert (result.divergence.recorded, result.divergence.replayed) == ("scripted-1", "test")
    assert set(result.facts["sources"]) == {"recorded_for_another_request"}


def test_an_error_of_today_that_keeps_calls_from_being_made_is_the_first_difference():
    """Beside the output a tool would have been asked, whose recorded answer is left over."""

    def output_beside_a_call() -> Play:
        output, beside = call("final_result", {"response": ["x"]}, "o"), call("lookup_order", {"order_id": "1"}, "b")
        more: Any = {"output_type": list[str], "end_strategy": "graceful", "toolsets": looked_up().agent.toolsets}
        script = Scripted(says(output, beside))
        return Play(Agent(script, instructions="You help customers.", name="agent", **more), "Where?")

    today = agent_with(output_type=list[str], end_strategy="graceful")

    @today.agent.output_validator
    def refuses(output: list[str]) -> list[str]:
        raise ValueError("boom")

    result = replayed_by(recorded_run(output_beside_a_call), today)

    found = result.divergence
    assert (result.verdict, found and (found.step, found.path)) == ("diverged", (2, "error"))
    assert found is not None
    assert found.replayed == {"type": "ValueError", "message": "boom"}
    assert result.facts["left_over"] == [3]


def test_an_error_before_the_first_request_is_no_difference(run: Run):
    """As from an agent that refuses capabilities, or from dependencies that are not there."""
    made = agent_with()

    @made.agent.instructions
    def broken(ctx: Any) -> str:
        return str(ctx.deps.tenant)

    result = replayed_by(run, made)

    assert (result.verdict, result.divergence) == ("could_not_run", None)
    assert result.error == "AttributeError: 'NoneType' object has no attribute 'tenant'"


def test_dependencies_and_arguments_of_its_run_are_given(run: Run):
    made = agent_with()
    seen: list[Any] = []

    @made.agent.instructions
    def look(ctx: Any) -> str:
        seen.append((ctx.deps, ctx.metadata))
        return ""

    replayed_by(run, replace(made, deps={"tenant": "t"}, arguments={"metadata": {"a": 1}}))

    assert seen[0] == ({"tenant": "t"}, {"a": 1})


def test_a_replay_pauses_and_goes_on_from_its_beginning(run: Run):
    stops = Stops((Breakpoint(tool="lookup_order"),), Course())
    passed = Stops((Breakpoint(tool="lookup_order"),), Course(passed=2))

    paused = replayed_by(run, agent_with(), stops=stops)
    result = replayed_by(run, agent_with(), stops=passed)

    assert (paused.verdict, paused.stopped["at"], paused.stopped["step"]) == ("paused", 2, 2)
    assert paused.facts["sources"] == {"recorded": 1}
    assert place(result) == ("reproduced", None, None)


def test_the_clock_stands_at_the_recorded_times(run: Run):
    made = agent_with()
    seen: list[datetime] = []

    @made.agent.instructions
    def now() -> str:
        seen.append(datetime.now(UTC))
        return ""

    replayed_by(run, made)

    assert seen[0] == run.started_at
    assert seen[-1] == run.steps[1].started_at  # the last answer before the second request was that of step 2


@pytest.mark.parametrize(
    ("instructions", "requests"),
    [
        (None, ("proven", None)),
        ("NEVER cancel.", ("not_comparable", "the requests agree; instructions were not recorded")),
    ],
    ids=["none", "other"],
)
def test_instructions_that_a_saved_session_does_not_hold_are_not_proven(instructions: str | None, requests: Any):
    saved = {
        "session_id": "abc123",
        "timestamp": "2026-02-17T14:23:01Z",
        "user_input": "Hi",
        "final_output": "Hello.",
        "messages": [
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]},
            {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello."}]},
        ],
    }
    run = parse_document(json.dumps(saved).encode())
    assert isinstance(run, Run)

    result = replayed_by(run, own(Play(Agent(Scripted(says("-")), instructions=instructions), "Hi")))

    said = result.facts["proof"]["requests"]
    assert (result.verdict, (said["state"], said.get("reason"))) == ("reproduced", requests)
