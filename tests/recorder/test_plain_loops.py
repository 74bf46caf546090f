"""Loops over clients of providers, recorded by `@record` alone: replayable, and reproduced."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import openai
import pytest

from replay_recorder import record, recorded_tool
from sessions_app.core.assembly.model_exchanges import with_conversation
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import Payload
from sessions_app.core.run import ModelCall, Run, ToolCall
from tests.fake_provider import busy, calls, fake_provider, in_turn, of_json, says
from tests.recorder import plain_loops
from tests.recorder.local_server import Answer, local_server
from tests.recorder.recordings import records_of, value
from tests.recorder.replaying import ENDS, assert_promise_kept, replayed

ASKED = "Where is ORD-5521?"
ANSWER = "It was delivered."
ORDER = {"item": "2x Widget Pro", "status": "delivered"}


def only_record(work: Callable[[], Any], **settings: Any) -> Run:
    (record,) = records_of(work, **settings)
    return with_conversation(parse_native(record))


def kinds(run: Run) -> list[str]:
    return [step.kind for step in run.steps]


def assert_reproduced(run: Run) -> None:
    assert (judge(run).verdict, judge(run).reasons) == ("replayable", ())
    result, _ = replayed(encode_native(run))
    assert (result.verdict, result.divergence) == ("reproduced", None)


def in_two_steps(*before: Answer) -> Any:
    return fake_provider(in_turn(*before, calls("find_order", {"order_id": "ORD-5521"}), says(ANSWER)))


LOOPS = (plain_loops.chat, plain_loops.async_chat)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("tool", [plain_loops.find_order, plain_loops.recorded_lookup], ids=["plain", "recorded"])
def test_a_loop_over_chat_completions_replays(loop, tool):
    with in_two_steps() as provider:
        run = only_record(lambda: loop(provider.url, tool)(ASKED))

    assert kinds(run) == ["model", "tool", "model"]
    assert (value(run.input), value(run.output), run.agent.name) == (ASKED, ANSWER, "support")
    assert_reproduced(run)


@pytest.fixture(scope="module")
def calls_of_one_id() -> Run:
    """As servers on one's own machine do, which count the calls of each answer anew."""
    orders = [calls("find_order", {"order_id": order}, call_id="call_0") for order in ("ORD-5521", "ORD-1", "ORD-2")]
    with fake_provider(in_turn(*orders, says(ANSWER))) as provider:
        return only_record(lambda: plain_loops.chat(provider.url)(ASKED))


def test_calls_that_use_an_id_again_replay(calls_of_one_id):
    assert {call.call_id for _, call in calls_of_one_id.tool_calls} == {"call_0"}
    assert_reproduced(calls_of_one_id)


@pytest.mark.parametrize("order", ["ORD-5521", "ORD-1"])
def test_a_call_of_an_id_that_is_used_again_is_held_against_its_own_http(calls_of_one_id, order):
    record = json.loads(encode_native(calls_of_one_id))
    last = [step for step in record["steps"] if step["kind"] == "model"][-1]
    body = last["http"]["request_body"]
    assert body.count(order) >= 1
    last["http"]["request_body"] = body.replace(order, "ORD-2")

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["http_contradicted"]


def test_what_the_bodies_say_is_in_the_steps():
    with in_two_steps() as provider:
        run = only_record(lambda: plain_loops.chat(provider.url, plain_loops.recorded_lookup)(ASKED))

    model, tool = run.steps[0].call, run.steps[1].call
    assert isinstance(model, ModelCall)
    assert isinstance(tool, ToolCall)
    assert (run.instructions, run.model, model.input_tokens) == ("You help with orders.", "gpt-4o", 12)
    assert value(model.settings) == {"temperature": 0}
    assert [tool["name"] for tool in map(value, model.tools or ())] == ["find_order"]
    assert (tool.call_id, value(tool.arguments)) == ("call_live_1", '{"order_id": "ORD-5521"}')
    assert value(tool.result) == ORDER
    assert run.steps[0].http is not None
    assert "sk-none" not in repr(run.steps[0].http)


def events(*said: dict[str, Any], end: str = "data: [DONE]\n\n") -> Answer:
    lines = "".join(f"data: {json.dumps(each)}\n\n" for each in said)
    return Answer(body=(lines + end).encode(), headers={"Content-Type": "text/event-stream"})


def chunk(**delta: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
    }


