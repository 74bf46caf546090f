"""Runs of LangChain and LangGraph, recorded by `install()` alone: replayable, and reproduced."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypedDict

import pytest

pytest.importorskip("langchain_openai", reason="langchain and langchain-openai are not installed here")
pytest.importorskip("langgraph.prebuilt", reason="langgraph is not installed here")

import replay_recorder
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import Payload
from sessions_app.core.run import ModelCall, Retrieval, Run, ToolCall
from sessions_app.core.sessions.contradictions import find_contradictions
from tests.agents.forking import forked, sources
from tests.fake_provider import busy, fake_provider, in_turn, of_json, says
from tests.recorder import graphs
from tests.recorder.local_server import Answer
from tests.recorder.recordings import records_of, value
from tests.recorder.replaying import assert_promise_kept, replayed

ASKED = "Where is ORD-5521?"
ANSWER = "It was delivered."


def asks(*wanted: tuple[str, dict[str, Any]], start: int = 1, words: str | None = None) -> Answer:
    """An answer that asks for several calls."""
    calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(wanted, start=start)
    ]
    message = {"role": "assistant", "content": words, "tool_calls": calls}
    return completion(message, "tool_calls")


def completion(message: dict[str, Any], reason: str) -> Answer:
    return of_json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-4o-2024-11-20",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        }
    )


ASKS = asks(("find_order", {"order_id": "ORD-5521"}))


def recorded(*answers: Answer, work: Callable[[str], Any], **settings: Any) -> list[Run]:
    with fake_provider(in_turn(*answers)) as provider:
        return [parse_native(record) for record in records_of(lambda: work(provider.url), **settings)]


def only(*answers: Answer, work: Callable[[str], Any], **settings: Any) -> Run:
    (run,) = recorded(*answers, work=work, **settings)
    return run


def kinds(run: Run) -> list[str]:
    return [step.kind for step in run.steps]


def assert_reproduced(run: Run) -> None:
    assert (judge(run).verdict, judge(run).reasons) == ("replayable", ())
    result, _ = replayed(encode_native(run))
    assert (result.verdict, result.divergence) == ("reproduced", None)


def invoked(url: str) -> Any:
    return graphs.shop(url).invoke(graphs.asked(ASKED))


def awaited(url: str) -> Any:
    return asyncio.run(graphs.shop(url).ainvoke(graphs.asked(ASKED)))


def streamed(url: str) -> Any:
    return list(graphs.shop(url).stream(graphs.asked(ASKED), stream_mode="updates"))


async def _all(stream: Any) -> list[Any]:
    return [item async for item in stream]


def streamed_async(url: str) -> Any:
    return asyncio.run(_all(graphs.shop(url).astream(graphs.asked(ASKED), stream_mode="values")))


def by_nodes(url: str) -> Any:
    return graphs.own_graph(url).invoke(graphs.asked(ASKED))


@pytest.mark.parametrize("work", [invoked, awaited, streamed, streamed_async, by_nodes])
def test_an_agent_is_replayed(work):
    run = only(ASKS, says(ANSWER), work=work)

    assert kinds(run) == ["model", "tool", "model"]
    assert (value(run.input), value(run.output), run.instructions) == (ASKED, ANSWER, graphs.INSTRUCTIONS)
    assert run.agent.framework == "langgraph"
    assert_reproduced(run)


def test_what_langchain_says_of_a_call_is_in_the_steps():
    run = only(ASKS, says(ANSWER), work=invoked)

    model, tool = run.steps[0].call, run.steps[1].call
    assert isinstance(model, ModelCall)
    assert isinstance(tool, ToolCall)
    assert (run.agent.name, run.model, run.provider) == ("shop", "gpt-4o", "openai")
    assert (model.answered_model, model.input_tokens, model.finish_reason) == ("gpt-4o-2024-11-20", 12, "tool_calls")
    assert value(model.settings) == {"temperature": 0}
    assert [each["name"] for each in map(value, model.tools or ())] == ["find_order", "find_customer"]
    assert (tool.tool_name, tool.call_id, value(tool.arguments)) == ("find_order", "call_1", {"order_id": "ORD-5521"})
    assert (value(tool.result), tool.outcome) == ("ORD-5521 was delivered.", "success")
    assert run.steps[1].parent == 1


def test_tools_that_run_at_once_are_answers_of_one_request():
    both = asks(("find_order", {"order_id": "ORD-1"}), ("find_customer", {"name": "Ana"}), words="Let me see.")
    run = only(both, says(ANSWER), work=invoked)

    assert kinds(run) == ["model", "tool", "tool", "model"]
    assert {step.parent for step in run.steps[1:3]} == {1}
    assert_reproduced(run)


def test_raw_http_stands_on_the_steps_that_sent_it():
    run = only(ASKS, says(ANSWER), work=awaited, http=True)

    assert [step.http is not None for step in run.steps] == [True, False, True]
    assert_reproduced(run)


def test_tokens_of_a_stream_are_heard():
    def chunk(**delta: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": [choice]}

    lines = [chunk(role="assistant", content="It was "), chunk(content="delivered.")]
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in lines) + "data: [DONE]\n\n"
    said = Answer(body=body.encode(), headers={"Content-Type": "text/event-stream"})

    run = only(said, work=lambda url: list(graphs.shop(url).stream(graphs.asked(ASKED), stream_mode="messages")))

    assert (kinds(run), value(run.output)) == (["model"], ANSWER)
    assert run.steps[0].first_token_at is not None
    assert_reproduced(run)


def test_what_a_tool_raised_and_the_model_was_told_replays():
    tools = (graphs.out_of_order,)
    wanted = asks(("out_of_order", {"order_id": "ORD-1"}))
    run = only(
        wanted, says("The store is down."), work=lambda url: graphs.own_graph(url, tools).invoke(graphs.asked(ASKED))
    )

    tool = run.steps[1].call
    assert isinstance(tool, ToolCall)
    assert (tool.outcome, run.steps[1].error is not None, run.status) == ("failed", True, "ok")
    assert "ConnectionError" in str(value(tool.result))
    assert_reproduced(run)


def test_a_tool_that_there_is_not_is_a_call_all_the_same():
    run = only(asks(("find_ordre", {"order_id": "1"})), says(ANSWER), work=by_nodes)

    assert kinds(run) == ["model", "tool", "model"]
    assert "find_ordre" in str(value(run.steps[1].call.result))
    assert judge(run).verdict in ("replayable", "replayable_to_step")


def _failing(url: str) -> None:
    with pytest.raises(ConnectionError):
        graphs.shop(url, (graphs.out_of_order,)).invoke(graphs.asked(ASKED))


def test_what_a_tool_raised_ends_the_run():
    run = only(asks(("out_of_order", {"order_id": "ORD-1"})), work=_failing)

    assert (run.status, run.error and run.error.type) == ("error", "ConnectionError")
    assert run.steps[1].call.outcome == "crashed"
    assert_reproduced(run)


def _refused(url: str) -> None:
    with pytest.raises(Exception, match="400"):
        invoked(url)


def test_what_a_provider_refused_is_an_error_of_its_step():
    run = only(busy(status=400), work=_refused)

    assert (run.status, kinds(run)) == ("error", ["model"])
    assert run.steps[0].error is not None
    assert judge(run).verdict == "replayable"


def test_the_next_turn_of_a_thread_begins_where_the_last_one_ended():
    from langgraph.checkpoint.memory import InMemorySaver

    def two_turns(url: str) -> None:
        agent = graphs.shop(url, checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "t_301"}}
        agent.invoke(graphs.asked(ASKED), thread)
        agent.invoke(graphs.asked("Thank you."), thread)

    first, second = recorded(ASKS, says(ANSWER), says("You are welcome."), work=two_turns)

    assert (first.session_id, second.session_id) == ("t_301", "t_301")
    assert (value(second.input), second.prior is not None and second.prior.length) == ("Thank you.", 4)
    assert_reproduced(first)
    assert_reproduced(second)


def test_two_agents_that_speak_in_turn_go_on_from_each_other():
    """Each is held against the turn before it, whoever spoke there. Control: the thread as it was recorded."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver

    def in_turn_with_a_clerk(url: str) -> None:
        kept, thread = InMemorySaver(), {"configurable": {"thread_id": "t_302"}}
        clerk = create_agent(graphs.model_at(url), name="clerk", checkpointer=kept)
        for agent, words in zip([graphs.shop(url, checkpointer=kept), clerk] * 2, "1234", strict=True):
            agent.invoke(graphs.asked(f"Question {words}?"), thread)

    runs = recorded(ASKS, *(says(f"Answer {each}.") for each in "1234"), work=in_turn_with_a_clerk)

    assert [run.agent.name for run in runs] == ["shop", "clerk", "shop", "clerk"]
    assert find_contradictions(runs) == []
    for place, (message, before) in enumerate([(3, 0), (5, 1), (7, 2)], start=1):
        record = json.loads(encode_native(runs[place]))
        record["prior"][message]["parts"][0]["content"] = "It was lost."
        [found] = find_contradictions([*runs[:place], parse_native(json.dumps(record).encode())])
        path = f"messages[{message}].parts[0].content"
        assert (found.run_id, found.path, found.other_run_id) == (runs[place].run_id, path, runs[before].run_id)


