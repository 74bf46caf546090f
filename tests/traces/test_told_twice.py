"""What a tool's own span and the run's span say of what the model's spans say too: as it is, or judged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.assembly.contradictions import are_other_arguments, is_another_name, is_another_text
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.replay.told_twice import arguments_told_otherwise, outcome_told_otherwise
from sessions_app.core.spans.span import Span
from tests.core.test_assembly import agent, asks, chat, gives, made, text, tool
from tests.recorder.replaying import replayed

QUESTION, DONE = text("user", "Where is order 7?"), "It is in Oslo by now."
STOP_EVENT = (
    "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, additional_kwargs={},"
    " blocks=[TextBlock(block_type='text', "
)
"""How LlamaIndex prints what its agents end with."""


def order_run(run: dict[str, Any] | None = None, name: str = "lookup", arguments: Any = None) -> list[Span]:
    """`run` are attributes of the topmost span, the others are the tool's."""
    said = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": arguments or {"id": "7"}}
    return [
        agent(**run or {}),
        chat(2, [QUESTION], asks("c1", id="7")),
        tool(3, name=name, **{"gen_ai.tool.call.result": "in Oslo", **said}),
        chat(4, [QUESTION, asks("c1", id="7"), gives("in Oslo")], text("assistant", DONE)),
    ]


@pytest.mark.parametrize(
    ("spans", "step", "code", "path"),
    [
        (order_run(arguments={"id": "8"}), 2, "call_contradicted", "args.id"),
        (order_run(arguments="order 8"), 2, "call_contradicted", "args"),
        (order_run(name="cancel"), 2, "call_contradicted", "steps[1]"),
        (order_run({"final_result": "No such order."}), 4, "output_made_by_code", "output"),
        (order_run({"final_result": "It is in Oslo by no."}), 4, "output_made_by_code", "output"),
        (order_run({"final_result": f"{STOP_EVENT}text='It is in Rome..."}), 4, "output_made_by_code", "output"),
        (order_run({"final_result": f"{STOP_EVENT}text='{DONE} Or not.')]))"}), 4, "output_made_by_code", "output"),
        (order_run({"final_result": f"RunResult(output='{DONE[:20]}.."}), 4, "output_made_by_code", "output"),
        (order_run({"gen_ai.input.messages": [text("user", "Cancel it.")]}), 4, "input_contradicts", "input"),
    ],
    ids=[
        "arguments",
        "arguments as text",
        "name",
        "output",
        "shorter output",
        "other print",
        "more in print",
        "unknown print",
        "input",
    ],
)
def test_what_two_spans_say_otherwise_is_judged_and_never_reproduced(spans, step, code, path):
    run = made(spans)

    judged = judge(run)
    result, _ = replayed(encode_native(run))
    found = compare_runs(made(order_run()), run).divergence

    assert code in [reason.code for reason in judged.reasons]
    assert [reason.step for reason in judged.reasons if reason.code == code] == [step]
    assert result.verdict != "reproduced"
    assert found is not None
    assert found.path.startswith(path)


@pytest.mark.parametrize(
    "spans",
    [
        order_run(),
        order_run(arguments={"id": 7, "unit": "km"}),
        order_run(arguments="7"),
        order_run(name="shop-lookup"),
        order_run({"final_result": DONE}),
        order_run({"final_result": f"{STOP_EVENT}text='{DONE[:9]}..."}),
        order_run({"final_result": f"{STOP_EVENT}text='{DONE}')]), tool_calls=[]))"}),
        order_run({"gen_ai.input.messages": [QUESTION]}),
    ],
    ids=[
        "the same",
        "more of them",
        "as text",
        "of a server",
        "output",
        "output in a cut print",
        "output in print",
        "input",
    ],
)
def test_what_is_only_told_otherwise_is_reproduced(spans):
    run = made(spans)

    assert judge(run).reasons == ()
    assert replayed(encode_native(run))[0].verdict == "reproduced"


INSTRUCTIONS = "gen_ai.system_instructions"