def piece(arguments: str, **first: Any) -> dict[str, Any]:
    named = {"function": {"arguments": arguments, **({"name": "find_order"} if first else {})}}
    return chunk(tool_calls=[{"index": 0, "type": "function", **first, **named}])


def test_a_streamed_loop_replays():
    asks = events(piece("", id="c1"), piece('{"order_id": '), piece('"ORD-5521"}'))
    answers = events(chunk(content="It was "), chunk(content="delivered."))
    with fake_provider(in_turn(asks, answers)) as provider:
        run = only_record(lambda: plain_loops.streamed_chat(provider.url)(ASKED))

    assert kinds(run) == ["model", "tool", "model"]
    assert run.steps[0].first_token_at is not None
    assert_reproduced(run)


def test_a_stream_that_was_left_half_way_is_no_answer():
    with fake_provider(in_turn(events(chunk(content="It was "), chunk(content="delivered."), end=""))) as provider:

        @record
        def first_word(question: str) -> str:
            client = openai.OpenAI(base_url=provider.url, api_key="sk-none")
            messages: list[Any] = [{"role": "user", "content": question}]
            with client.chat.completions.create(model="gpt-4o", messages=messages, stream=True) as stream:
                return next(iter(stream)).choices[0].delta.content or ""

        run = only_record(lambda: first_word(ASKED))

    assert value(run.output) == "It was "
    assert judge(run).verdict != "replayable"


def test_responses_replay():
    common = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-4o", "status": "completed"}
    asks = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find_order"}
    words = {"type": "output_text", "text": ANSWER, "annotations": []}
    said = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [words]}
    with local_server() as server:
        server.answer(
            "/v1/responses",
            of_json({**common, "output": [{**asks, "arguments": '{"order_id": "ORD-5521"}'}]}),
            of_json({**common, "output": [said]}),
        )
        run = only_record(lambda: plain_loops.responses(f"{server.url}/v1")(ASKED))

    assert kinds(run) == ["model", "tool", "model"]
    assert_reproduced(run)


def test_what_ran_at_the_provider_beside_an_answer_replays():
    common = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-4o", "status": "completed"}
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "c"},
    }
    words = {"type": "output_text", "text": "I looked it up.", "annotations": []}
    said = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [words]}
    asks = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find_order"}
    output = [search, said, {**asks, "arguments": '{"order_id": "ORD-5521"}'}]
    with local_server() as server:
        answers = [of_json({**common, "output": output}), of_json({**common, "output": [said]})]
        server.answer("/v1/responses", *answers)
        (record,) = records_of(lambda: plain_loops.responses(f"{server.url}/v1")(ASKED))

    assert_reproduced(read(json.loads(record)))

    changed = with_conversation(parse_native(record))
    _, call = changed.model_calls[0]
    other = replace(call, response=Payload.of_json({"kind": "response", "parts": [TEXT]}))
    changed = replace(changed, steps=(replace(changed.steps[0], call=other), *changed.steps[1:]))
    assert judge(changed).reasons[0].code == "http_contradicted"


TEXT = {"part_kind": "text", "content": "I looked it up elsewhere."}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "find_order"}


def test_messages_replay():
    with local_server() as server:
        asks = {**MESSAGE, "content": [{**USE, "input": {"order_id": "ORD-5521"}}], "stop_reason": "tool_use"}
        said = {**MESSAGE, "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"}
        server.answer("/v1/messages", of_json(asks), of_json(said))
        run = only_record(lambda: plain_loops.anthropic_messages(f"{server.url}/v1")(ASKED))

    assert kinds(run) == ["model", "tool", "model"]
    assert_reproduced(run)