def test_an_agent_that_a_tool_asks_is_a_run_inside():
    from langchain_core.tools import tool

    def supervised(url: str) -> Any:
        expert = graphs.shop(url)

        @tool
        def ask_expert(question: str) -> str:
            """Ask somebody who knows."""
            return graphs.said(expert.invoke(graphs.asked(question)))

        return graphs.own_graph(url, (ask_expert,)).invoke(graphs.asked(ASKED))

    question = asks(("ask_expert", {"question": "And ORD-1?"}), start=9)
    runs = recorded(question, ASKS, says(ANSWER), says("All is well."), work=supervised)

    outer = next(run for run in runs if run.parent is None)
    inner = next(run for run in runs if run.parent is not None)
    assert kinds(outer) == ["model", "tool", "agent", "model"]
    assert (inner.parent and inner.parent.run_id, inner.session_id) == (outer.run_id, outer.session_id)
    assert_reproduced(inner)
    assert_reproduced(outer)


def test_a_graph_inside_of_a_graph_is_in_the_run():
    from langgraph.graph import START, MessagesState, StateGraph

    def nested(url: str) -> Any:
        graph = StateGraph(MessagesState)
        graph.add_node("shop", graphs.shop(url))
        graph.add_edge(START, "shop")
        return graph.compile().invoke(graphs.asked(ASKED))

    run = only(ASKS, says(ANSWER), work=nested)

    assert kinds(run) == ["model", "tool", "model"]
    assert_reproduced(run)