def instructed_run(*said: str | None) -> list[Span]:
    """By the run's own span, the first request and the second."""
    spans = order_run()
    for place, text_said in zip((0, 1, 3), said, strict=True):
        parts = {} if text_said is None else {INSTRUCTIONS: [{"type": "text", "content": text_said}]}
        spans[place] = replace(spans[place], attributes={**spans[place].attributes, **parts})
    return spans


def proof_of(spans: list[Span]) -> dict[str, Any]:
    result, _ = replayed(encode_native(made(spans)))
    assert result.verdict == "reproduced"
    return dict(result.facts["proof"])


def test_instructions_of_the_run_that_its_first_request_was_not_sent_with_are_judged():
    run = made(instructed_run("Be kind.", "Be rude.", "Be rude."))

    assert [(reason.code, reason.step) for reason in judge(run).reasons] == [("instructions_contradicted", 4)]
    assert replayed(encode_native(run))[0].verdict != "reproduced"


@pytest.mark.parametrize("second", ["Be rude.", None])
def test_instructions_of_a_later_request_that_are_not_those_of_the_first_are_not_proven(second):
    proof = proof_of(instructed_run("Be kind.", "Be kind.", second))["requests"]

    assert proof["state"] == "not_comparable"
    assert "the instructions of 1 request are not those of the first" in proof["reason"]


@pytest.mark.parametrize("own", ["Be kind.", " Be kind.\n", "Be k…", None])
def test_instructions_that_all_spans_tell_alike_are_proven(own):
    spans = instructed_run(own, "Be kind.", "Be kind.")

    assert judge(made(spans)).reasons == ()
    assert proof_of(spans)["requests"]["state"] == "proven"


def test_instructions_of_an_agent_that_leaves_the_asking_to_others_are_another_thing():
    spans = instructed_run("Lead.", "Be kind.", "Be kind.")
    inner = agent(9, 1)
    spans[1:] = [inner, *(replace(span, parent_id=inner.span_id) for span in spans[1:])]

    assert judge(made(spans)).reasons == ()


@pytest.mark.parametrize(
    ("said", "is_another"),
    [({"id": "7", "unit": "km"}, True), ({"unit": "km"}, True), ("a question", True), ({"id": 7}, True), ("7", False)],
)
def test_arguments_that_a_tools_span_tells_beside_those_of_the_model_are_named(said, is_another):
    asked = {"n": 7} if said == "a question" else {"id": "7"}
    spans = order_run(arguments=said)
    spans[1] = chat(2, [QUESTION], asks("c1", **asked))
    spans[3] = chat(4, [QUESTION, asks("c1", **asked), gives("in Oslo")], text("assistant", DONE))

    found = proof_of(spans)["tool_arguments"]
    assert found["state"] == "not_comparable"
    assert (arguments_told_otherwise(made(spans)) == found["reason"]) is is_another


@pytest.mark.parametrize(
    ("ids", "is_another"),
    [(("a", "b"), False), (("a", "a"), True), (("a", "zz"), True), (("x", "y"), True), (("adk-x", "adk-y"), False)],
    ids=["of the calls", "of another call", "of no call", "of no call in each span", "of Google's ADK"],
)
def test_a_tools_span_that_names_another_call_is_named(ids, is_another):
    spans = results_run(gives("one", "a"), gives("two", "b"))
    for number, (call_id, given, result) in enumerate(zip(ids, "12", ("one", "two"), strict=True), start=4):
        said = {"gen_ai.tool.call.id": call_id, "gen_ai.tool.call.result": result}
        spans.append(tool(number, **said, **{"gen_ai.tool.call.arguments": {"id": given}}))

    found = proof_of(spans)["tool_arguments"]
    assert found["state"] == "not_comparable"
    assert (arguments_told_otherwise(made(spans)) == found["reason"]) is is_another