def message_events(block: dict[str, Any], *deltas: dict[str, Any]) -> Answer:
    return events(
        {"type": "message_start", "message": {**MESSAGE, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
        end="",
    )


def test_streamed_messages_replay():
    with local_server() as server:
        arguments = [{"type": "input_json_delta", "partial_json": part} for part in ('{"order_id": ', '"ORD-5521"}')]
        words = [{"type": "text_delta", "text": part} for part in ("It was ", "delivered.")]
        asks = message_events({**USE, "input": {}}, *arguments)
        server.answer("/v1/messages", asks, message_events({"type": "text", "text": ""}, *words))
        run = only_record(lambda: plain_loops.anthropic_messages(f"{server.url}/v1", is_streamed=True)(ASKED))

    assert kinds(run) == ["model", "tool", "model"]
    assert_reproduced(run)


# --- what goes wrong -----------------------------------------------------------------------------


def test_an_attempt_that_the_client_repeats_is_no_call_of_the_model():
    with in_two_steps(busy("0.01")) as provider:
        run = only_record(lambda: plain_loops.chat(provider.url)(ASKED))

    assert kinds(run) == ["other", "model", "tool", "model"]
    assert run.steps[0].http is not None
    assert run.steps[0].http.status == 429
    assert_reproduced(run)


def test_a_failure_that_ends_the_run_is_an_error_of_its_step():
    with fake_provider(busy(status=400)) as provider:
        run = only_record(lambda: _failing(provider.url))
    assert (run.status, kinds(run)) == ("error", ["model"])
    assert run.steps[0].error is not None


def _failing(url: str) -> None:
    with pytest.raises(Exception, match="400"):
        plain_loops.chat(url)(ASKED)


def test_a_tool_that_fails_says_so_and_the_model_is_told():
    asks = calls("find_order", {"order_id": "ORD-1"})
    with fake_provider(in_turn(asks, says("There is no such order."))) as provider:
        run = only_record(lambda: plain_loops.chat(provider.url, plain_loops.recorded_lookup)("Where is ORD-1?"))

    tool = run.steps[1].call
    assert isinstance(tool, ToolCall)
    assert run.steps[1].error is not None
    assert tool.call_id == "call_live_1"
    assert judge(run).verdict in ("replayable", "replayable_to_step")


@pytest.mark.parametrize(
    ("given", "tell"),
    [
        ({"b": 1, "a": 2}, lambda it: json.dumps(it, sort_keys=True)),
        ({"b": 1, "a": 2}, str),
        ([1, 2], str),
        (7, str),
        (True, str),
        (None, str),
        ("shipped", lambda it: f"Result: {it}"),
        ({"b": 1}, lambda it: json.dumps({"result": it})),
        ({"b": 1}, json.dumps),
    ],
)
def test_words_that_a_loop_makes_of_an_answer_are_what_the_model_was_given(given, tell, monkeypatch):
    told = recorded_tool(kind="read", name="find_order")(lambda order_id: given)
    monkeypatch.setattr(plain_loops, "as_told", tell)
    with in_two_steps() as provider:
        run = only_record(lambda: plain_loops.chat(provider.url, told)(ASKED))

    tool = run.steps[1].call
    assert isinstance(tool, ToolCall)
    assert run.steps[1].extra.get("returned", given) == given
    assert_reproduced(run)


TWO_TURNS = [calls("find_order", {"order_id": order}, call_id=order) for order in ("ORD-1", "ORD-2")]


def of_two_turns(tool: Callable[..., Any], **around: Callable[..., Any]) -> Run:
    with fake_provider(in_turn(*TWO_TURNS, says(ANSWER))) as provider:
        loop = plain_loops.prepared_chat(provider.url, tool, **around)
        return only_record(lambda: _caught(lambda: loop(ASKED)))


def _caught(work: Callable[[], Any]) -> None:
    with contextlib.suppress(ValueError):
        work()


def _delivered(order_id: str) -> str:
    return f"{order_id} was delivered"


def _attempts(order_id: str) -> Any:
    errors: list[Exception] = [TimeoutError("slow"), TimeoutError("slow again")]

    @recorded_tool(kind="read")
    def find_order(order_id: str) -> str:
        if errors:
            raise errors.pop()
        return _delivered(order_id)

    while errors:
        with contextlib.suppress(TimeoutError):
            return find_order(order_id)
    return find_order(order_id)


def test_attempts_at_a_call_that_the_code_repeats_are_no_calls_of_the_model():
    run = of_two_turns(_attempts)

    of_model = [None, None, "ORD-1", None, None, "ORD-2"]
    assert [call.call_id for _, call in run.tool_calls] == of_model
    assert_reproduced(run)


def _warmed_up(order_id: str) -> Any:
    tool = recorded_tool(kind="read", name="find_order")(_delivered)
    tool("ORD-0")
    return tool(order_id)


def _asked_for_twice(order_id: str) -> Any:
    numbers = iter(range(2))
    tool = recorded_tool(kind="read", name="find_order")(lambda order_id: {"order": order_id, "call": next(numbers)})
    tool(order_id)
    return tool(order_id)


def _noted(order_id: str) -> Any:
    recorded_tool(kind="write", name="note")(lambda order_id: "noted")(order_id)
    return _delivered(order_id)


@pytest.mark.parametrize("tool", [_warmed_up, _asked_for_twice, _noted])
def test_a_recorded_tool_that_code_calls_by_itself_is_read_and_not_played(tool):
    run = of_two_turns(tool)

    assert_read_and_not_played(run, calls_of_code=2)


def assert_read_and_not_played(run: Run, *, calls_of_code: int) -> None:
    assert sum(step.extra.get("called_by_code") is True for step in run.steps) == calls_of_code
    assert assert_promise_kept(encode_native(run)).reasons == ()
    proof = replayed(encode_native(run))[0].facts["proof"]
    assert proof["not_played"] == {"tool": calls_of_code}


def test_what_code_loads_before_the_first_request_and_saves_behind_the_last_answer_is_not_played():
    load = recorded_tool(kind="read", name="load")(lambda: "Ana")
    save = recorded_tool(kind="write", name="save")(lambda answer: "saved")
    run = of_two_turns(_delivered, before=load, after=save)

    assert (run.steps[0].name, run.steps[-1].name, run.instructions) == ("load", "save", "Help Ana.")
    assert_read_and_not_played(run, calls_of_code=2)


def test_a_tool_of_the_codes_own_that_fails_behind_the_last_answer_is_judged():
    def save(answer: str) -> None:
        raise ValueError("disk full")

    run = of_two_turns(_delivered, after=recorded_tool(kind="write")(save))

    judged = assert_promise_kept(encode_native(run))
    assert [reason.code for reason in judged.reasons] == ["error_outside_loop"]


def test_a_call_of_the_model_that_is_said_to_be_one_of_code_lacks_its_step():
    record = json.loads(encode_native(of_two_turns(recorded_tool(kind="read", name="find_order")(_delivered))))
    step = next(step for step in record["steps"] if step["kind"] == "tool")
    del step["call_id"]
    step["called_by_code"] = True

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.code for reason in judged.reasons] == ["tool_step_missing"]


def test_a_changed_answer_of_a_tool_is_noticed():
    with in_two_steps() as provider:
        run = only_record(lambda: plain_loops.chat(provider.url)(ASKED))
    steps = [
        replace(step, call=replace(step.call, result=Payload.of_text("lost")))
        if isinstance(step.call, ToolCall)
        else step
        for step in run.steps
    ]

    result, _ = replayed(encode_native(replace(run, steps=tuple(steps))))

    assert result.verdict != "reproduced"


def test_requests_of_a_tool_and_to_others_are_no_steps():
    with local_server() as server, in_two_steps() as provider:
        server.answer("/v1/chat/completions", of_json({"choices": []}))
        server.answer("/orders", of_json(ORDER))

        @recorded_tool(kind="read", name="find_order")
        def asks_a_model(order_id: str) -> dict[str, str]:
            plain_loops.httpx.post(f"{server.url}/v1/chat/completions", json={"messages": []})
            plain_loops.httpx.get(f"{server.url}/orders")
            return plain_loops.ORDERS[order_id]

        run = only_record(lambda: plain_loops.chat(provider.url, asks_a_model)(ASKED))

    assert kinds(run) == ["model", "tool", "model"]


def test_a_record_that_was_read_once_is_not_read_again():
    with in_two_steps() as provider:
        run = only_record(lambda: plain_loops.chat(provider.url)(ASKED))

    assert with_conversation(run) is run
    again = parse_native(encode_native(run))
    assert (again.source_format, kinds(again)) == ("provider-http", ["model", "tool", "model"])


# --- requests that do not go on from each other --------------------------------------------------

Messages = list[dict[str, Any]]


def changed_body(record: bytes, step: int, change: Callable[[Messages], object]) -> Run:
    document = json.loads(record)
    http = document["steps"][step]["http"]
    body = json.loads(http["request_body"])
    change(body["messages"])
    http["request_body"] = json.dumps(body)
    return with_conversation(parse_native(json.dumps(document).encode()))


def requests_of(run: Run) -> Any:
    """What the replay says was proven of the requests; None where the judge said beforehand where it ends."""
    result, _ = replayed(encode_native(run))
    if judge(run).verdict != "replayable":
        assert result.verdict in (*ENDS, "could_not_run")
        return None
    assert (result.verdict, result.divergence) == ("reproduced", None)
    return result.facts["proof"]["requests"]["state"]


@pytest.fixture(scope="module")
def whole_record() -> bytes:
    asks = calls("find_order", {"order_id": "ORD-5521"})
    again = calls("find_order", {"order_id": "ORD-5521"}, call_id="call_live_2")
    with fake_provider(in_turn(asks, again, says(ANSWER))) as provider:
        (record,) = records_of(lambda: plain_loops.chat(provider.url)(ASKED))
    return record


def test_requests_that_go_on_from_each_other_are_proven(whole_record):
    assert requests_of(changed_body(whole_record, 2, lambda said: None)) == "proven"


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said[0].update(content="You are of no help."),
        lambda said: said.pop(0),
        lambda said: said[1].update(content=f"{ASKED}\n"),
        lambda said: said.insert(1, {"role": "system", "content": "Be brief."}),
        lambda said: said[2].update(content="Let me see."),
        lambda said: said[2]["tool_calls"][0].update(id="another"),
        lambda said: said[3].update(tool_call_id="another"),
        lambda said: said[3].pop("tool_call_id"),
        lambda said: said[3].update(content="lost"),
        lambda said: said.pop(3),
        lambda said: said[0].update(role="SYSTEM"),
        lambda said: said[1].update(role="user "),
        lambda said: said[3].update(role="function"),
        lambda said: said.append({"role": "system", "content": "Be brief."}),
        lambda said: said.append({"role": "user", "content": "Be brief."}),
        lambda said: said[-1].update(tool_call_id="another"),
        lambda said: said[-1].update(role="tóol"),
    ],
)
def test_a_request_that_tells_another_past_is_not_proven(whole_record, change):
    assert requests_of(changed_body(whole_record, 2, change)) != "proven"


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said[2]["tool_calls"][0].update(id="another"),
        lambda said: said[2].update(tool_calls=None, content="I shall look."),
    ],
)
def test_a_call_that_the_newest_request_tells_otherwise_is_no_answer_of_an_unknown_tool(whole_record, change):
    assert requests_of(changed_body(whole_record, 1, change)) != "proven"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda said: said[1].update(role="usér"), "the request of step 3 (fake-1) gives messages[1] differently"),
        (
            lambda said: said[2].update(content="Let me see."),
            "the request of step 3 gives the answer of step 1 differently",
        ),
    ],
)
def test_what_two_requests_tell_otherwise_is_named(whole_record, change, reason):
    result, _ = replayed(encode_native(changed_body(whole_record, 1, change)))

    assert reason in result.facts["proof"]["requests"]["reason"]