def test_an_agent_that_hands_over_is_one_run():
    from langchain.agents import create_agent
    from langgraph.graph import START, MessagesState, StateGraph

    def handed_over(url: str) -> Any:
        graph = StateGraph(MessagesState)
        graph.add_node(
            "triage", create_agent(graphs.model_at(url), [graphs.to_shop], system_prompt="You sort questions.")
        )
        graph.add_node("shop", graphs.shop(url))
        graph.add_edge(START, "triage")
        return graph.compile().invoke(graphs.asked(ASKED))

    found = asks(("find_order", {"order_id": "ORD-5521"}), start=7)
    run = only(asks(("to_shop", {})), found, says(ANSWER), work=handed_over)

    assert kinds(run) == ["model", "tool", "model", "tool", "model"]
    assert value(run.steps[1].call.result) == "Transferred."
    assert_reproduced(run)


@pytest.mark.parametrize("as_tool", [True, False])
def test_structured_output_replays(as_tool):
    from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
    from pydantic import BaseModel

    class Status(BaseModel):
        status: str

    way = ToolStrategy(Status) if as_tool else ProviderStrategy(Status)
    given = asks(("Status", {"status": "delivered"}), start=5) if as_tool else says('{"status": "delivered"}')
    run = only(ASKS, given, work=lambda url: graphs.shop(url, response_format=way).invoke(graphs.asked(ASKED)))

    assert value(run.output) == {"status": "delivered"}
    assert [step.call.is_output for step in run.steps if isinstance(step.call, ToolCall)] == [False, True][
        : 1 + as_tool
    ]
    assert_reproduced(run)
    for step in range(1, len(run.steps) + 1):
        assert forked(run, step, {"kind": "clock", "value": 0})[0].verdict == "reproduced"


@pytest.mark.parametrize("wanted", [[{"state": "delivered"}], [{"status": "delivered"}, {"status": "lost"}]])
def test_structured_output_that_was_refused_is_asked_for_again(wanted: list[dict[str, Any]]):
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    class Status(BaseModel):
        status: str

    refused = asks(*(("Status", each) for each in wanted), start=2)
    given = asks(("Status", {"status": "delivered"}), start=5)
    way = ToolStrategy(Status)
    run = only(
        ASKS,
        refused,
        given,
        work=lambda url: graphs.shop(url, response_format=way).invoke(graphs.asked(ASKED)),
    )

    outcomes = [(call.is_output, call.outcome) for _, call in run.tool_calls]
    assert outcomes == [(False, "success"), *[(True, "retried")] * len(wanted), (True, "success")]
    assert_reproduced(run)
    for step in range(1, len(run.steps) + 1):
        result, made = forked(run, step, {"kind": "clock", "value": 0})
        assert (result.verdict, set(sources(made))) == ("reproduced", {"recorded"})


def test_what_a_model_gives_as_the_arguments_of_a_call_waits_for_nobody():
    from langchain_core.messages import AIMessage
    from langgraph.graph import END, START, MessagesState, StateGraph
    from pydantic import BaseModel

    class Status(BaseModel):
        status: str

    def structured(url: str) -> Any:
        model = graphs.model_at(url).with_structured_output(Status, method="function_calling")
        graph = StateGraph(MessagesState)
        graph.add_node("m", lambda state: {"messages": [AIMessage(model.invoke(state["messages"]).status)]})
        graph.add_edge(START, "m")
        graph.add_edge("m", END)
        return graph.compile().invoke(graphs.asked(ASKED))

    run = only(asks(("Status", {"status": "delivered"})), work=structured)

    assert (run.status, value(run.output)) == ("ok", "delivered")
    assert [(call.is_output, call.outcome) for _, call in run.tool_calls] == [(True, "success")]
    assert [reason.code for reason in assert_promise_kept(encode_native(run)).reasons] == ["output_made_by_code"]


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ((("Status", {}),), "Error: Failed to parse"),
        ((("Status", {"status": "a"}), ("Status", {"status": "b"})), "Error: Model incorrectly returned"),
        ((("Place", {}),), "Error: Failed to parse"),
        ((("Status", {}),), "Once more, please."),
    ],
    ids=["unreadable", "twice", "of another schema", "in words of the team"],
)
def test_structured_output_that_is_asked_for_again_replays(refused, words):
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    class Status(BaseModel):
        status: str

    class Place(BaseModel):
        name: str

    way = ToolStrategy(Status | Place, handle_errors=True if words.startswith("Error") else words)
    given = asks(("Status", {"status": "delivered"}), start=9)

    def work(url: str) -> Any:
        return graphs.shop(url, response_format=way).invoke(graphs.asked(ASKED))

    run = only(asks(*refused, start=5), given, work=work)

    calls = [(step.call.is_output, step.call.outcome) for step in run.steps if isinstance(step.call, ToolCall)]
    assert calls == [(True, "retried")] * len(refused) + [(True, "success")]
    assert value(run.steps[1].call.result).startswith(words)
    assert_reproduced(run)


def test_a_stream_that_is_left_is_said_to_be():
    def left(url: str) -> None:
        for _ in graphs.shop(url).stream(graphs.asked(ASKED)):
            break

    run = only(ASKS, work=left)

    assert run.status == "cut_off"
    assert judge(run).words.endswith(": its stream was left before its end.")