def results_run(*results: dict[str, Any]) -> list[Span]:
    both = {"role": "assistant", "parts": [*asks("a", id="1")["parts"], *asks("b", id="2")["parts"]]}
    return [agent(), chat(2, [QUESTION], both), chat(3, [QUESTION, both, *results], text("assistant", DONE))]


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ((gives("one", "a"), gives("two", "b")), None),
        ((gives("two", "b"), gives("one", "a")), "stood in another order than the calls"),
        ((gives("one", "zz"), gives("two", "b")), "had ids of no open call"),
        ((gives("one", "a"), gives("two", "a")), "had ids of no open call"),
    ],
    ids=["as asked", "another order", "another id", "an id twice"],
)
def test_results_that_a_request_tells_otherwise_are_not_proven(results, reason):
    proof = proof_of(results_run(*results))["requests"]

    assert proof["state"] == ("not_comparable" if reason else "proven")
    assert (reason or "") in (proof["reason"] or "")


PLACE = {"city": "Oslo", "days": [{"at": 1, "to": 2}]}


@pytest.mark.parametrize(
    ("told", "is_another"),
    [
        ({"days": PLACE["days"], "city": "Oslo"}, True),
        ({"city": "Oslo", "days": [{"to": 2, "at": 1}]}, True),
        ('{"days": [{"at": 1, "to": 2}], "city": "Oslo"}', True),
        (PLACE, False),
        ('{"city":"Oslo", "days": [{"at": 1, "to": 2}]}', False),
        (str(PLACE), False),
    ],
    ids=["outside", "inside", "as text", "the same", "the same as text", "as Python prints it"],
)
def test_results_whose_keys_a_tools_span_tells_in_another_order_are_not_proven(told, is_another):
    spans = order_run()
    spans[2].attributes["gen_ai.tool.call.result"] = PLACE
    spans[3] = chat(4, [QUESTION, asks("c1", id="7"), gives(told)], text("assistant", DONE))

    requests = proof_of(spans)["requests"]

    assert requests["state"] == ("not_comparable" if is_another else "proven")
    assert is_another == ("gives the result with its keys in another order" in (requests["reason"] or ""))


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def defined(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": "lookup", "description": "Where it is.", "parameters": SCHEMA, **fields}


@pytest.mark.parametrize(
    ("definitions", "is_another"),
    [
        ([defined(description="Deletes it.")], True),
        ([defined(parameters={**SCHEMA, "required": []})], True),
        ([defined(parameters={**SCHEMA, "properties": {}})], True),
        ([defined()], False),
        ([defined(), defined(name="of_nobody")], True),
    ],
    ids=["description", "required", "properties", "the same", "another tool"],
)
def test_a_tool_that_a_span_defines_in_two_ways_is_not_proven(definitions, is_another):
    registered = {"name": "lookup", "description": "Where it is.", "parameters_json_schema": SCHEMA}
    said = {"model_request_parameters": {"function_tools": [registered], "output_tools": []}}
    spans = order_run()
    for place in (1, 3):
        spans[place].attributes.update(said | {"gen_ai.tool.definitions": definitions})

    parameters = proof_of(spans)["parameters"]

    assert parameters["state"] == ("not_comparable" if is_another else "proven")
    assert is_another == ("step 1 (m-1) defines a tool in two ways" in (parameters["reason"] or ""))


def test_a_tool_that_its_span_names_with_a_prefix_is_named():
    reason = proof_of(order_run(name="shop-lookup"))["tool_arguments"]["reason"]

    assert reason == "the span of step 2 (shop-lookup) names the tool shop-lookup"


@pytest.mark.parametrize("name", ["gen_ai.tool.parameters", "gen_ai.tool.json_schema", "tool.parameters"])
@pytest.mark.parametrize(
    ("schema", "is_another"),
    [
        (SCHEMA, False),
        ({**SCHEMA, "title": "lookup", "description": "Where it is.\n\nArgs: …"}, False),
        ({"type": "object", "properties": SCHEMA["properties"]}, False),
        ({**SCHEMA, "required": []}, True),
        ({**SCHEMA, "properties": {"id": {"type": "integer"}}}, True),
        ({**SCHEMA, "properties": {"id": {"type": "string"}, "unit": {"type": "string"}}}, True),
    ],
    ids=["the same", "with a title", "without a field", "required", "type", "one more"],
)
def test_a_tools_span_that_defines_it_otherwise_is_named(name, schema, is_another):
    spans = order_run()
    for place in (1, 3):
        spans[place].attributes["gen_ai.tool.definitions"] = [defined()]
    spans[2].attributes[name] = json.dumps(schema)
    if name == "tool.parameters":
        told = {"openinference.span.kind": "TOOL", "tool.name": "lookup", "output.value": "in Oslo"}
        spans[2].attributes.update(told)

    parameters = proof_of(spans)["parameters"]

    assert parameters["state"] == ("not_comparable" if is_another else "proven")
    assert is_another == ("defines its tool differently" in (parameters["reason"] or ""))


@pytest.mark.parametrize("name", ["gen_ai.tool.description", "tool.description"])
@pytest.mark.parametrize(
    ("said", "is_another"),
    [
        ("Where it is.", False),
        ("Where it is.\n\n    Args:\n        id: Of the order.", False),
        ("Deletes it.", True),
        ("Where it is. Deletes it.", True),
    ],
    ids=["the same", "with its arguments", "other words", "one sentence more"],
)
def test_a_tools_span_that_describes_it_otherwise_is_named(name, said, is_another):
    spans = order_run()
    for place in (1, 3):
        spans[place].attributes["gen_ai.tool.definitions"] = [defined()]
    spans[2].attributes[name] = said
    if name == "tool.description":
        told = {"openinference.span.kind": "TOOL", "tool.name": "lookup", "output.value": "in Oslo"}
        spans[2].attributes.update(told)

    parameters = proof_of(spans)["parameters"]

    assert parameters["state"] == ("not_comparable" if is_another else "proven")
    assert is_another == ("defines its tool differently" in (parameters["reason"] or ""))


@pytest.mark.parametrize(
    ("asked", "said", "differs"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": None}}, False),
        ('{"a": [1, 2]}', {"a": [2, 1]}, True),
        ({"a": True}, {"a": "true"}, False),
        ({"a": 1}, {"self": 2}, False),
        ({}, "anything", False),
        ("no JSON", {"a": 1}, False),
    ],
)
def test_arguments_differ_where_both_tell_of_one(asked, said, differs):
    assert are_other_arguments(asked, said) == differs


def test_names_and_texts_may_stand_inside_others():
    assert is_another_name("lookup", "cancel")
    assert not is_another_name("lookup", "functions.lookup")
    assert not is_another_name("functions.lookup", "lookup")
    assert is_another_name("lookup", "p")
    assert is_another_name("lookup", "relookup")
    assert is_another_name("lookup", "lookup_2")
    assert is_another_text("It is in Oslo.", {"output": "It is in Rome."})
    assert not is_another_text("It is in Oslo.", {"output": "It is in Oslo."})
    assert is_another_text("It is in Oslo.", "It is in Oslo. Or not.")


@pytest.mark.parametrize(
    "said", ["It is in…", "It is in...", "It is in Os ..", f"It is in Oslo{'o' * 51}", "Answer(text='It is in…')"]
)
def test_a_text_may_be_cut(said):
    assert not is_another_text(f"It is in Oslo{'o' * 60} by now.", said)


LONG = "It is in Oslo and it will be with you on Monday or, if not, then on Tuesday."


@pytest.mark.parametrize("said", [LONG[:-1], LONG[:70], f"Answer(text='{LONG[:-5]}now.')", f"text={LONG} Or not."])
def test_a_long_text_that_ends_otherwise_is_another_one(said):
    assert is_another_text(LONG, said)


@pytest.mark.parametrize("said", [LONG, f"Answer(text='{LONG}')", f"Answer(text='{LONG}', sure=True)", LONG[:64]])
def test_a_long_text_may_be_printed(said):
    assert not is_another_text(LONG, said)


@pytest.mark.parametrize("said", ["It is in Oslo.", "It is", "It is in Oslo by then…", ".", "…", ""])
def test_a_text_that_goes_on_is_another_one(said):
    assert is_another_text("It is in Oslo. But it is broken.", said)


def wrapped_run(name: str, *said: str) -> list[Span]:
    """Inside of an agent's span that tells the run's input, or its output, once more."""
    inner = agent(9, 1, at=1, **{name: [text("user" if "input" in name else "assistant", each) for each in said]})
    return [
        agent(**{"gen_ai.input.messages": [QUESTION]}),
        inner,
        *(replace(span, parent_id=inner.span_id) for span in order_run()[1:]),
    ]


@pytest.mark.parametrize(
    ("name", "said", "reason"),
    [
        ("gen_ai.input.messages", "Where is order 7?", None),
        (
            "gen_ai.input.messages",
            "Cancel it.",
            "the span of step 1 (shop), which was not played, gives a different input",
        ),
        (
            "gen_ai.input.messages",
            "Where is",
            "the span of step 1 (shop), which was not played, gives a different input",
        ),
        ("gen_ai.output.messages", DONE, None),
        (
            "gen_ai.output.messages",
            DONE[:-2],
            "the span of step 1 (shop), which was not played, gives a different output",
        ),
    ],
)
def test_a_span_inside_of_the_runs_that_tells_another_input_or_output_is_named(name, said, reason):
    outcome = proof_of(wrapped_run(name, said))["outcome"]

    assert (outcome["state"], outcome["reason"]) == ("proven", reason)


@pytest.mark.parametrize("is_of_run", [False, True])
def test_a_span_inside_of_a_run_that_ended_with_an_error_which_the_run_did_not_is_named(is_of_run):
    spans = wrapped_run("gen_ai.output.messages", DONE)
    spans[1] = replace(spans[1], status="error", status_message="no room left")
    if is_of_run:
        spans[0] = replace(spans[0], status="error", status_message="no room left")

    said = outcome_told_otherwise(made(spans))

    failed = "the span of step 1 (shop), which was not played, ended with an error, and the run did not"
    assert said == (None if is_of_run else failed)


@pytest.mark.parametrize(
    ("names", "third", "words"),
    [
        (("triage", "billing"), "refund", None),
        (("triage", "billing"), "invoice", "step 8 (m-1) offers different tools from the request before it"),
        (("triage", "triage"), "refund", "step 5 (m-1) offers different tools from the request before it"),
        ((None, None), "refund", "step 3 (m-1) offers different tools from the request before it"),
    ],
    ids=["two agents", "one of them changes", "one agent", "no agents"],
)
def test_tools_of_two_agents_are_held_against_those_of_the_same_agent(names, third, words):
    sent: list[Any] = [QUESTION]
    spans = [agent()]
    for number, (name, offered) in enumerate(zip((*names, names[1]), ("handoff", "refund", third), strict=True)):
        if name is not None:
            spans.append(agent(10 + number, 1, at=2 + 2 * number, **{"gen_ai.agent.name": name}))
        answer = asks(f"c{number}", offered) if number < 2 else text("assistant", DONE)
        said = chat(3 + 2 * number, list(sent), answer, 1 if name is None else 10 + number)
        spans.append(said)
        said.attributes["gen_ai.tool.definitions"] = [{**defined(), "name": offered}]
        sent += [answer, gives("ok", f"c{number}")]

    reason = proof_of(spans)["parameters"]["reason"]

    assert (reason and reason.removesuffix(", and was taken from the recording")) == words


@pytest.mark.parametrize(
    ("fields", "is_another"),
    [({}, False), ({"strict": True}, True), ({"type": "custom"}, True)],
    ids=["the same", "strict", "type"],
)
def test_a_tool_that_one_request_defines_with_other_fields_is_named(fields, is_another):
    spans = order_run()
    for place, more in ((1, {}), (3, fields)):
        spans[place].attributes["gen_ai.tool.definitions"] = [defined(**more)]

    parameters = proof_of(spans)["parameters"]

    assert (parameters["state"] == "proven") is not is_another
    assert is_another == ("step 3 (m-1) defines lookup with different fields" in (parameters["reason"] or ""))