def test_a_mark_for_the_providers_cache_is_no_other_past(whole_record):
    def marked(said: Messages) -> None:
        said[1].update(content=[{"type": "text", "text": ASKED, "cache_control": {"type": "ephemeral"}}])

    assert requests_of(changed_body(whole_record, 1, marked)) == "proven"


def test_words_of_the_system_behind_those_of_a_user_are_judged_beforehand(whole_record):
    run = changed_body(whole_record, 0, lambda said: said.append({"role": "system", "content": "Be brief."}))

    assert (judge(run).verdict, judge(run).reasons[0].code) == ("cold", "message_from_code")


def test_a_request_without_a_message_of_a_user_is_judged_beforehand(whole_record):
    run = changed_body(whole_record, 0, lambda said: said.pop(1))

    assert (judge(run).verdict, judge(run).reasons[0].code) == ("cold", "prompt_missing")


def test_that_a_request_ends_with_words_of_the_model_is_told_once(whole_record):
    run = changed_body(whole_record, 0, lambda said: said.append({"role": "assistant", "content": "Let me see."}))

    assert [reason.code for reason in judge(run).reasons if reason.step == 1] == ["prompt_missing"]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_turns_that_stayed_with_the_provider_are_those_of_the_run_or_not_the_whole(is_recorded: bool):
    common = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-4o", "status": "completed"}
    asks = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find_order", "arguments": "{}"}
    words = {"type": "output_text", "text": ANSWER, "annotations": []}
    said = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [words]}
    with local_server() as server:
        answers = [of_json({**common, "output": [asks]}), of_json({**common, "output": [said]})]
        server.answer("/v1/responses", *answers)
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk-none")

        def begin(question: str) -> Any:
            return client.responses.create(model="gpt-4o", input=question)

        before = None if is_recorded else begin(ASKED)

        @record
        def support(question: str) -> str:
            first = before or begin(question)
            given: Any = [{"type": "function_call_output", "call_id": "c1", "output": "delivered"}]
            return client.responses.create(model="gpt-4o", previous_response_id=first.id, input=given).output_text

        run = only_record(lambda: support(ASKED))

    assert run.steps[-1].extra["previous_response_id"] == "resp_1"
    if is_recorded:
        assert [value(call.result) for _, call in run.tool_calls] == ["delivered"]
        assert_reproduced(run)
    else:
        assert judge(run).verdict != "replayable"


