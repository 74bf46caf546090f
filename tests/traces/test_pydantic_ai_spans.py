"""Runs as Pydantic AI's own instrumentation tells of them: what is said of each, its replay keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    Tool,
    ToolApproved,
    ToolDenied,
    ToolOutput,
)
from pydantic_ai.capabilities import Hooks, ProcessHistory
from pydantic_ai.exceptions import SkipModelRequest
from pydantic_ai.messages import ModelRequest, UserPromptPart

from sessions_app.core.assembly.run import assemble
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run
from sessions_app.core.spans.span import Attributes, Span
from tests.recorder.rare_agents import (
    approval_with_a_prompt_behind_an_earlier_one,
    bytes_in_metadata,
    hidden_tool_that_a_search_of_the_team_finds,
    hidden_tool_that_is_looked_for,
)
from tests.recorder.replaying import assert_promise_kept
from tests.recorder.scenarios import Play, Scripted, call, one_tool, says, tool_failed, values_like_bytes
from tests.traces.test_own_code import run_of_spans, spans_of_play
from tests.traces.test_promises import broken_promise

pytestmark = pytest.mark.filterwarnings("ignore:Instrumentation format versions")
VERSIONS = pytest.mark.parametrize("version", [3, 5])


def reasons(run: Run) -> list[str]:
    """Codes of what is said of it, once its replay has kept that."""
    said = judge(run)
    assert broken_promise(run, said) is None
    return [reason.code for reason in said.reasons]


# --- structured output -------------------------------------------------------------------------


class City(BaseModel):
    name: str
    people: int = 0


def stock() -> str:
    """How many are left."""
    return "12 left"


def _two_output_tools() -> Play:
    answer = says(call("city", {"name": "Rome"}, "c1"), call("number", {"response": 4}, "c2"))
    return Play(
        Agent(Scripted(answer), output_type=[ToolOutput(City, name="city"), ToolOutput(int, name="number")]), "go"
    )


def _exhaustive() -> Play:
    calls = (
        call("final_result", {"name": "A"}, "c1"),
        call("stock", {}, "c2"),
        call("final_result", {"name": "B"}, "c3"),
    )
    return Play(Agent(Scripted(says("x", *calls)), output_type=City, end_strategy="exhaustive", tools=[stock]), "go")


@VERSIONS
@pytest.mark.parametrize("make", [_two_output_tools, _exhaustive])
def test_several_outputs_in_one_answer_were_all_taken(make: Callable[[], Play], version: Any) -> None:
    run = run_of_spans(make(), version)

    assert reasons(run) == []
    assert {call.outcome for _, call in run.tool_calls} == {"success"}


def _function_that_refuses() -> Play:
    def book(city: str, guests: int) -> str:
        if guests < 2:
            raise ModelRetry("too few")
        return f"{city} for {guests}"

    first, second = (call("final_result", {"city": "Rome", "guests": guests}, f"c{guests}") for guests in (1, 2))
    return Play(Agent(Scripted(says(first), says(second)), output_type=book), "go")


def _function_that_asks_an_agent() -> Play:
    inner = Agent(Scripted(says("Rome it is.")), name="inner")

    async def ask(question: str) -> str:
        return (await inner.run(question)).output

    return Play(Agent(Scripted(says(call("final_result", {"question": "Where?"}, "c1"))), output_type=ask), "go")


@VERSIONS
@pytest.mark.parametrize("make", [_function_that_refuses, _function_that_asks_an_agent])
def test_an_output_function_does_not_run_and_what_it_made_is_no_answer_to_its_call(
    make: Callable[[], Play], version: Any
) -> None:
    run = run_of_spans(make(), version)
    last = [call for _, call in run.tool_calls][-1]

    assert reasons(run) == ["output_function"]
    assert (last.outcome, last.result and last.result.value) == ("success", "Final result processed.")


# --- runs that go on from an earlier one -------------------------------------------------------


def _paying(*answers: Any) -> Agent[None, Any]:
    agent = Agent(Scripted(*answers), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(order: str) -> str:
        if order == "B":
            raise ModelRetry("Not B.")
        return f"paid {order}"

    agent.tool_plain(stock)
    return agent


def _resumed(*asked: Any, prompt: str | None = None, answers: Sequence[Any] = (says("Done."),), **decided: Any) -> Play:
    history = asyncio.run(_paying(says(*asked)).run("Pay")).all_messages()
    results = DeferredToolResults(approvals=decided)
    return Play(_paying(*answers), prompt, message_history=history, deferred_tool_results=results)


PAY, PAY_B, LOOK = call("pay", {"order": "A"}, "a"), call("pay", {"order": "B"}, "b"), call("stock", {}, "l")
RESUMED: dict[str, Callable[[], Play]] = {
    "approved": lambda: _resumed(PAY, a=True),
    "with a prompt": lambda: _resumed(PAY, prompt="And hurry", a=True),
    "with other arguments": lambda: _resumed(PAY, a=ToolApproved(override_args={"order": "C"})),
    "one denied": lambda: _resumed(PAY, PAY_B, a=True, b=ToolDenied("No.")),
    "beside a call that was made before": lambda: _resumed(PAY, LOOK, prompt="And hurry", a=True),
    "asks again": lambda: _resumed(PAY_B, answers=[says(call("stock", {}, "l")), says("Done.")], b=True),
    "its own calls behind": lambda: _resumed(PAY, LOOK, answers=[says(call("stock", {}, "m")), says("Done.")], a=True),
    "behind an earlier approval": approval_with_a_prompt_behind_an_earlier_one,
}


@VERSIONS
@pytest.mark.parametrize("make", RESUMED.values(), ids=RESUMED)
def test_a_run_that_goes_on_from_an_approval_is_reproduced(make: Callable[[], Play], version: Any) -> None:
    assert reasons(run_of_spans(make(), version)) == []


@VERSIONS
def test_a_run_that_makes_the_open_calls_of_its_history_is_reproduced(version: Any) -> None:
    agent = Agent(Scripted(says("Done.")), tools=[stock])
    history = [ModelRequest.user_text_prompt("go"), says(call("stock", {}, "c"))]

    assert reasons(run_of_spans(Play(agent, None, message_history=history), version)) == []


def test_a_call_whose_answer_was_lost_is_none_that_an_earlier_run_left_open() -> None:
    agent = Agent(Scripted(says(call("stock", {}, "c")), says("Done.")), tools=[stock])
    history = [ModelRequest.user_text_prompt("go"), says("Gone.")]
    spans = spans_of_play(Play(agent, "again", message_history=history))
    first = min((span for span in spans if span.name.startswith("chat")), key=lambda span: span.start_ns or 0)

    run = assemble([span for span in spans if span is not first], is_closed=True)

    assert reasons(run) == ["model_answer_missing"]
    assert run.deferred is None


WAITING: dict[str, Callable[[], Play]] = {
    "two approvals": lambda: Play(_paying(says(PAY, PAY_B)), "go"),
    "beside a call that was made": lambda: Play(_paying(says("Let me see.", LOOK, PAY)), "go"),
    "behind a call that was made": lambda: Play(_paying(says(LOOK), says(PAY)), "go"),
}


@VERSIONS
@pytest.mark.parametrize("make", WAITING.values(), ids=WAITING)
def test_a_run_that_ends_waiting_for_an_approval_has_open_calls_and_no_output(
    make: Callable[[], Play], version: Any
) -> None:
    run = run_of_spans(make(), version)

    assert reasons(run) == []
    assert {call.outcome for _, call in run.tool_calls if call.tool_name == "pay"} == {"unapproved"}
    assert (run.status, run.output) == ("cut_off", None)


@VERSIONS
@pytest.mark.parametrize("value", [[1, 2, 3], True, 1.5, 7])
def test_an_output_that_is_no_object_is_what_the_model_returned(value: Any, version: Any) -> None:
    answer = says(call("final_result", {"response": value}, "c"))
    kind: Any = list[int] if isinstance(value, list) else type(value)

    assert reasons(run_of_spans(Play(Agent(Scripted(answer), output_type=kind), "go"), version)) == []


# --- what spans tell of a run as a whole -------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("prompt", [None, "You sell."])
def test_instructions_that_differ_by_request_are_no_contradiction(prompt: str | None, version: Any) -> None:
    model = Scripted(says(call("stock", {}, "c")), says("Done."))
    instructions: Any = ["Be brief.", lambda context: f"Step {context.run_step}."]
    agent = Agent(model, instructions=instructions, system_prompt=prompt or (), tools=[stock])

    run = run_of_spans(Play(agent, "go"), version)

    assert reasons(run) == []
    assert "Step 1." in str(run.instructions)


def test_a_run_that_tells_of_instructions_that_no_request_had_is_contradicted() -> None:
    model = Scripted(says(call("stock", {}, "c")), says("Done."))
    agent = Agent(model, instructions=lambda context: f"Step {context.run_step}.", tools=[stock])
    *inner, root = spans_of_play(Play(agent, "go"))
    told = str(root.attributes["gen_ai.system_instructions"]).replace("Step", "Place")
    other = replace(root, attributes={**root.attributes, "gen_ai.system_instructions": told})

    assert reasons(assemble([*inner, other], is_closed=True)) == ["instructions_contradicted"]


@VERSIONS
def test_an_answer_of_the_teams_own_code_is_no_error(version: Any) -> None:
    skipping = Hooks[None]()

    @skipping.on.before_model_request
    async def from_cache(context: Any, request_context: Any) -> Any:
        if context.run_step > 1:
            raise SkipModelRequest(says("cached"))
        return request_context

    agent = Agent(Scripted(says(call("stock", {}, "c"))), tools=[stock], capabilities=[skipping])

    assert reasons(run_of_spans(Play(agent, "go"), version)) == ["model_answer_missing"]


@VERSIONS
@pytest.mark.parametrize("make", [bytes_in_metadata, values_like_bytes])
def test_what_a_tool_returned_beside_its_answer_is_no_contradiction(make: Callable[[], Play], version: Any) -> None:
    assert reasons(run_of_spans(make(), version)) == []


# --- hidden tools ------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("make", [hidden_tool_that_is_looked_for, hidden_tool_that_a_search_of_the_team_finds])
def test_a_hidden_tool_that_a_search_found_is_told_by_the_searchs_answer_alone(
    make: Callable[[], Play], version: Any
) -> None:
    assert reasons(run_of_spans(make(), version)) == []


# --- a tool with an answer and an error ----------------------------------------------------------


@VERSIONS
def test_a_tool_whose_span_has_an_answer_and_an_error_is_contradicted(version: Any) -> None:
    for make in (one_tool, tool_failed):
        spans = [_failed(span) for span in spans_of_play(make(), version)]

        assert reasons(assemble(spans, is_closed=True)) == ["answer_contradicted"]


def _failed(span: Span) -> Span:
    is_tool = span.name.startswith(("execute_tool", "running tool"))
    return replace(span, status="error", status_message="No room left.") if is_tool else span


def _refused_by(tool: Callable[[Any], str]) -> Play:
    calls = [says(call("count", {"people": each}, f"c{each}")) for each in ("many", "3")]
    return Play(Agent(Scripted(*calls, says("Done.")), tools=[Tool(tool, name="count")], retries=2), "go")


def _with_a_schema(people: int) -> str:
    return str(people)


def _raising_the_same(people: str) -> str:
    return City.model_validate({"name": "Rome", "people": people}).name


@VERSIONS
@pytest.mark.parametrize("tool", [_with_a_schema, _raising_the_same])
@pytest.mark.parametrize("words", ["1 validation error", "Input should be a valid integer", "type=int_parsing"])
def test_the_exception_of_a_refused_call_says_what_the_model_was_told(tool: Any, words: str, version: Any) -> None:
    spans = spans_of_play(_refused_by(tool), version)
    changed = [_with_exceptions(span, lambda said: str(said).replace(words, "forged")) for span in spans]

    assert reasons(assemble(spans, is_closed=True)) == []
    assert reasons(assemble(changed, is_closed=True)) == ["answer_contradicted"]


def _with_exceptions(span: Span, change: Callable[[Any], str]) -> Span:
    events = [
        replace(event, attributes={name: change(value) for name, value in event.attributes.items()})
        for event in span.events
    ]
    return replace(span, events=tuple(events))


# --- answers that can be read only once ----------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("returned", [lambda rows: rows, lambda rows: {"rows": [rows, 1], "count": 3}])
def test_a_replay_ends_behind_an_answer_of_which_its_span_left_nothing(returned: Any, version: Any) -> None:
    agent = Agent(Scripted(says(call("rows", {}, "c1")), says("Done.")))

    @agent.tool_plain
    def rows() -> Any:
        return returned(row for row in range(3))

    spans = spans_of_play(Play(agent, "go"), version)
    other = [replace(span, attributes=_without_a_row(span)) for span in spans]

    run, changed = (assemble(each, is_closed=True) for each in (spans, other))

    assert assert_promise_kept(encode_native(run)).reasons[0].code == "answer_read_once"
    assert reasons(changed) == ["answer_contradicted"]


def _without_a_row(span: Span) -> Attributes:
    """Requests that tell of other values than the tool's span, and not of none."""
    told = span.attributes.items() if not span.name.startswith(("execute_tool", "running tool")) else ()
    messages = ((name, str(value)) for name, value in told if name.endswith("messages"))
    return {**span.attributes, **{name: value.replace("[]", "[9]") for name, value in messages}}