def caught(url: str) -> Any:
    """A tool that raises, and code around it that tells the model an answer all the same."""
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import tool

    @tool
    def find_order(order_id: str) -> str:
        """Find an order."""
        raise ValueError("the shop is closed")

    @wrap_tool_call
    def catch(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError:
            return ToolMessage("Ask tomorrow.", tool_call_id=request.tool_call["id"])

    return graphs.shop(url, (find_order,), middleware=[catch]).invoke(graphs.asked(ASKED))


def test_a_failure_that_the_model_is_told_otherwise_stays_one():
    run = only(ASKS, says(ANSWER), work=caught)

    call = run.steps[1].call
    assert isinstance(call, ToolCall)
    assert (call.outcome, value(call.result), run.steps[1].error is not None) == ("failed", "Ask tomorrow.", True)
    assert_reproduced(run)


def test_a_graph_that_waits_for_somebody_goes_on_as_another_run():
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command, interrupt

    @tool
    def cancel(order_id: str) -> str:
        """Cancel an order."""
        return f"cancelled, {interrupt('Really?')}"

    def approved(url: str) -> None:
        agent, thread = (
            graphs.shop(url, (cancel,), checkpointer=InMemorySaver()),
            {"configurable": {"thread_id": "t_1"}},
        )
        agent.invoke(graphs.asked(ASKED), thread)
        agent.invoke(Command(resume="yes"), thread)

    first, second = recorded(asks(("cancel", {"order_id": "1"})), says("It is cancelled."), work=approved)

    assert (first.status, first.steps[1].call.outcome, first.session_id) == ("cut_off", "unapproved", second.session_id)
    assert judge(first).words == "The recording breaks off after step 2: step 2 (cancel) waits for somebody."
    assert first.output is None
    assert (kinds(second), value(second.steps[0].call.result)) == (["tool", "model"], "cancelled, yes")
    assert_reproduced(second)


def test_a_graph_that_goes_on_with_one_of_two_calls_is_told_of_the_other_too():
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command, interrupt

    @tool
    def cancel(order_id: str) -> str:
        """Cancel an order."""
        return f"cancelled, {interrupt('Really?')}"

    def approved(url: str) -> None:
        agent = graphs.shop(url, (cancel, graphs.find_order), checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "t_2"}}
        agent.invoke(graphs.asked(ASKED), thread)
        agent.invoke(Command(resume="yes"), thread)

    both = asks(("cancel", {"order_id": "1"}), ("find_order", {"order_id": "ORD-5521"}))
    first, second = recorded(both, says("It is cancelled."), work=approved)

    assert (first.status, first.output) == ("cut_off", None)
    assert [call.tool_name for _, call in second.tool_calls] == ["cancel", "find_order"]
    assert second.decided == {"call_1": "success", "call_2": "success"}
    assert_reproduced(second)

    record = json.loads(encode_native(second))
    del record["steps"][1], record["deferred"]["call_2"]
    record["final"]["after"] = 2
    judged = assert_promise_kept(json.dumps(record).encode())
    assert [reason.code for reason in judged.reasons] == ["tool_step_missing"]


def test_a_graph_in_which_somebody_turned_a_call_down_goes_on():
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    decisions = [{"type": "approve"}, {"type": "reject", "message": "Not this one."}]

    def decided(url: str) -> None:
        middleware = [HumanInTheLoopMiddleware(interrupt_on={"find_order": True})]
        agent = graphs.shop(url, (graphs.find_order,), checkpointer=InMemorySaver(), middleware=middleware)
        thread = {"configurable": {"thread_id": "t_3"}}
        agent.invoke(graphs.asked(ASKED), thread)
        agent.invoke(Command(resume={"decisions": decisions}), thread)

    both = asks(("find_order", {"order_id": "ORD-5521"}), ("find_order", {"order_id": "ORD-5522"}))
    _, second = recorded(both, says(ANSWER), work=decided)

    assert [call.outcome for _, call in second.tool_calls] == ["success", "failed"]
    assert_reproduced(second)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("find_order", {"order_id": "ORD-1"}, {}),
        ("find_customer", {"name": "Ana"}, {"approved_tool": "find_customer"}),
    ],
)
def test_a_graph_in_which_somebody_edited_a_call_goes_on(name, arguments, said):
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    edit = {"type": "edit", "edited_action": {"name": name, "args": arguments}}

    def decided(url: str) -> None:
        middleware = [HumanInTheLoopMiddleware(interrupt_on={"find_order": True})]
        agent = graphs.shop(url, checkpointer=InMemorySaver(), middleware=middleware)
        thread = {"configurable": {"thread_id": "t_5"}}
        agent.invoke(graphs.asked(ASKED), thread)
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}, edit]}), thread)

    both = asks(("find_order", {"order_id": "ORD-5521"}), ("find_order", {"order_id": "ORD-5522"}))
    _, second = recorded(both, says(ANSWER), work=decided)

    (_, approved), (step, edited) = second.tool_calls
    assert (approved.tool_name, edited.tool_name) == ("find_order", "find_order")
    told = {name: said for name, said in step.extra.items() if name.startswith("approved_")}
    assert (value(edited.arguments), told) == ({"order_id": "ORD-5522"}, {"approved_arguments": arguments, **said})
    assert_reproduced(second)
    assert replayed(encode_native(second))[0].facts["proof"]["requests"]["reason"] != _MADE_BY_CODE
    for field in told:
        other = with_other_extra(second, step.index, field)
        found = [compare_runs(second, other).divergence, compare_runs(replay_of(second), other).divergence]
        assert [each and each.path for each in found] == [field, field]