# --- an exchange that failed, and has an answer --------------------------------------------------

FAILURE = {"message": "Overloaded", "type": "server_error"}


def changed_answer(record: bytes, step: int, said: dict[str, Any], **http: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(record)
    exchange = document["steps"][step]["http"]
    exchange["response_body"] = json.dumps(json.loads(exchange["response_body"]) | said)
    exchange.update(http)
    return document


def read(document: dict[str, Any]) -> Run:
    return with_conversation(parse_native(json.dumps(document).encode()))


def reasons_of(run: Run) -> list[tuple[str, int | None]]:
    """What the judge says at ingest, and the replay keeps."""
    return [(each.code, each.step) for each in assert_promise_kept(encode_native(run)).reasons]


@pytest.mark.parametrize(
    ("said", "http"),
    [({"error": FAILURE}, {}), ({}, {"error": "ReadTimeout"}), ({}, {"status": 500}), ({}, {"status": 429})],
)
@pytest.mark.parametrize(("exchange", "step"), [(0, 1), (1, 3), (2, 5)])
def test_an_exchange_that_failed_and_has_an_answer_is_judged_at_its_step(said, http, exchange, step, whole_record):
    assert reasons_of(read(changed_answer(whole_record, exchange, said, **http))) == [("answer_contradicted", step)]


@pytest.mark.parametrize("said", [{"error": None}, {"status": None}, {"status": "completed"}])
def test_an_answer_that_names_no_error_is_as_before(said, whole_record):
    assert reasons_of(read(changed_answer(whole_record, 1, said))) == []


def answered_response() -> tuple[dict[str, Any], bytes]:
    """A whole answer of the Responses API, and the record of the loop that got it."""
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    whole = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    response = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [whole], "tools": []}
    with local_server() as server:
        server.answer("/v1/responses", of_json(response))
        (record,) = records_of(lambda: plain_loops.responses(f"{server.url}/v1")(ASKED))
    return response, record