# --- other agents that code asks for a summary ---------------------------------------------------


def _summed_up() -> Play:
    writer = Agent(Scripted(says("seen twice")), name="writer")

    async def sum_up(messages: list[Any]) -> list[Any]:
        if len(messages) < 5:
            return messages
        words = (await writer.run("Sum up.")).output
        return [ModelRequest(parts=[UserPromptPart(f"So far: {words}")]), *messages[-2:]]

    calls = [says(call("stock", {}, f"c{number}")) for number in (1, 2)]
    agent = Agent(Scripted(*calls, says("Done.")), name="main", tools=[stock], capabilities=[ProcessHistory(sum_up)])
    return Play(agent, "Look twice.")


@VERSIONS
def test_an_agent_that_sums_up_the_history_is_none_of_the_loop(version: Any) -> None:
    run = run_of_spans(_summed_up(), version)

    assert reasons(run) == []
    assert (run.input and run.input.value, run.output and run.output.value) == ("Look twice.", "Done.")


@VERSIONS
@pytest.mark.parametrize(("told", "code"), [("So far", "input_contradicts"), ("Done", "output_made_by_code")])
def test_what_the_run_s_own_span_tells_otherwise_of_a_summed_up_history_is_seen(
    told: str, code: str, version: Any
) -> None:
    *inner, root = spans_of_play(_summed_up(), version)
    other = {name: str(value).replace(told, "Forged") for name, value in root.attributes.items()}

    assert reasons(assemble([*inner, replace(root, attributes=other)], is_closed=True)) == [code]