def with_other_extra(run: Run, index: int, field: str) -> Run:
    """With something else in a field of this step."""
    record = json.loads(encode_native(run))
    record["steps"][index - 1][field] = "another"
    return parse_native(json.dumps(record).encode())


def replay_of(run: Run) -> Run:
    made = replayed(encode_native(run))[1]
    assert made is not None
    return made


_MADE_BY_CODE = "code that did not run made the prompt of the input"


@pytest.mark.parametrize("inputs", [False, True])
def test_a_graph_that_clears_earlier_answers_replays(inputs: bool):
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

    def clearing(url: str) -> None:
        edit = ClearToolUsesEdit(trigger=1, keep=1, clear_tool_inputs=inputs)
        agent = graphs.shop(url, (graphs.find_order,), middleware=[ContextEditingMiddleware(edits=[edit])])
        agent.invoke(graphs.asked(ASKED))

    answers = [asks(("find_order", {"order_id": f"ORD-{number}"}), start=number) for number in (1, 2, 3)]
    run = only(*answers, says(ANSWER), work=clearing)

    assert "[cleared]" in encode_native(run).decode()
    assert_reproduced(run)
    proof = replayed(encode_native(run))[0].facts["proof"]
    assert proof["requests"]["state"] == "not_comparable"
    assert "the history was rewritten by code that does not run in a replay" in proof["requests"]["reason"]


def broken(words: str | None) -> Answer:
    call = {"id": "call_1", "type": "function", "function": {"name": "find_order", "arguments": '{"order_id": '}}
    return completion({"role": "assistant", "content": words, "tool_calls": [call]}, "tool_calls")


@pytest.mark.parametrize("words", ["I will look.", None])
@pytest.mark.parametrize("work", [invoked, by_nodes])
def test_a_call_whose_arguments_are_no_json_is_made_by_nobody_and_awaited_by_nobody(words, work):
    run = only(broken(words), work=work)

    assert (run.status, value(run.output)) == ("ok", words or "")
    assert run.steps[1].error is not None
    assert run.steps[1].error.type == "InvalidToolCall"
    judged = assert_promise_kept(encode_native(run))
    assert (judged.step, [reason.code for reason in judged.reasons]) == (2, ["call_not_made"])
    assert judged.words == (
        "The run ended without making the call of step 2 (find_order), whose arguments are not valid JSON. "
        "A replay would ask the model again."
    )


def test_a_tool_that_middleware_calls_until_it_answers_is_one_call_with_attempts():
    from langchain.agents.middleware import ToolRetryMiddleware
    from langchain_core.tools import tool

    errors = [ConnectionError("first"), ConnectionError("second")]

    @tool
    def find_order(order_id: str) -> str:
        """Find an order."""
        if errors:
            raise errors.pop(0)
        return "delivered"

    retries = ToolRetryMiddleware(max_retries=3, initial_delay=0)
    run = only(
        ASKS,
        says(ANSWER),
        work=lambda url: graphs.shop(url, (find_order,), middleware=[retries]).invoke(graphs.asked(ASKED)),
    )

    assert [(call.call_id, call.outcome) for _, call in run.tool_calls] == [
        (None, "crashed"),
        (None, "crashed"),
        ("call_1", "success"),
    ]
    assert_reproduced(run)


def test_an_answer_that_somebody_put_behind_another_is_a_message_of_its_own():
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.memory import InMemorySaver

    def corrected(url: str) -> None:
        agent = graphs.shop(url, checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "t_4"}}
        agent.invoke(graphs.asked("Hello?"), thread)
        agent.update_state(thread, {"messages": [AIMessage("I mean it.")]})
        agent.invoke(graphs.asked(ASKED), thread)

    _, second = recorded(says("Hello."), ASKS, says(ANSWER), work=corrected)

    assert second.prior is not None
    assert second.prior.length == 3
    assert_reproduced(second)


def test_models_that_ask_each_other_are_replayed_to_the_second():
    """A replay ends with an answer in words."""
    from langchain_core.runnables import RunnableLambda

    def translated(url: str) -> Any:
        model = graphs.model_at(url)
        return (model | RunnableLambda(lambda said: f"Translate: {said.content}") | model).invoke(ASKED)

    run = only(says("Geliefert."), says(ANSWER), work=translated)

    assert (judge(run).verdict, [reason.code for reason in judge(run).reasons]) == (
        "replayable_to_step",
        ["later_turn"],
    )
    assert replayed(encode_native(run))[0].verdict == "unknown_from_step"


def test_a_model_that_is_asked_behind_words_of_its_own_was_asked_by_nobody():
    """A loop that is given words of the model ends with them."""
    from langchain_core.messages import AIMessage

    def noted(url: str) -> Any:
        return graphs.shop(url).invoke({"messages": [*graphs.asked(ASKED)["messages"], AIMessage("A note by code.")]})

    run = only(ASKS, says(ANSWER), work=noted)

    assert (judge(run).verdict, judge(run).reasons[0].code) == ("cold", "prompt_missing")


