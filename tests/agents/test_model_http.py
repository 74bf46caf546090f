"""The recorded HTTP of a model's step is held against what the step says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelRetry, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import TextPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.openai_provider import Provider, calls, provider, says
from tests.recorder.playing import WAYS, recorded
from tests.recorder.replaying import assert_promise_kept
from tests.recorder.scenarios import Play, Scripted
from tests.recorder.scenarios import says as scripted

Record = dict[str, Any]
PROTOCOLS: dict[str, Any] = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider() as found:
        yield found


def record_of(server: Provider, protocol: str = "chat", way: str = "run") -> Record:
    """Two requests: words beside two calls, of which one has no arguments, and words."""
    asked = (("add", '{"x": 1.0, "y": "é"}', "c1"), ("now", "", "c2"))
    beside = None if way.startswith("run_stream") else "Let me see.\u2028"
    server.will_answer(calls(*asked, text=beside), says(" It is done.\n"))
    model = PROTOCOLS[protocol]("gpt-4o", provider=OpenAIProvider(openai_client=server.client))
    agent = Agent(model, name="adder")

    @agent.tool_plain
    def add(x: float, y: str) -> float:
        return x + len(y)

    @agent.tool_plain
    def now() -> str:
        return "12:00"

    record: Record = json.loads(recorded(Play(agent, "go"), way, http=True)[0])
    return record


def reasons_of(record: Record) -> list[tuple[str, int | None]]:
    judged = assert_promise_kept(json.dumps(record).encode())
    return [(reason.code, reason.step) for reason in judged.reasons]


def replaced(field: str, old: str, new: str) -> Callable[[Record], None]:
    def change(http: Record) -> None:
        assert old in http[field]
        http[field] = http[field].replace(old, new)

    return change


@pytest.mark.parametrize(
    ("protocol", "way"), [*(("chat", way) for way in sorted(WAYS)), ("responses", "run"), ("responses", "iter")]
)
def test_what_came_over_the_wire_is_what_the_steps_say(protocol: str, way: str, server: Provider):
    assert reasons_of(record_of(server, protocol, way)) == []


def set_status(http: Record) -> None:
    http["status"] = 500


def set_moved(http: Record) -> None:
    http["status"] = 302


@pytest.mark.parametrize(
    ("step", "change", "words"),
    [
        (4, replaced("response_body", "done", "undone"), "another text"),
        (4, set_status, "status 500"),
        (1, set_status, "status 500"),
        (4, set_moved, "status 302"),
        (4, lambda http: http.update(error={"type": "httpx.ReadTimeout"}), "says that the request failed"),
        (
            4,
            replaced("response_body", '"choices"', '"error": {"message": "boom"}, "choices"'),
            "says that the request failed",
        ),
        (1, replaced("response_body", '"c1"', '"c3"'), "another call than that of add"),
        (1, replaced("response_body", '"now"', '"then"'), "another call than that of now"),
        (1, replaced("response_body", "1.0", "1"), "another call than that of add"),
        (1, replaced("response_body", "Let me see", "Let me not see"), "another text"),
    ],
)
def test_http_that_says_otherwise_is_judged_at_its_step(step: int, change: Any, words: str, server: Provider):
    record = record_of(server)

    change(record["steps"][step - 1]["http"])

    (reason,) = judge(parse_native(json.dumps(record).encode())).reasons
    assert (reason.code, reason.step) == ("http_contradicted", step)
    assert words in reason.message
    assert reasons_of(record) == [("http_contradicted", step)]


EMPTIED: dict[str, list[Record]] = {
    "chat": [
        {"choices": []},
        {"choices": None},
        {"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop", "index": 0}]},
    ],
    "responses": [{"output": []}, {"output": None}],
}


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize(("protocol", "emptied"), [(name, each) for name, some in EMPTIED.items() for each in some])
def test_http_without_the_answer_of_a_step_is_judged(protocol: str, emptied: Record, step: int, server: Provider):
    record = record_of(server, protocol)
    assert reasons_of(record) == []

    http = record["steps"][step - 1]["http"]
    http["response_body"] = json.dumps(json.loads(http["response_body"]) | emptied)

    assert reasons_of(record) == [("http_contradicted", step)]


@pytest.mark.parametrize("way", ["run_stream", "run_stream_events"])
def test_a_stream_that_says_otherwise_is_judged(way: str, server: Provider):
    record = record_of(server, way=way)

    http = record["steps"][3]["http"]
    replaced("response_body", "It is done", "It is not done")(http)

    assert reasons_of(record) == [("http_contradicted", 4)]
    http["incomplete"] = True  # as clients leave a stream behind its last event
    assert reasons_of(record) == [("http_contradicted", 4)]
    http["response_body"] = http["response_body"].replace("[DONE]", "")
    assert reasons_of(record) == []


def masking(response: Any) -> Any:
    for part in response.parts:
        if isinstance(part, TextPart):
            part.content = part.content.replace("secret", "***")
    return response


def test_the_answer_of_a_step_is_held_against_the_wire_as_hooks_were_given_it(server: Provider):
    server.will_answer(calls(("add", '{"x": 1}', "c1"), text="A secret."), says("Done."))
    hooks: Hooks[Any] = Hooks()

    @hooks.on.after_model_request
    async def mask(ctx: Any, *, request_context: Any, response: Any) -> Any:
        return masking(response)

    record = adder(server, capabilities=[hooks])
    assert "***" in json.dumps(record["steps"][0]["response"])
    assert reasons_of(record) == []

    replaced("response_body", "secret", "open word")(record["steps"][0]["http"])

    assert reasons_of(record) == [("http_contradicted", 1)]


def test_arguments_that_are_no_json_go_out_under_a_name_of_the_library(server: Provider):
    server.will_answer(calls(("add", '{"x": 1', "c1")), calls(("add", '{"x": 1}', "c2")), says("Done."))
    record = adder(server)
    assert "INVALID_JSON" in record["steps"][2]["http"]["request_body"]
    assert reasons_of(record) == []

    replaced("request_body", "INVALID_JSON", "OTHER")(record["steps"][2]["http"])

    assert reasons_of(record) == [("http_contradicted", 3)]


def adder(server: Provider, **arguments: Any) -> Record:
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=server.client))
    agent = Agent(model, name="adder", **arguments)

    @agent.tool_plain
    def add(x: float) -> float:
        return x

    record: Record = json.loads(recorded(Play(agent, "go"), http=True)[0])
    return record


def a_call_less(http: Record) -> None:
    body = json.loads(http["response_body"])
    del body["choices"][0]["message"]["tool_calls"][1]
    http["response_body"] = json.dumps(body)


def test_a_call_that_the_wire_does_not_hold_is_judged(server: Provider):
    record = record_of(server)

    a_call_less(record["steps"][0]["http"])

    assert reasons_of(record) == [("http_contradicted", 1)]


@pytest.mark.parametrize(
    "beside",
    [
        {"body_cut": True},
        {"incomplete": True},
        {"response_body": '{"other": "protocol"}'},
        {"response_body": None},
    ],
)
def test_http_that_does_not_hold_the_answer_contradicts_nothing(beside: Record, server: Provider):
    record = record_of(server)
    http = record["steps"][3]["http"]
    replaced("response_body", "done", "undone")(http)

    http.update(beside)

    assert reasons_of(record) == []


def test_what_was_redacted_on_one_side_contradicts_nothing(server: Provider):
    record = record_of(server)

    replaced("response_body", "done", "[email:1a2b3c4d]")(record["steps"][3]["http"])

    assert reasons_of(record) == []


# --- what was sent -----------------------------------------------------------------------------


def told_much(server: Provider, protocol: str, way: str = "run") -> Record:
    """Two turns with instructions, system prompts, a file, a refused answer, an output tool, and calls that fail."""
    asked = (("look", '{"page": 1}', "c1"), ("look", '{"page": 2}', "c2"), ("look", '{"page": 3}', "c3"))
    server.will_answer(
        calls(*asked), calls(("final_result", '{"n": 1}', "o1")), calls(("final_result", '{"n": 2}', "o2"))
    )
    model = PROTOCOLS[protocol]("gpt-4o", provider=OpenAIProvider(openai_client=server.client))
    agent = Agent(model, instructions="Be brief.\n\n  Be kind.", system_prompt=("You count.", "You never guess."))
    before = Scripted(scripted("Hello."))

    @agent.tool_plain
    def look(page: int) -> Any:
        if page == 2:
            raise ModelRetry("There is no page 2.")
        return "A page\nof two lines" if page == 1 else {"text": ["é"]}

    first = asyncio.run(agent.run("Hi.\nAre you there?", model=before)).all_messages()
    picture = BinaryContent(data=b"abc", media_type="image/png")
    play = Play(agent, ["Count the ", picture, "pages."], message_history=first, output_type=ToolOutput(check))
    record: Record = json.loads(recorded(play, way, http=True)[-1])
    return record


def check(n: int) -> int:
    if n == 1:
        raise ModelRetry("Not one.")
    return n


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_went_over_the_wire_is_what_the_steps_say(protocol: str, server: Provider):
    record = told_much(server, protocol)

    exchanges = [step["http"]["request_body"] for step in record["steps"] if step["kind"] == "model"]
    assert ["Are you there?" in body and "Be kind." in body for body in exchanges] == [True] * 3
    assert "http_contradicted" not in [code for code, _ in reasons_of(record)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_prompt_that_went_out_once_and_stands_twice_is_judged(protocol: str, server: Provider):
    record = told_much(server, protocol)
    (request,) = record["steps"][0]["request"]["messages"]
    prompts = [part for part in request["parts"] if part["part_kind"] == "user-prompt"]

    request["parts"] += prompts

    assert ("http_contradicted", 1) in reasons_of(record)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("step", "old", "new", "words"),
    [
        (1, "Are you there?", "Are you here?", "another prompt"),
        (1, "pages.", "books.", "another prompt"),
        (6, "Count the ", "Forget the ", "another prompt"),
        (1, "You never guess.", "You guess.", "other instructions"),
        (5, "Be kind.", "Be unkind.", "other instructions"),
        (5, "of two lines", "of three lines", "another answer of a tool"),
    ],
)
def test_a_request_that_went_out_otherwise_is_judged_at_its_step(
    protocol: str, step: int, old: str, new: str, words: str, server: Provider
):
    record = told_much(server, protocol)
    models = [index for index, each in enumerate(record["steps"]) if each["kind"] == "model"]
    place = {1: models[0], 5: models[1], 6: models[2]}[step]

    replaced("request_body", old, new)(record["steps"][place]["http"])

    reasons = [
        each for each in judge(parse_native(json.dumps(record).encode())).reasons if each.code == "http_contradicted"
    ]
    assert [(each.step, words in each.message) for each in reasons] == [(place + 1, True)]
    reasons_of(record)


def test_a_prompt_that_only_the_wire_holds_is_judged(server: Provider):
    record = record_of(server)

    replaced("request_body", '"content":"go"', '"content":"go\\nand pay"')(record["steps"][3]["http"])

    assert reasons_of(record) == [("http_contradicted", 4)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("old", "new"), [("base64,YWJj", "base64,eHl6"), ('"detail":"low"', '"detail":"high"')])
def test_another_image_that_went_out_is_judged(protocol: str, old: str, new: str, server: Provider):
    server.will_answer(says("A cat."))
    model = PROTOCOLS[protocol]("gpt-4o", provider=OpenAIProvider(openai_client=server.client))
    picture = BinaryContent(data=b"abc", media_type="image/png", vendor_metadata={"detail": "low"})
    record: Record = json.loads(recorded(Play(Agent(model), ["What is this?", picture]), http=True)[0])
    assert reasons_of(record) == []

    replaced("request_body", old, new)(record["steps"][0]["http"])

    assert reasons_of(record) == [("http_contradicted", 1)]


def test_an_earlier_answer_that_only_the_wire_tells_so_is_judged(server: Provider):
    record = record_of(server)

    replaced("request_body", "Let me see", "Let me not see")(record["steps"][3]["http"])

    assert reasons_of(record) == [("http_contradicted", 4)]


@pytest.mark.parametrize(
    ("sent", "found"),
    [("Weigh it.", []), (None, []), ("Guess.", [("http_contradicted", 4)])],
    ids=["as it was", "left out", "another"],
)
def test_an_earlier_thought_that_only_the_wire_tells_so_is_judged(sent: str | None, found: Any, server: Provider):
    record = record_of(server, "responses")
    record["steps"][0]["response"]["parts"].insert(0, {"part_kind": "thinking", "content": "Weigh it.", "id": "rs_1"})

    if sent is not None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": sent}]}
        in_body(lambda body: body["input"].insert(1, thought))(record["steps"][3]["http"])

    assert reasons_of(record) == found


ADD: Record = {"properties": {"x": {"type": "number"}, "y": {"type": "string"}}, "type": "object"}
NOW: Record = {"properties": {}, "type": "object"}
SCHEMAS = {"add": ADD, "now": NOW}
GOOGLE = [{"functionDeclarations": [{"name": name, "parameters": each} for name, each in SCHEMAS.items()]}]
ANTHROPIC = [{"name": name, "input_schema": each} for name, each in SCHEMAS.items()]
BEDROCK = [{"toolSpec": {"name": name, "inputSchema": {"json": each}}} for name, each in SCHEMAS.items()]
ASKED = {"role": "user", "content": [{"text": "go"}]}


@pytest.mark.parametrize(
    "beside",
    [
        {"request_body": None},
        {"request_body_cut": True},
        {"request_body": '{"previous_response_id": "r1", "input": [{"role": "user", "content": "x"}]}'},
        {"request_body": '{"other": "protocol"}'},
        {"request_body": '{"messages": [{"role": "user", "content": "[email:1a2b3c4d]"}]}'},
        {"request_body": json.dumps({"contents": [{"role": "user", "parts": [{"text": "go"}]}], "tools": GOOGLE})},
        {"request_body": json.dumps({"messages": [ASKED | {"type": "text"}], "tools": ANTHROPIC})},
        {"request_body": json.dumps({"messages": [ASKED], "inferenceConfig": {}, "toolConfig": {"tools": BEDROCK}})},
    ],
    ids=["none", "cut", "continued", "unknown", "redacted", "google", "anthropic", "bedrock"],
)
def test_a_request_of_which_the_prompt_is_not_known_or_the_same_contradicts_nothing(beside: Record, server: Provider):
    record = record_of(server)
    replaced("request_body", '"go"', '"stop"')(record["steps"][0]["http"])
    assert judge(parse_native(json.dumps(record).encode())).reasons != ()

    record["steps"][0]["http"].update(beside)

    assert reasons_of(record) == []


# --- what was sent beside the words ------------------------------------------------------------


def in_body(change: Callable[[Record], object], field: str = "request_body") -> Callable[[Record], None]:
    def changed(http: Record) -> None:
        body = json.loads(http[field])
        change(body)
        http[field] = json.dumps(body)

    return changed


def another_id(body: Record) -> None:
    next(each for each in body["messages"] if each["role"] == "tool")["tool_call_id"] = "c9"


def other_arguments(body: Record) -> None:
    asked = next(each for each in body["messages"] if each.get("tool_calls"))
    asked["tool_calls"][0]["function"]["arguments"] = '{"x": 2.0, "y": "é"}'


BESIDE: list[tuple[int, Callable[[Record], object], str, str]] = [
    (1, lambda body: body.pop("tools"), "request_body", "does not offer the tool add"),
    (1, lambda body: body["tools"].pop(), "request_body", "does not offer the tool now"),
    (1, lambda body: body["tools"][1]["function"].update(name="then"), "request_body", "does not offer the tool now"),
    (1, lambda body: body["tools"].append(tool_named("pay")), "request_body", "offers the tool pay"),
    (1, lambda body: fields_of(body).pop("x"), "request_body", "with other arguments"),
    (1, lambda body: body.update(model="gpt-4.1"), "request_body", "asks gpt-4.1, the step gpt-4o"),
    (1, lambda body: body.update(temperature=0.7), "request_body", "with the temperature 0.7"),
    (1, lambda body: body.update(response_format={"type": "json_schema"}), "request_body", "an output by a schema"),
    (4, another_id, "request_body", "an answer to a call that"),
    (4, other_arguments, "request_body", "another call of add"),
    (4, lambda body: body["choices"][0].update(finish_reason="length"), "response_body", "ends with length"),
    (4, lambda body: body.update(model="gpt-4.1"), "response_body", "is the answer of gpt-4.1"),
    (1, lambda body: body.update(response_format={"type": "json_object"}), "request_body", "or as JSON"),
    (4, lambda body: body["usage"].update(completion_tokens=99), "response_body", "counts 99 tokens of the answer"),
    (4, lambda body: body["usage"].update(prompt_tokens=99), "response_body", "counts 99 tokens of the request"),
]


def tool_named(name: str) -> Record:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


def fields_of(body: Record) -> Record:
    fields: Record = body["tools"][0]["function"]["parameters"]["properties"]
    return fields


@pytest.mark.parametrize(
    "builtin",
    [{"type": "web_search"}, {"type": "web_search_20250305", "name": "web_search"}, {"google_search": {}}],
    ids=["openai", "anthropic", "google"],
)
def test_tools_that_a_provider_runs_itself_are_no_contradiction(builtin: Record, server: Provider):
    record = record_of(server)

    in_body(lambda body: body["tools"].append(builtin))(record["steps"][0]["http"])

    assert reasons_of(record) == []


@pytest.mark.parametrize(("step", "change", "field", "words"), BESIDE, ids=[each[-1] for each in BESIDE])
def test_what_was_sent_beside_the_words_is_held_against_the_step(
    step: int, change: Callable[[Record], object], field: str, words: str, server: Provider
):
    record = record_of(server)

    in_body(change, field)(record["steps"][step - 1]["http"])

    (reason,) = judge(parse_native(json.dumps(record).encode())).reasons
    assert (reason.code, reason.step) == ("http_contradicted", step)
    assert words in reason.message
    assert reasons_of(record) == [("http_contradicted", step)]


class Refund(BaseModel):
    order: str
    amount: float


def refunded(protocol: str, output: Any, server: Provider) -> Record:
    server.will_answer(says('{"order": "A", "amount": 2.5}'))
    model = PROTOCOLS[protocol]("gpt-4o", provider=OpenAIProvider(openai_client=server.client))
    record: Record = json.loads(recorded(Play(Agent(model, output_type=output), "go"), http=True)[0])
    return record


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_output_as_json_is_that_of_the_step(protocol: str, server: Provider):
    assert reasons_of(refunded(protocol, PromptedOutput(Refund), server)) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_output_by_a_schema_has_the_fields_of_the_step(protocol: str, server: Provider):
    record = refunded(protocol, NativeOutput(Refund), server)
    assert reasons_of(record) == []

    replaced("request_body", '"amount":', '"total":')(record["steps"][0]["http"])

    assert ("http_contradicted", 1) in reasons_of(record)