@pytest.mark.parametrize(
    ("ended", "is_failure"),
    [
        ({"status": "failed", "error": FAILURE}, True),
        ({"status": "failed"}, True),
        ({"status": "in_progress"}, True),
        ({"status": "incomplete"}, True),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, False),
    ],
)
def test_a_response_that_is_not_complete_and_has_an_answer_is_judged(ended, is_failure):
    _, record = answered_response()

    assert reasons_of(read(changed_answer(record, 0, ended))) == ([("answer_contradicted", 1)] if is_failure else [])


OVERLOADED = f"data: {json.dumps({'type': 'error', 'error': FAILURE})}\n\n"
STOP = f"data: {json.dumps({'type': 'message_stop'})}\n\n"


@pytest.mark.parametrize(
    ("end", "code"), [(OVERLOADED + STOP, "answer_contradicted"), (OVERLOADED, "output_made_by_code")]
)
def test_a_stream_with_an_error_is_judged(end, code):
    with local_server() as server:
        server.answer("/v1/messages", message_events({"type": "text", "text": ANSWER}))
        (record,) = records_of(lambda: plain_loops.anthropic_messages(f"{server.url}/v1", is_streamed=True)(ASKED))
    document = json.loads(record)
    wire(document["steps"][0], "response_body", STOP, end)

    run = read(document)

    assert run.steps[0].error is not None
    assert [each.code for each in judge(run).reasons] == [code]


@pytest.mark.parametrize("status", [200, 400])
def test_a_run_that_goes_on_behind_a_failure_with_another_request_is_judged(status, whole_record):
    document = json.loads(whole_record)
    failed = json.loads(json.dumps(document["steps"][1]))
    failed["http"].update(status=status, response_body=json.dumps({"error": FAILURE}))
    wire(failed, "request_body", "You help", "You gladly help")
    document["steps"].insert(1, failed)

    assert reasons_of(read(document)) == [("model_answer_missing", 3)]