def test_models_behind_prompts_are_runs_too():
    from langchain_core.prompts import ChatPromptTemplate

    def chain(url: str) -> Any:
        prompt = ChatPromptTemplate.from_messages([("system", "You are brief."), ("user", "Where is {order_id}?")])
        return (prompt | graphs.model_at(url)).invoke({"order_id": "ORD-5521"})

    run = only(says(ANSWER), work=chain)

    assert (kinds(run), run.instructions, value(run.output)) == (["model"], "You are brief.", ANSWER)
    assert run.agent.framework == "langchain"


@pytest.mark.parametrize("given", [{"order_id": "ORD-5521"}, "ORD-5521"])
def test_a_chain_whose_template_makes_the_prompt_replays(given):
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate

    def chain(url: str) -> Any:
        prompt = ChatPromptTemplate.from_template("Where is {order_id}?")
        return (prompt | graphs.model_at(url) | StrOutputParser()).invoke(given)

    run = only(says(ANSWER), work=chain)

    assert value(run.input) == given
    assert_reproduced(run)
    assert "made the prompt of the input" in replayed(encode_native(run))[0].facts["proof"]["requests"]["reason"]


def test_a_graph_with_a_state_of_its_own_replays_but_for_its_output():
    from langgraph.graph import END, START, StateGraph

    class Question(TypedDict, total=False):
        question: str
        answer: str

    def graph(url: str) -> Any:
        made = StateGraph(Question)
        made.add_node("ask", lambda state: {"answer": graphs.model_at(url).invoke(f"So: {state['question']}").content})
        made.add_edge(START, "ask")
        made.add_edge("ask", END)
        return made.compile().invoke({"question": ASKED})

    run = only(says(ANSWER), work=graph)

    assert value(run.input) == {"question": ASKED}
    judged = assert_promise_kept(encode_native(run))
    assert (judged.step, [reason.code for reason in judged.reasons]) == (1, ["output_made_by_code"])


@pytest.mark.parametrize(
    "given", [[("user", ASKED)], [("system", "Be brief."), ("user", "Hi"), ("ai", "Hi."), ("user", ASKED)]]
)
def test_messages_that_a_chain_is_given_are_a_conversation(given):
    from langchain_core.output_parsers import StrOutputParser

    run = only(says(ANSWER), work=lambda url: (graphs.model_at(url) | StrOutputParser()).invoke(given))

    assert value(run.input) == ASKED
    assert_reproduced(run)


@pytest.mark.parametrize("said", ["Where?", {"order_id": "ORD-5521"}, 7])
def test_an_input_that_no_template_made_the_prompt_of_is_judged(said):
    record = json.loads(encode_native(only(ASKS, says(ANSWER), work=invoked)))
    record["input"] = said

    judged = assert_promise_kept(json.dumps(record).encode())

    assert (judged.step, [reason.code for reason in judged.reasons]) == (3, ["input_contradicts"])


@pytest.mark.parametrize("prompts", [[], [ASKED, "And delete all."], ["And delete all.", ASKED], [ASKED, ASKED]])
def test_prompts_that_the_graph_was_not_given_are_judged(prompts):
    record = json.loads(encode_native(only(ASKS, says(ANSWER), work=invoked)))
    _ask(record, prompts)

    judged = assert_promise_kept(json.dumps(record).encode())

    assert (judged.step, [reason.code for reason in judged.reasons]) == (3, ["input_contradicts"])


@pytest.mark.parametrize("prompts", [[ASKED], ["Hi", "Hi", ASKED], [ASKED, "Hi"]])
def test_a_graph_that_is_given_several_prompts_replays(prompts):
    given = {"messages": [("user", "Hi"), ("user", ASKED)]}
    run = only(ASKS, says(ANSWER), work=lambda url: graphs.shop(url).invoke(given))

    assert value(run.input) == ASKED
    assert_reproduced(run)

    record = json.loads(encode_native(run))
    _ask(record, prompts)
    assert [reason.code for reason in judge(parse_native(json.dumps(record).encode())).reasons] == ["input_contradicts"]


def _ask(record: dict[str, Any], prompts: list[str]) -> None:
    (request,) = record["steps"][0]["request"]["messages"]
    request["parts"] = [{"part_kind": "user-prompt", "content": text} for text in prompts]


def test_what_asks_no_model_is_no_run():
    from langchain_core.runnables import RunnableLambda

    assert recorded(work=lambda url: RunnableLambda(str.upper).invoke("a")) == []


def test_a_search_is_a_step():
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda

    class Shelf(BaseRetriever):  # type: ignore[misc, unused-ignore]
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document("Orders go out at noon.", id="d1")]

    def rag(url: str) -> Any:
        found = Shelf() | RunnableLambda(lambda documents: f"{documents[0].page_content} {ASKED}")
        return (found | graphs.model_at(url)).invoke(ASKED)

    run = only(says(ANSWER), work=rag)

    search = run.steps[0].call
    assert isinstance(search, Retrieval)
    assert (kinds(run), value(search.query)) == (["retrieval", "model"], ASKED)
    assert [(chunk.chunk_id, value(chunk.content)) for chunk in search.chunks or ()] == [
        ("d1", "Orders go out at noon.")
    ]