def test_an_error_with_the_status_of_success_that_the_client_repeats_is_no_call_of_the_model(whole_record):
    document = json.loads(whole_record)
    failed = json.loads(json.dumps(document["steps"][1]))
    failed["http"]["response_body"] = json.dumps({"error": FAILURE})
    document["steps"].insert(1, failed)

    run = read(document)

    assert kinds(run) == ["model", "tool", "other", "model", "tool", "model"]
    assert_reproduced(run)


# --- exported, and changed ---------------------------------------------------------------------


def wire(step: dict[str, Any], field: str, old: str, new: str) -> None:
    assert old in step["http"][field]
    step["http"][field] = step["http"][field].replace(old, new)


SAID_OTHERWISE: list[tuple[str, Callable[[dict[str, Any]], object], tuple[str, int]]] = [
    ("answer", lambda it: wire(it["steps"][2], "response_body", "delivered", "refused"), ("http_contradicted", 3)),
    ("status", lambda it: it["steps"][2]["http"].update(status=503), ("http_contradicted", 3)),
    ("prompt", lambda it: wire(it["steps"][0], "request_body", "Where is", "Cancel"), ("http_contradicted", 1)),
    ("error of a model", lambda it: it["steps"][2].update(error={"type": "E"}), ("answer_contradicted", 3)),
    ("error of a tool", lambda it: it["steps"][1].update(error={"type": "E"}), ("answer_contradicted", 2)),
    ("no instructions", lambda it: it.update(instructions=""), ("instructions_contradicted", 4)),
    ("model", lambda it: it.update(model="another-model"), ("model_contradicted", 4)),
]


@pytest.mark.parametrize(("what", "change", "reason"), SAID_OTHERWISE, ids=[each[0] for each in SAID_OTHERWISE])
def test_an_exported_run_that_says_two_things_is_judged_at_the_step(what, change, reason):
    with in_two_steps() as provider:
        run = only_record(lambda: plain_loops.chat(provider.url, plain_loops.recorded_lookup)(ASKED))
    exported = json.loads(encode_native(run))
    change(exported)

    changed = parse_native(json.dumps(exported).encode())

    assert [(each.code, each.step) for each in judge(changed).reasons] == [reason]
    assert replayed(encode_native(changed))[0].verdict != "reproduced"


def test_a_run_whose_requests_hold_no_system_prompt_has_no_instructions(monkeypatch):
    monkeypatch.setattr(plain_loops, "_begun", lambda question: [{"role": "user", "content": question}])
    with in_two_steps() as provider:
        run = only_record(lambda: plain_loops.chat(provider.url)(ASKED))
    assert_reproduced(run)

    judged = judge(replace(run, instructions="You help."))

    assert [(each.code, each.step) for each in judged.reasons] == [("instructions_contradicted", 4)]


def streamed_chat_that_counts() -> Run:
    asks = events(piece("", id="c1"), piece('{"order_id": "ORD-5521"}') | {"usage": counted(12, 7)})
    answers = events(chunk(content="It was "), chunk(content="delivered.") | {"usage": counted(22, 9)})
    with fake_provider(in_turn(asks, answers)) as provider:
        return only_record(lambda: plain_loops.streamed_chat(provider.url)(ASKED))


def counted(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def streamed_messages_that_count() -> Run:
    def whole(block: dict[str, Any], delta: dict[str, Any], out: int) -> Answer:
        return events(
            {"type": "message_start", "message": {**MESSAGE, "content": [], "usage": {"input_tokens": 12}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": out}},
            {"type": "message_stop"},
            end="",
        )

    with local_server() as server:
        asks = whole({**USE, "input": {}}, {"type": "input_json_delta", "partial_json": '{"order_id": "ORD-5521"}'}, 7)
        said = whole({"type": "text", "text": ""}, {"type": "text_delta", "text": ANSWER}, 9)
        server.answer("/v1/messages", asks, said)
        return only_record(lambda: plain_loops.anthropic_messages(f"{server.url}/v1", is_streamed=True)(ASKED))


@pytest.mark.parametrize("make", [streamed_chat_that_counts, streamed_messages_that_count])
@pytest.mark.parametrize(("step", "old", "new"), [(2, 'tokens": 9', 'tokens": 90'), (0, 'tokens": 12', 'tokens": 120')])
def test_tokens_that_a_stream_counts_otherwise_than_its_step_are_judged_at_the_step(make, step, old, new):
    run = make()
    exported = json.loads(encode_native(run))
    wire(exported["steps"][step], "response_body", old, new)

    changed = parse_native(json.dumps(exported).encode())

    assert_reproduced(run)
    assert [(each.code, each.step) for each in judge(changed).reasons] == [("http_contradicted", step + 1)]
    assert replayed(encode_native(changed))[0].verdict != "reproduced"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (ASKED, None),
        ("ORD-5521", "the prompt holds more than the run's input, and the code that made it did not run"),
        ("A customer asks for help.", "the input of the run is not in its first request"),
        ("WHERE IS ORD-5521?", "the input of the run gives the prompt differently"),
        ("Where is ORD-5522?", "the input of the run gives the prompt differently"),
        ("Where is ORD-5521? Hurry.", "the input of the run gives the prompt differently"),
    ],
)
def test_a_prompt_that_is_not_the_input_is_no_proven_request_and_blocks_nothing(asked, words):
    with in_two_steps() as provider:
        run = only_record(lambda: plain_loops.chat(provider.url, plain_loops.find_order)(ASKED))

    result, _ = replayed(encode_native(replace(run, input=Payload.of_text(asked))))

    requests = result.facts["proof"]["requests"]
    assert (result.verdict, requests["state"]) == ("reproduced", "not_comparable" if words else "proven")
    assert requests["reason"] == (words and f"the requests agree; {words}")


PICTURED: dict[str, Any] = {
    "role": "user",
    "name": "ana",
    "content": [
        {"type": "text", "text": ASKED},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
    ],
}
GIVEN = "the messages in the input of the run show an image in another detail, or name another user"
BEFORE = "the request of step 3 (fake-1) gives messages[1] differently from the one before it"


def _with_picture(record: dict[str, Any], first: str, later: str, given: str | None) -> Run:
    """The prompt as the function was given it, and as its two requests hold it."""
    requests = [step["http"] for step in record["steps"] if step["kind"] == "model"]
    for http, said in zip(requests, (first, later), strict=True):
        body = json.loads(http["request_body"])
        body["messages"] = [json.loads(said) if each["role"] == "user" else each for each in body["messages"]]
        http["request_body"] = json.dumps(body)
    record["input"] = {"messages": [json.loads(given)]} if given is not None else ASKED
    return with_conversation(parse_native(json.dumps(record).encode()))


@pytest.mark.parametrize(("old", "new"), [('"low"', '"high"'), ('"ana"', '"eve"')])
@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("place", [None, "given", "later"])
def test_the_detail_of_an_image_and_the_name_of_a_user_are_those_of_the_other_copies(place, is_given, old, new):
    said = json.dumps(PICTURED)
    other = said.replace(old, new)
    with in_two_steps() as provider:
        (record,) = records_of(lambda: plain_loops.chat(provider.url, plain_loops.find_order)(ASKED))
    given = (other if place == "given" else said) if is_given else None

    run = _with_picture(json.loads(record), said, other if place == "later" else said, given)

    requests = replayed(encode_native(run))[0].facts["proof"]["requests"]
    words = {"given": GIVEN if is_given else None, "later": BEFORE}.get(place or "")
    assert requests["reason"] == (words and f"the requests agree; {words}")


@pytest.mark.parametrize(
    ("said", "is_another"),
    [
        ([("output_text.delta", "delta", "It was "), ("output_text.delta", "delta", "delivered.")], False),
        ([("output_text.delta", "delta", "It was "), ("output_text.delta", "delta", "returned.")], True),
        ([("output_text.delta", "delta", "It was ")], True),
        ([("output_text.done", "text", ANSWER)], False),
        ([("output_text.done", "text", "It was returned.")], True),
        ([], False),
    ],
)
def test_a_streamed_response_whose_pieces_are_not_those_of_its_end_is_named(said, is_another):
    response, record = answered_response()
    place = {"output_index": 0, "content_index": 0}
    pieces = [{"type": f"response.{kind}", **place, name: value} for kind, name, value in said]
    ended = {"type": "response.completed", "response": response}
    document = json.loads(record)
    document["steps"][0]["http"]["response_body"] = events(*pieces, ended, end="").body.decode()

    result, _ = replayed(encode_native(with_conversation(parse_native(json.dumps(document).encode()))))

    requests = result.facts["proof"]["requests"]
    assert result.verdict == "reproduced"
    assert is_another == ("are given in two ways" in (requests["reason"] or ""))