def test_a_recorded_function_around_an_agent_has_no_run_of_its_own():
    def around(url: str) -> None:
        @replay_recorder.record(context={"user_id": "u_7"})
        def support(question: str) -> str:
            return graphs.said(graphs.shop(url).invoke(graphs.asked(question)))

        support(ASKED)

    run = only(ASKS, says(ANSWER), work=around)

    assert (run.agent.name, run.user_id, kinds(run)) == ("shop", "u_7", ["model", "tool", "model"])
    assert_reproduced(run)


def test_a_model_that_a_recorded_function_asks_by_itself_is_its_step():
    from langchain_core.messages import HumanMessage

    def loop(url: str) -> None:
        @replay_recorder.record
        def support(question: str) -> str:
            return str(graphs.model_at(url).invoke([HumanMessage(question)]).content)

        support(ASKED)

    run = only(says(ANSWER), work=loop)

    assert (run.agent.name, kinds(run)) == ("support", ["model"])


def test_a_stream_that_is_left_is_cut_off():
    def left(url: str) -> None:
        stream = graphs.shop(url).stream(graphs.asked(ASKED), stream_mode="updates")
        next(stream)
        stream.close()

    run = only(ASKS, says(ANSWER), work=left)

    assert (run.status, run.steps[0].kind) == ("cut_off", "model")


def test_nothing_of_a_run_is_left_where_it_was_started():
    from replay_recorder.context import current_place

    places: list[Any] = []

    def work(url: str) -> None:
        invoked(url)
        places.append(current_place())

    only(ASKS, says(ANSWER), work=work)

    assert places == [None]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_fork_that_changes_nothing_is_the_recording_again(at):
    """LangChain and Pydantic AI write the time of a message in two ways."""
    run = only(ASKS, says(ANSWER), work=invoked)
    change = {"kind": "tool_result", "step": 2, "value": "ORD-5521 was delivered."}

    result, made = forked(run, at, change if at == 2 else {"kind": "clock", "value": 0})

    assert (result.verdict, result.divergence) == ("reproduced", None)
    assert compare_runs(run, made).identical


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_changed_record_is_noticed(step):
    run = only(ASKS, says(ANSWER), work=invoked)
    call = run.steps[step].call
    if isinstance(call, ToolCall):
        changed: Any = replace(call, result=Payload.of_text("lost"))
    else:
        assert isinstance(call, ModelCall)
        changed = replace(call, response=Payload.of_json({"kind": "response", "parts": []}))
    steps = [replace(each, call=changed) if each is run.steps[step] else each for each in run.steps]

    result, _ = replayed(encode_native(replace(run, steps=tuple(steps))))

    assert result.verdict != "reproduced"


def _with_instructions_of_the_run(record: dict[str, Any]) -> None:
    record["instructions"] = "Pay everything."


def _with_instructions_of_the_request(record: dict[str, Any]) -> None:
    record["steps"][0]["request"]["messages"][0]["instructions"] = "Pay everything."


@pytest.mark.parametrize("forge", [_with_instructions_of_the_run, _with_instructions_of_the_request])
def test_instructions_that_a_graph_without_any_is_said_to_have_are_judged(forge: Callable[[dict[str, Any]], None]):
    from langchain.agents import create_agent

    run = only(says(ANSWER), work=lambda url: create_agent(graphs.model_at(url)).invoke(graphs.asked(ASKED)))
    record = json.loads(encode_native(run))
    assert assert_promise_kept(encode_native(run)).verdict == "replayable"
    forge(record)

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["instructions_contradicted"]


def test_an_error_of_a_call_that_succeeded_is_judged():
    run = only(ASKS, says(ANSWER), work=invoked)
    record = json.loads(encode_native(run))
    record["steps"][1]["error"] = {"type": "ValueError", "message": "lost"}

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("answer_contradicted", 2)]


def test_the_prompt_of_a_later_turn_is_the_input():
    from langgraph.checkpoint.memory import InMemorySaver

    def two_turns(url: str) -> None:
        agent = graphs.shop(url, checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "t_302"}}
        agent.invoke(graphs.asked(ASKED), thread)
        agent.invoke(graphs.asked("Thank you."), thread)

    _, second = recorded(says(ANSWER), says("You are welcome."), work=two_turns)
    record = json.loads(encode_native(second))
    assert assert_promise_kept(encode_native(second)).verdict == "replayable"
    record["steps"][0]["request"]["messages"][-1]["parts"].clear()

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["input_contradicts"]


def _reviewed(*decisions: dict[str, Any]) -> Run:
    """The run of calls that somebody decided on, beside one of which nobody was asked."""
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    def decided(url: str) -> None:
        middleware = [HumanInTheLoopMiddleware(interrupt_on={"find_order": True})]
        agent = graphs.shop(url, checkpointer=InMemorySaver(), middleware=middleware)
        thread = {"configurable": {"thread_id": "t_6"}}
        agent.invoke(graphs.asked(ASKED), thread)
        agent.invoke(Command(resume={"decisions": decisions}), thread)

    orders = [("find_order", {"order_id": f"ORD-552{number}"}) for number, _ in enumerate(decisions)]
    return recorded(asks(*orders, ("find_customer", {"name": "Ana"})), says(ANSWER), work=decided)[1]


def _edit(order_id: str) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "find_order", "args": {"order_id": order_id}}}


APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "Not this one."}


@pytest.mark.parametrize(
    ("decided", "said"),
    [
        (REJECT, APPROVE),
        (REJECT, REJECT | {"message": "Not today."}),
        (APPROVE, _edit("ORD-1")),
        (_edit("ORD-1"), _edit("ORD-2")),
        (_edit("ORD-1"), APPROVE),
        (_edit("ORD-1"), {"type": "edit", "edited_action": {"name": "erase", "args": {"order_id": "ORD-1"}}}),
        (APPROVE, {"type": "accept"}),
        (REJECT, REJECT | {"type": "refuse"}),
    ],
)
def test_what_somebody_decided_is_what_became_of_the_call(decided: dict[str, Any], said: dict[str, Any]):
    run = _reviewed(decided)
    record = json.loads(encode_native(run))
    assert assert_promise_kept(encode_native(run)).verdict == "replayable"
    record["input"]["resume"]["decisions"] = [said]

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["call_contradicted"]


RESPOND = {"type": "respond", "message": "It is late."}


@pytest.mark.parametrize(
    ("decided", "said"),
    [
        ([REJECT, APPROVE], [APPROVE, REJECT]),
        ([_edit("ORD-1"), REJECT], [REJECT, _edit("ORD-1")]),
        ([REJECT, _edit("ORD-1")], [APPROVE, _edit("ORD-1")]),
        ([REJECT, _edit("ORD-1")], [REJECT, _edit("ORD-1"), APPROVE, APPROVE]),
        ([RESPOND, APPROVE], [APPROVE, RESPOND]),
        ([RESPOND, APPROVE], [REJECT | {"message": None}, APPROVE]),
        ([_edit("ORD-1"), _edit("ORD-2")], [_edit("ORD-2"), _edit("ORD-1")]),
        ([_edit("ORD-1"), REJECT, REJECT], [_edit("ORD-1"), REJECT]),
    ],
)
def test_decisions_are_those_on_each_call_in_turn(decided: list[dict[str, Any]], said: list[dict[str, Any]]):
    run = _reviewed(*decided)
    record = json.loads(encode_native(run))
    assert assert_promise_kept(encode_native(run)).verdict == "replayable"
    record["input"]["resume"]["decisions"] = said

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["call_contradicted"]


@pytest.mark.parametrize("said", ["denied", "approved"])
def test_a_call_ended_as_the_run_says_that_it_was_decided(said: str):
    record = json.loads(encode_native(_reviewed(APPROVE)))
    record["deferred"] = dict.fromkeys(record["deferred"], said)

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["call_contradicted"]


def test_a_call_that_somebody_approved_has_the_arguments_that_the_model_gave():
    record = json.loads(encode_native(_reviewed(APPROVE)))
    record["steps"][0]["arguments"] = {"order_id": "ORD-0"}

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["call_contradicted"]


def test_a_tool_that_ran_in_a_calls_place_is_the_one_of_the_decision():
    record = json.loads(encode_native(_reviewed(_edit("ORD-1"))))
    record["steps"][0]["approved_tool"] = "erase"

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["call_contradicted"]


def test_a_call_whose_step_stands_inside_of_another_has_none_of_its_own():
    both = asks(("find_order", {"order_id": "ORD-5521"}), ("find_order", {"order_id": "ORD-5522"}))
    run = only(both, says(ANSWER), work=lambda url: graphs.shop(url, (graphs.find_order,)).invoke(graphs.asked(ASKED)))
    record = json.loads(encode_native(run))
    record["steps"][2]["parent"] = 2

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["tool_step_missing"]


def test_a_tool_that_ends_the_run_with_what_it_returned_leaves_no_answer_out():
    from langchain_core.tools import tool

    @tool(return_direct=True)
    def receipt(order_id: str) -> str:
        """Write the receipt of an order."""
        return f"Receipt of {order_id}"

    run = only(
        asks(("receipt", {"order_id": "ORD-1"})),
        work=lambda url: graphs.shop(url, (receipt,)).invoke(graphs.asked(ASKED)),
    )

    (reason,) = assert_promise_kept(encode_native(run)).reasons
    assert (reason.code, reason.step) == ("ended_by_tools", 3)
    cut = json.loads(encode_native(run)) | {"output": "Thank you."}
    (reason,) = assert_promise_kept(json.dumps(cut).encode()).reasons
    assert (reason.code, reason.step) == ("model_answer_missing", 3)


def test_an_answer_that_middleware_words_otherwise_is_named_and_replays():
    from langchain.agents.middleware import wrap_model_call

    @wrap_model_call
    def in_capitals(request: Any, handler: Any) -> Any:
        answer = handler(request)
        answer.result[0].content = answer.result[0].content.upper()
        return answer

    def work(url: str) -> None:
        graphs.shop(url, (graphs.find_order,), middleware=[in_capitals]).invoke(graphs.asked(ASKED))

    asks_aloud = asks(("find_order", {"order_id": "ORD-5521"}), words="One moment.")
    run = only(asks_aloud, says("123"), work=work)

    assert "ONE MOMENT." in encode_native(run).decode()
    assert_reproduced(run)
    said = replayed(encode_native(run))[0].facts["proof"]["requests"]
    words = "the request of step 3 gives the answer of step 1 differently from the step itself"
    assert said == {"state": "not_comparable", "reason": words}
