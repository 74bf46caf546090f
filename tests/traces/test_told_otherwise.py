"""One thing of one span changed: spans tell many things twice, and a replay must not call proven what one of the two
denies. The spans are those of an export, with and without the attributes of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ThinkingPart

from sessions_app.core.assembly.run import assemble
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.conventions.told_twice import is_value_told_otherwise
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.verdict import judge
from sessions_app.core.otlp.decode import decode_traces
from sessions_app.core.otlp_export import names
from sessions_app.core.otlp_export.request import export_run
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.observed import Divergence, Result
from sessions_app.core.replay.proof import read_proof
from sessions_app.core.run import Run, Step
from sessions_app.core.spans.merging import merge
from sessions_app.core.spans.span import Span, SpanEvent
from sessions_app.core.told_otherwise import contradicted_spans
from tests.agents.own_agents import recorded_run
from tests.recorder.playing import recorded
from tests.recorder.replaying import replayed
from tests.recorder.scenarios import Play, Scripted, call, says
from tests.traces.captures import CHOICE, Capture

ROOT, CHAT, TOOL, SECOND = range(4)


def _played() -> Run:
    def stock(sku: str, site: int) -> str:
        """How many are left."""
        return "12 left"

    model = Scripted(says(call("stock", {"sku": "A", "site": 2}, "c1")), says("done all"))
    return recorded_run(lambda: Play(Agent(model, name="shop", instructions="Be brief.", tools=[stock]), "check"))


@pytest.fixture(scope="module", params=["whole", "plain"])
def spans(request: pytest.FixtureRequest) -> list[Span]:
    """Of the run, the first answer, the tool and the second answer."""
    found = list(decode_traces(export_run(_played()), is_json=True).spans)
    return found if request.param == "whole" else [_plain(span) for span in found]


def _plain(span: Span) -> Span:
    """As others export it."""
    kept = {name: value for name, value in span.attributes.items() if not name.startswith(names.OWN)}
    return replace(span, attributes=kept)


def changed(spans: list[Span], at: int, name: str, was: str, becomes: str) -> list[Span]:
    text = str(spans[at].attributes[name])
    assert was in text
    other = replace(spans[at], attributes={**spans[at].attributes, name: text.replace(was, becomes)})
    return [*spans[:at], other, *spans[at + 1 :]]


def without(spans: list[Span], at: int, name: str) -> list[Span]:
    kept = {each: value for each, value in spans[at].attributes.items() if each != name}
    return [*spans[:at], replace(spans[at], attributes=kept), *spans[at + 1 :]]


def failed(spans: list[Span], at: int) -> list[Span]:
    return [*spans[:at], replace(spans[at], status="error", status_message="boom"), *spans[at + 1 :]]


def replayed_of(spans: list[Span]) -> tuple[Run, Result]:
    run = assemble(spans, is_closed=True)
    return run, replayed(encode_native(run))[0]


def proven(result: Result) -> set[str]:
    proof = read_proof(result.facts["proof"])
    assert proof is not None
    return {name for name, part in proof.parts.items() if part.state == "proven"}


def text(payload: Payload | None) -> Any:
    return payload and payload.value


def test_untouched_it_is_reproduced(spans: list[Span]) -> None:
    run, result = replayed_of(spans)

    assert (judge(run).verdict, result.verdict) == ("replayable", "reproduced")
    assert {"requests", "parameters", "outcome"} <= proven(result)
    assert text(run.output) == "done all"


def stock(sku: str) -> str:
    """How many are left."""
    return "12 left"


def _of_prompt_and_processor() -> Play:
    model = Scripted(says(call("stock", {"sku": "A"}, "c1")), says(call("stock", {"sku": "B"}, "c2")), says("done"))
    shortened = ProcessHistory[None](lambda messages: messages[-3:])
    agent = Agent(model, instructions=["X", lambda context: f"At {context.run_step}"], capabilities=[shortened])
    agent.tool_plain(stock)

    @agent.system_prompt
    def prompt(context: RunContext) -> str:
        return "You sell."

    return Play(agent, "check")


def _of_text_beside_calls() -> Play:
    model = Scripted(says("All there.", call("stock", {"sku": "A"}, "c1")))
    return Play(Agent(model, end_strategy="early", tools=[stock]), "check")


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize(("play", "way"), [(_of_prompt_and_processor, "run"), (_of_text_beside_calls, "run_stream")])
def test_an_export_is_the_run_that_it_was_made_of(play: Callable[[], Play], way: str, is_plain: bool) -> None:
    spans = list(decode_traces(export_run(parse_native(recorded(play(), way)[0])), is_json=True).spans)

    run, result = replayed_of([_plain(span) for span in spans] if is_plain else spans)

    assert (judge(run).verdict, result.verdict) == ("replayable", "reproduced")
    assert run.source_format == ("otlp" if is_plain else "native")


@pytest.mark.parametrize("said", ["PREFIX: done all", "I have done all of it", "done all and more", "DONE ALL"])
def test_another_output_than_the_last_answer_is_the_output_and_is_not_proven(spans: list[Span], said: str) -> None:
    run, result = replayed_of(changed(spans, ROOT, "gen_ai.output.messages", "done all", said))

    assert text(run.output) == said
    assert result.verdict != "reproduced"


ROOT_OUTPUTS = (
    ("openai-sdk-openinference", "output.value"),
    ("openai-sdk-langfuse-v3", "langfuse.observation.output"),
    ("openai-sdk-mlflow-otlp", "mlflow.spanOutputs"),
    ("openai-sdk-traceloop", "traceloop.entity.output"),
    ("pydantic-ai-v3", "final_result"),
    ("vercel-ai-v6", "ai.response.text"),
)
AROUND: tuple[Callable[[str], Any], ...] = (
    lambda said: json.dumps({"answer": said, "refund": 500}),
    lambda said: json.dumps({"output": said, "refund": 500}),
    lambda said: json.dumps({"messages": [{"role": "assistant", "content": said}], "refund": 500}),
    lambda said: json.dumps([said]),
    lambda said: f'"{said}" and more',
    lambda said: json.dumps(json.dumps(said)),
    lambda said: f"{said} ",
    lambda said: f"Answer(text='{said}', refund=500)",
    lambda said: f"{said[:20]}...",
)


@pytest.mark.parametrize("around", [None, *AROUND])
@pytest.mark.parametrize(("variant", "name"), ROOT_OUTPUTS, ids=[variant for variant, _ in ROOT_OUTPUTS])
def test_what_holds_the_last_answer_is_not_the_last_answer(variant: str, name: str, around: Any) -> None:
    whole = list(Capture(CHOICE / variant / "order_lookup").spans)
    said = str(assemble(whole, is_closed=True).output.as_text())
    at = next(at for at, span in enumerate(whole) if span.parent_id is None)
    spans = whole if around is None else _with(whole, at, name, around(said))

    run, result = replayed_of(spans)

    assert (run.output.as_text() == said) == (around is None)
    assert (result.verdict == "reproduced") == ("outcome" in proven(result)) == (around is None)


def _with(spans: list[Span], at: int, name: str, said: JsonValue) -> list[Span]:
    assert name in spans[at].attributes
    other = replace(spans[at], attributes={**spans[at].attributes, name: said})
    return [*spans[:at], other, *spans[at + 1 :]]


@pytest.mark.parametrize("said", ["done all ", "done all\\n", " done all", '\\"done all\\"'])
def test_a_last_answer_with_white_space_or_quotes_that_the_output_lacks_is_not_proven(
    spans: list[Span], said: str
) -> None:
    run, result = replayed_of(changed(spans, SECOND, "gen_ai.output.messages", "done all", said))

    assert text(run.output) == "done all"
    assert result.verdict != "reproduced"
    assert "outcome" not in proven(result)


@pytest.mark.parametrize("said", ["thinking ", "thinking\\n", "\\nthinking"])
def test_an_earlier_answer_with_other_white_space_than_the_next_request_tells_is_not_proven(said: str) -> None:
    answers = Scripted(says("thinking", call("stock", {"sku": "A"}, "c1")), says("done"))
    played = recorded_run(lambda: Play(Agent(answers, tools=[stock]), "go"))
    whole = [_plain(span) for span in decode_traces(export_run(played), is_json=True).spans]

    for becomes, is_another in (("thinking", False), (said, True)):
        _, result = replayed_of(changed(whole, CHAT, "gen_ai.output.messages", "thinking", becomes))
        assert ("requests" in proven(result)) is not is_another
        reason = result.facts["proof"]["requests"]["reason"] or ""
        assert ("gives white space around a message differently from the one before it" in reason) is is_another


@pytest.mark.parametrize(("said", "is_another"), [("Weigh it.", False), ("Guess.", True), ("", False)])
def test_an_earlier_thought_that_the_next_request_tells_otherwise_is_not_proven(said: str, is_another: bool) -> None:
    answers = Scripted(says(ThinkingPart("Weigh it."), call("stock", {"sku": "A"}, "c1")), says("done"))
    played = recorded_run(lambda: Play(Agent(answers, tools=[stock]), "go"))
    whole = [_plain(span) for span in decode_traces(export_run(played), is_json=True).spans]

    _, result = replayed_of(changed(whole, SECOND, "gen_ai.input.messages", "Weigh it.", said))

    assert ("requests" in proven(result)) is not is_another
    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("gives the thinking of an answer differently from the one before it" in reason) is is_another


@pytest.mark.parametrize("said", ["check ", "check\\n"])
def test_a_prompt_with_other_white_space_than_the_request_before_tells_is_not_proven(
    spans: list[Span], said: str
) -> None:
    _, result = replayed_of(changed(spans, SECOND, "gen_ai.input.messages", "check", said))

    assert "requests" not in proven(result)


def test_arguments_in_another_order_than_their_answer_gave_them_are_not_proven(spans: list[Span]) -> None:
    given = '"sku":"A","site":2'
    for becomes, is_another in ((given, False), ('"site":2,"sku":"A"', True)):
        _, result = replayed_of(changed(spans, SECOND, "gen_ai.input.messages", given, becomes))

        assert ("requests" in proven(result)) is not is_another
        assert ("arg" in (result.facts["proof"]["requests"]["reason"] or "")) is is_another


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("version", ["1.107.10", "2.26.4", "2.27.0", "2.68.0"])
def test_a_tool_that_a_later_request_of_pydantic_ai_names_otherwise_is_no_message(version: str, number: int) -> None:
    """Since 2.27 the model is told in a message that a tool is new, which spans hold."""
    whole = list(Capture(CHOICE / "pydantic-ai-v2" / "order_lookup").spans)
    whole = [replace(span, scope=replace(span.scope, version=version)) for span in whole]
    chats = sorted((span.start_ns or 0, at) for at, span in enumerate(whole) if span.name.startswith("chat "))
    at = chats[number][1]

    _, result = replayed_of(changed(whole, at, "gen_ai.tool.definitions", '"lookup_order"', '"zq"'))

    assert "parameters" not in proven(result)
    if version < "2.27":
        assert (result.verdict, result.divergence) == ("reproduced", None)
    else:
        found = Divergence(step=2 * number + 1, path="parameters.introduced_tool_names", recorded=None, replayed=["zq"])
        assert (result.verdict, result.divergence) == ("diverged", found)


def test_another_input_than_the_prompt_is_the_input(spans: list[Span]) -> None:
    run, result = replayed_of(changed(spans, ROOT, "gen_ai.input.messages", "check", "Please check it"))

    assert text(run.input) == "Please check it"
    assert (judge(run).verdict, result.verdict) != ("replayable", "reproduced")


@pytest.mark.parametrize("said", ["a", " A", "A\\n", "AB"])
def test_a_tool_that_was_given_another_text_than_the_model_gave_is_contradicted(spans: list[Span], said: str) -> None:
    run, result = replayed_of(changed(spans, TOOL, "gen_ai.tool.call.arguments", '"A"', f'"{said}"'))

    assert judge(run).verdict != "replayable"
    assert result.verdict != "reproduced"


@pytest.mark.parametrize("said", ['"2"', "2.0"])
def test_a_tool_that_was_given_another_number_has_arguments_that_are_not_proven(spans: list[Span], said: str) -> None:
    _, result = replayed_of(changed(spans, TOOL, "gen_ai.tool.call.arguments", '"site":2', f'"site":{said}'))

    part = result.facts["proof"]["tool_arguments"]
    assert part["state"] != "proven"
    assert result.verdict != "reproduced" or "gives different arguments from the model's" in part["reason"]


@pytest.mark.parametrize(
    "change", [lambda said: json.dumps([said]), lambda said: said + "\u200b", lambda said: said + " x"]
)
def test_a_tools_arguments_that_are_no_object_any_more_are_contradicted(
    spans: list[Span], change: Callable[[str], str]
) -> None:
    said = str(spans[TOOL].attributes["gen_ai.tool.call.arguments"])

    run, result = replayed_of(changed(spans, TOOL, "gen_ai.tool.call.arguments", said, change(said)))

    assert judge(run).verdict != "replayable"
    assert result.verdict != "reproduced"


@pytest.mark.parametrize(("at", "name"), [(CHAT, "gen_ai.output.messages"), (SECOND, "gen_ai.input.messages")])
@pytest.mark.parametrize("encoded", [json.dumps, lambda given: json.dumps(json.dumps(given))], ids=["once", "twice"])
def test_arguments_that_one_span_tells_as_json_text_are_the_same(
    at: int, name: str, encoded: Callable[[Any], str]
) -> None:
    spans = [_plain(span) for span in decode_traces(export_run(_played()), is_json=True).spans]
    given = {"sku": "A", "site": 2}
    was, becomes = (json.dumps(each, separators=(",", ":")) for each in (given, encoded(given)))

    _, result = replayed_of(changed(spans, at, name, was, becomes))

    assert result.verdict == "reproduced"
    assert "requests" in proven(result)
    assert "the same arguments" in result.facts["proof"]["tool_arguments"]["reason"]


@pytest.mark.parametrize(
    ("name", "was", "part", "words"),
    [
        ("gen_ai.input.messages", "check", "requests", "are given in two ways"),
        ("gen_ai.input.messages", "12 left", "requests", "are given in two ways"),
        ("gen_ai.output.messages", "done all", "requests", "are given in two ways"),
        ("gen_ai.tool.definitions", "How many", "parameters", "defines a tool in two ways"),
    ],
)
@pytest.mark.parametrize("is_another", [False, True])
def test_a_record_of_a_call_that_tells_it_otherwise_than_its_span_is_named(
    name: str, was: str, part: str, words: str, is_another: bool
) -> None:
    spans = [_plain(span) for span in decode_traces(export_run(_played()), is_json=True).spans]
    told = str(spans[SECOND].attributes[name])
    assert was in told
    attributes = {name: json.loads(told.replace(was, "zq") if is_another else told)}
    event = SpanEvent(name="gen_ai.client.inference.operation.details", time_ns=None, attributes=attributes)
    beside = replace(spans[SECOND], events=(*spans[SECOND].events, event))

    _, result = replayed_of([*spans[:SECOND], beside, *spans[SECOND + 1 :]])

    assert (words in (result.facts["proof"][part]["reason"] or "")) is is_another


DETAILS = "gen_ai.client.inference.operation.details"


@pytest.mark.parametrize(
    ("variant", "name", "was", "part", "words"),
    [
        ("google-adk", "gen_ai.input.messages", "Where is the kettle", "requests", "are given in two ways"),
        ("google-adk", "gen_ai.input.messages", '"user"', "requests", "are given in two ways"),
        ("google-adk", "gen_ai.output.messages", "Good news", "requests", "are given in two ways"),
        ("google-adk", "gen_ai.system_instructions", "support agent", "requests", "are given in two ways"),
        ("google-adk", "gen_ai.response.finish_reasons", "stop", "requests", "are given in two ways"),
        ("google-adk", "gen_ai.tool.definitions", "lookup_order", "parameters", "defines a tool in two ways"),
        ("openai-sdk-otel-genai", "gen_ai.input.messages", "Where is the kettle", "requests", "are given in two ways"),
        ("openai-sdk-otel-genai", "gen_ai.request.seed", "7", "model", "gives its settings in two ways"),
    ],
)
def test_a_log_record_that_tells_a_call_otherwise_than_its_span_is_named(
    variant: str, name: str, was: str, part: str, words: str
) -> None:
    whole = list(Capture(CHOICE / variant / "order_lookup").spans)
    at = max((at for at, span in enumerate(whole) if span.logs), key=lambda at: whole[at].start_ns or 0)
    (record,) = (log for log in whole[at].logs if log.name == DETAILS)
    written = json.dumps(record.attributes[name], ensure_ascii=False)
    becomes = {"stop": "length", "7": "8"}.get(was, "zq" if '"' not in was else '"USER"')
    assert was in written
    other = replace(record, attributes={**record.attributes, name: json.loads(written.replace(was, becomes))})

    for logs, is_another in ((whole[at].logs, False), ((other,), True)):
        _, result = replayed_of([*whole[:at], replace(whole[at], logs=logs), *whole[at + 1 :]])
        assert (words in (result.facts["proof"][part]["reason"] or "")) is is_another


@pytest.mark.parametrize(
    ("name", "was", "part", "words"),
    [
        ("gen_ai.output.messages", "delivered", "requests", "gives the result in two ways"),
        ("gen_ai.input.messages", "order_id", "tool_arguments", "gives its arguments in two ways"),
        ("gen_ai.input.messages", "get_shipping_status", "tool_arguments", "names the tool zq"),
    ],
)
def test_an_event_of_a_tools_span_that_tells_the_call_otherwise_is_named(
    name: str, was: str, part: str, words: str
) -> None:
    whole = list(Capture(CHOICE / "strands-latest-semconv" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if span.attributes.get("gen_ai.tool.name") == "get_shipping_status")

    for said in (was, "zq"):
        written = (json.dumps(event.attributes).replace(was, said) for event in whole[at].events)
        events = zip(whole[at].events, written, strict=True)
        told = tuple(replace(event, attributes=json.loads(text)) for event, text in events)
        assert (told != whole[at].events) is (said == "zq")
        _, result = replayed_of([*whole[:at], replace(whole[at], events=told), *whole[at + 1 :]])
        assert (words in (result.facts["proof"][part]["reason"] or "")) is (said == "zq")


@pytest.mark.parametrize(
    ("was", "becomes"),
    [('"name":"lookup_order"', '"name":"zq"'), ('"response":{"order_id":"A-1001"', '"response":{"order_id":"A-1002"')],
)
def test_an_agents_span_that_sums_up_its_run_with_what_no_call_tells_is_named(was: str, becomes: str) -> None:
    whole = list(Capture(CHOICE / "vercel-ai-v7" / "order_lookup").spans)
    name = "gen_ai.output.messages"
    at = next(at for at, span in enumerate(whole) if span.parent_id is None)

    for said in (was, becomes):
        _, result = replayed_of(changed(whole, at, name, was, said))
        reason = result.facts["proof"]["requests"]["reason"] or ""
        assert ("gives the conversation differently from the requests" in reason) is (said == becomes)


@pytest.mark.parametrize(("said", "is_another"), [("lookup_order", False), ("zq", True)])
def test_a_tools_span_that_names_its_tool_in_two_ways_is_named(said: str, is_another: bool) -> None:
    whole = list(Capture(CHOICE / "openai-sdk-traceloop" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if span.attributes.get("traceloop.entity.name") == "lookup_order")
    named = replace(whole[at], attributes={**whole[at].attributes, "gen_ai.tool.name": said})

    _, result = replayed_of([*whole[:at], named, *whole[at + 1 :]])

    reason = result.facts["proof"]["tool_arguments"]["reason"] or ""
    assert ("names the tool zq" in reason) is is_another


@pytest.mark.parametrize("is_quoted", [False, True])
def test_a_result_that_a_tools_span_tells_as_the_json_of_its_text_is_not_proven(is_quoted: bool) -> None:
    def levels(sku: str) -> dict[str, int]:
        return {sku: 4}

    model = Scripted(says(call("levels", {"sku": "A"}, "c1")), says("done"))
    played = recorded_run(lambda: Play(Agent(model, tools=[levels]), "go"))
    plain = [_plain(span) for span in decode_traces(export_run(played), is_json=True).spans]
    said = str(plain[TOOL].attributes["gen_ai.tool.call.result"])

    _, result = replayed_of(
        changed(plain, TOOL, "gen_ai.tool.call.result", said, json.dumps(said) if is_quoted else said)
    )

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("gives the result as a text" in reason) is is_quoted


@pytest.mark.parametrize("at", [CHAT, SECOND])
def test_a_tool_that_one_request_defines_otherwise_is_not_proven(spans: list[Span], at: int) -> None:
    run, result = replayed_of(changed(spans, at, "gen_ai.tool.definitions", "How many", "How few"))

    if result.verdict == "could_not_run":
        assert judge(run).reasons[0].code == "tools_contradicted"
        return
    part = result.facts["proof"]["parameters"]
    assert part["state"] != "proven"
    assert result.verdict != "reproduced" or "defines stock differently" in part["reason"]


def test_other_instructions_of_one_request_are_not_proven(spans: list[Span]) -> None:
    _, result = replayed_of(changed(spans, SECOND, "gen_ai.system_instructions", "brief", "long"))

    assert "requests" not in proven(result)


@pytest.mark.parametrize(
    ("said", "words"), [("4.00", "with other digits"), ('"4.0"', "as a text"), ("4", None), ("4.0", "")]
)
def test_a_number_that_a_tools_span_spells_otherwise_is_not_proven(said: str, words: str | None) -> None:
    def price(sku: str) -> float:
        return 4.0

    model = Scripted(says(call("price", {"sku": "A"}, "c1")), says("done"))
    spans = decode_traces(export_run(recorded_run(lambda: Play(Agent(model, tools=[price]), "go"))), is_json=True).spans
    plain = [_plain(span) for span in spans]

    _, result = replayed_of(changed(plain, TOOL, "gen_ai.tool.call.result", "4.0", said))

    part = result.facts["proof"]["requests"]
    assert (part["state"] == "proven") is (words == "")
    assert words is None or words in (part["reason"] or "")


def test_a_request_that_was_not_captured_is_said_and_the_rest_is_played() -> None:
    answers = [says(call("stock", {"sku": each}, each)) for each in "AB"]
    played = recorded_run(lambda: Play(Agent(Scripted(*answers, says("done")), tools=[stock], instructions="X"), "go"))
    whole = [_plain(span) for span in decode_traces(export_run(played), is_json=True).spans]

    for step in (1, 3, 5):
        run, result = replayed_of(without(whole, step, "gen_ai.input.messages"))

        part = result.facts["proof"]["requests"]
        assert (judge(run).verdict, result.verdict, part["state"]) == ("replayable", "reproduced", "not_comparable")
        assert f"the request of step {step} (scripted-1) was not recorded" in part["reason"]
        assert run.prior is None


@pytest.mark.parametrize("at", [ROOT, CHAT, SECOND])
def test_what_failed_and_has_an_answer_is_not_reproduced(spans: list[Span], at: int) -> None:
    run, result = replayed_of(failed(spans, at))

    assert judge(run).verdict != "replayable"
    assert result.verdict != "reproduced"


def test_what_is_no_tool_any_more_is_not_reproduced(spans: list[Span]) -> None:
    run, result = replayed_of(changed(spans, TOOL, "gen_ai.operation.name", "execute_tool", "chat"))

    assert (judge(run).verdict, result.verdict) != ("replayable", "reproduced")


@pytest.mark.parametrize(
    ("at", "name", "was"),
    [
        (TOOL, "gen_ai.tool.call.result", "12"),
        (TOOL, "gen_ai.tool.call.arguments", "A"),
        (SECOND, "gen_ai.output.messages", "done all"),
        (SECOND, "gen_ai.response.model", "script"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_second_span_of_the_same_id_is_kept_and_said(
    spans: list[Span], at: int, name: str, was: str, is_first: bool
) -> None:
    if name not in spans[at].attributes:
        pytest.skip("the export does not say it")
    other = changed(spans, at, name, was, "ZZ")[at]
    both: list[Any] = [other, *spans] if is_first else [*spans, other]

    run = assemble(merge(both, ()), is_closed=True)

    assert run.extra["trace"]["contradicted_spans"] == [spans[at].span_id]


@pytest.mark.parametrize(
    ("at", "name"),
    [
        (ROOT, "gen_ai.output.messages"),
        (CHAT, "gen_ai.input.messages"),
        (TOOL, "gen_ai.tool.call.result"),
        (TOOL, "gen_ai.tool.call.arguments"),
        (SECOND, "gen_ai.output.messages"),
    ],
)
def test_an_attribute_with_two_values_is_said_and_no_request_proven(at: int, name: str) -> None:
    request = json.loads(export_run(_played()))
    attributes = request["resourceSpans"][0]["scopeSpans"][0]["spans"][at]["attributes"]
    assert name in [each["key"] for each in attributes]
    attributes.insert(0, {"key": name, "value": {"stringValue": "ZZ"}})

    run = assemble(merge(decode_traces(json.dumps(request).encode(), is_json=True).spans, ()), is_closed=True)

    assert _says_two_things(run)


@pytest.mark.parametrize(
    ("at", "name", "key"),
    [
        (CHAT, "gen_ai.input.messages", "content"),
        (CHAT, "gen_ai.tool.definitions", "name"),
        (TOOL, "gen_ai.tool.call.arguments", "sku"),
        (SECOND, "gen_ai.output.messages", "role"),
    ],
)
def test_a_key_with_two_values_is_said_and_no_request_proven(spans: list[Span], at: int, name: str, key: str) -> None:
    if name not in spans[at].attributes:
        pytest.skip("the export does not say it")
    doubled, same = (_with_key_twice(spans[at], name, key, is_other) for is_other in (True, False))

    assert _says_two_things(assemble(merge([doubled, *spans[:at], *spans[at + 1 :]], ()), is_closed=True))
    run = assemble(merge([same, *spans[:at], *spans[at + 1 :]], ()), is_closed=True)
    assert not contradicted_spans(run)


def _says_two_things(run: Run) -> bool:
    result, _ = replayed(encode_native(run))
    proof = read_proof((result.facts or {})["proof"])
    assert proof is not None
    words = proof.parts["requests"].reason or ""
    codes = {found.code for found in find_anomalies(run)}
    return "spans_under_one_id" in codes and "has two different contents" in words


def _with_key_twice(span: Span, name: str, key: str, is_other: bool) -> Span:
    text = str(span.attributes[name])
    found = re.search(rf'"{key}":\s*"[^"]*"', text)
    assert found is not None
    again = f'"{key}":"ZZ"' if is_other else found[0]
    return replace(span, attributes={**span.attributes, name: text.replace(found[0], f"{again},{found[0]}", 1)})


def _told_without_its_last_message(body: dict[str, Any]) -> None:
    body["messages"].pop()


def _told_with_another_system_prompt(body: dict[str, Any]) -> None:
    assert body["messages"][0]["role"] == "system"
    body["messages"][0]["content"] = "You are a pirate"


def _told_with_another_tool(body: dict[str, Any]) -> None:
    body["tools"][1]["function"]["name"] = "zq"


def _told_without_tools(body: dict[str, Any]) -> None:
    del body["tools"]


def _told_without_one_tool(body: dict[str, Any]) -> None:
    body["tools"].pop()


def _told_with_another_temperature(body: dict[str, Any]) -> None:
    body["temperature"] += 1


def _told_with_another_seed(body: dict[str, Any]) -> None:
    body["seed"] += 1


def _told_with_the_system_prompt_as_the_users(body: dict[str, Any]) -> None:
    body["messages"][0]["role"] = "user"


def _told_with_a_speaker_whom_nobody_knows(body: dict[str, Any]) -> None:
    next(message for message in body["messages"] if message["role"] == "assistant")["role"] = "zq"


def _told_with_nothing_required(body: dict[str, Any]) -> None:
    assert body["tools"][0]["function"]["parameters"]["required"]
    body["tools"][0]["function"]["parameters"]["required"] = []


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (_told_without_its_last_message, "requests", "are given in two ways"),
        (_told_with_another_system_prompt, "requests", "are given in two ways"),
        (_told_with_another_tool, "parameters", "defines a tool in two ways"),
        (_told_with_nothing_required, "parameters", "defines a tool in two ways"),
        (_told_without_tools, "parameters", "defines a tool in two ways"),
        (_told_without_one_tool, "parameters", "defines a tool in two ways"),
        (_told_with_another_temperature, "model", "gives its settings in two ways"),
        (_told_with_another_seed, "model", "gives its settings in two ways"),
        (_told_with_a_speaker_whom_nobody_knows, "requests", "are given in two ways"),
        (_told_with_the_system_prompt_as_the_users, "requests", "are given in two ways"),
        (lambda body: None, "model", "taken from the recording"),
    ],
)
def test_a_body_that_tells_its_request_otherwise_than_the_attributes_is_named(
    change: Callable[[dict[str, Any]], None], name: str, words: str
) -> None:
    whole = list(Capture(CHOICE / "openai-sdk-openinference" / "order_lookup").spans)
    at = [at for at, span in enumerate(whole) if '"messages"' in str(span.attributes.get("input.value"))][-1]
    body = json.loads(str(whole[at].attributes["input.value"]))
    change(body)
    told = replace(whole[at], attributes={**whole[at].attributes, "input.value": json.dumps(body)})

    _, result = replayed_of([*whole[:at], told, *whole[at + 1 :]])

    assert words in (result.facts["proof"][name]["reason"] or "")


@pytest.mark.parametrize(("role", "is_another"), [("assistant", False), ("ASSISTANT", True), ("user", True)])
def test_a_body_whose_answer_has_another_role_than_the_attributes_tell_is_named(role: str, is_another: bool) -> None:
    whole = list(Capture(CHOICE / "openai-sdk-openinference" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if '"choices"' in str(span.attributes.get("output.value")))
    body = json.loads(str(whole[at].attributes["output.value"]))
    body["choices"][0]["message"]["role"] = role

    _, result = replayed_of(_with(whole, at, "output.value", json.dumps(body)))

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("are given in two ways" in reason) is is_another


@pytest.mark.parametrize(
    ("change", "is_another"),
    [
        ({}, False),
        ({"choices": []}, True),
        ({"choices": None}, True),
        ({"choices": [{"message": {"role": "assistant", "content": None}}]}, True),
    ],
    ids=str,
)
def test_a_body_without_the_answer_that_the_attributes_tell_is_named(change: JsonObject, is_another: bool) -> None:
    whole = list(Capture(CHOICE / "openai-sdk-openinference" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if '"choices"' in str(span.attributes.get("output.value")))
    body = json.loads(str(whole[at].attributes["output.value"]))

    _, result = replayed_of(_with(whole, at, "output.value", json.dumps(body | change)))

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("are given in two ways" in reason) is is_another


@pytest.mark.parametrize(
    ("was", "becomes", "is_another"),
    [
        ("Find orders", "Find all orders", True),
        ('"lookup_order"', '"look_up"', True),
        ("Find orders", "Find orders", False),
    ],
)
def test_tools_in_litellms_invocation_parameters_that_differ_from_those_offered_are_named(
    was: str, becomes: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / "litellm-openinference" / "order_lookup").spans)
    name = "llm.invocation_parameters"
    at = next(at for at, span in enumerate(whole) if was in str(span.attributes.get(name)))

    _, result = replayed_of(changed(whole, at, name, was, becomes))

    assert ("defines a tool in two ways" in (result.facts["proof"]["parameters"]["reason"] or "")) is is_another


@pytest.mark.parametrize(("said", "is_another"), [("You are the support agent", False), ("You are a pirate", True)])
def test_an_anthropic_body_whose_system_prompt_is_another_is_named(said: str, is_another: bool) -> None:
    whole = list(Capture(CHOICE / "anthropic-sdk-openinference" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if '"system"' in str(span.attributes.get("input.value")))

    _, result = replayed_of(changed(whole, at, "input.value", "You are the support agent", said))

    part = result.facts["proof"]["requests"]
    assert (part["state"] == "proven") is not is_another
    assert ("are given in two ways" in (part["reason"] or "")) is is_another


@pytest.mark.parametrize(("role", "is_another"), [("assistant", False), ("zq", True), ("user", True)])
def test_an_anthropic_body_whose_answer_has_another_role_is_named(role: str, is_another: bool) -> None:
    whole = list(Capture(CHOICE / "anthropic-sdk-openinference" / "order_lookup").spans)
    was = '"role":"assistant"'
    at = next(at for at, span in enumerate(whole) if was in str(span.attributes.get("output.value")))

    _, result = replayed_of(changed(whole, at, "output.value", was, f'"role":"{role}"'))

    assert ("are given in two ways" in (result.facts["proof"]["requests"]["reason"] or "")) is is_another


@pytest.mark.parametrize("spelled", ["text ", "TEXT"])
def test_a_part_whose_type_a_body_spells_otherwise_than_the_attributes_is_named(spelled: str) -> None:
    whole = list(Capture(CHOICE / "anthropic-sdk-openinference" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if '"type":"text"' in str(span.attributes.get("output.value")))

    for said in ("text", spelled):
        _, result = replayed_of(changed(whole, at, "output.value", '"type":"text"', f'"type":"{said}"'))
        reason = result.facts["proof"]["requests"]["reason"] or ""
        assert ("are given in two ways" in reason) is (said == spelled)


@pytest.mark.parametrize("name", ["output.value", "llm.output_messages.0.message.content"])
@pytest.mark.parametrize("variant", ["litellm-openinference", "llama-index-openinference"])
def test_an_answer_whose_text_a_span_tells_twice_and_otherwise_is_named(variant: str, name: str) -> None:
    whole = list(Capture(CHOICE / variant / "order_lookup").spans)
    models = [at for at, span in enumerate(whole) if span.attributes.get("openinference.span.kind") == "LLM"]
    at = next(at for at in models if "Good news" in str(whole[at].attributes.get("output.value")))
    name = name if name in whole[at].attributes else name.replace("content", "contents.0.message_content.text")

    for said in ("Good news", "Bad news"):
        _, result = replayed_of(changed(whole, at, name, "Good news", said))
        reason = result.facts["proof"]["requests"]["reason"] or ""
        assert ("are given in two ways" in reason) is (said == "Bad news")


@pytest.mark.parametrize("said", ["Good news", "Bad news"])
@pytest.mark.parametrize("name", ["content", "contents.0.message_content.text"])
def test_an_answer_whose_text_stands_in_its_contents_and_otherwise_beside_them_is_named(name: str, said: str) -> None:
    whole = list(Capture(CHOICE / "openai-agents-openinference" / "order_lookup").spans)
    name = f"llm.output_messages.0.message.{name}"
    at = next(at for at, span in enumerate(whole) if "Good news" in str(span.attributes.get(name)))

    _, result = replayed_of(changed(whole, at, name, "Good news", said))

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("are given in two ways" in reason) is (said == "Bad news")


@pytest.mark.parametrize("is_another", [False, True])
def test_parameters_that_repeat_the_instructions_otherwise_are_named(is_another: bool) -> None:
    whole = list(Capture(CHOICE / "openai-agents-openinference" / "order_lookup").spans)
    name, was = "llm.invocation_parameters", "never make up order data"
    at = next(at for at, span in enumerate(whole) if was in str(span.attributes.get(name)))

    _, result = replayed_of(changed(whole, at, name, was, "make up order data" if is_another else was))

    assert ("are given in two ways" in (result.facts["proof"]["requests"]["reason"] or "")) is is_another


@pytest.mark.parametrize(
    ("span", "part", "words"),
    [
        ("get_shipping_status", "tool_arguments", "gives its arguments in two ways"),
        ("tools", "requests", "has a message that no call has"),
    ],
)
def test_arguments_that_a_graphs_spans_print_otherwise_are_named(span: str, part: str, words: str) -> None:
    whole = list(Capture(CHOICE / "langgraph-langfuse-v3" / "order_lookup").spans)
    name = "langfuse.observation.input"
    spans = [at for at, each in enumerate(whole) if each.name == span]
    at = next(at for at in spans if "order_id" in str(whole[at].attributes[name]))

    for said in ("order_id", "ORDER_ID"):
        _, result = replayed_of(changed(whole, at, name, "order_id", said))
        assert (words in (result.facts["proof"][part]["reason"] or "")) is (said == "ORDER_ID")


GRAPH = CHOICE / "langgraph-openinference" / "order_lookup"


def test_a_graphs_own_input_that_is_not_the_prompt_is_the_runs_input() -> None:
    whole = list(Capture(GRAPH).spans)
    at = next(at for at, span in enumerate(whole) if span.parent_id is None)

    run, result = replayed_of(changed(whole, at, "input.value", "Where is the kettle", "Where is the teapot"))

    assert "teapot" in str(text(run.input))
    assert "input_contradicts" in [reason.code for reason in judge(run).reasons]
    assert result.verdict != "reproduced"


@pytest.mark.parametrize(("said", "is_another"), [("get_shipping_status", False), ("zq", True)])
def test_a_graphs_own_state_with_a_call_that_no_model_asked_for_is_named(said: str, is_another: bool) -> None:
    whole = list(Capture(GRAPH).spans)
    at = next(at for at, span in enumerate(whole) if span.parent_id is None)

    _, result = replayed_of(changed(whole, at, "output.value", "get_shipping_status", said))

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("the run's own span gives the conversation differently" in reason) is is_another


@pytest.mark.parametrize("variant", ["langgraph-openinference", "langgraph-langfuse-v3", "langgraph-mlflow-otlp"])
@pytest.mark.parametrize(("said", "is_another"), [("lookup_order", False), ("zq", True)])
def test_a_tools_message_that_names_another_tool_than_its_span_is_named(
    variant: str, said: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / variant / "order_lookup").spans)
    output = {"langgraph-langfuse-v3": "langfuse.observation.output", "langgraph-mlflow-otlp": "mlflow.spanOutputs"}
    name = output.get(variant, "output.value")
    at = next(
        at for at, span in enumerate(whole) if span.name == "lookup_order" and "lookup_order" in span.attributes[name]
    )

    _, result = replayed_of(changed(whole, at, name, "lookup_order", said))

    reason = result.facts["proof"]["tool_arguments"]["reason"] or ""
    assert ("names the tool zq" in reason) is is_another


def test_a_request_that_one_span_tells_twice_and_otherwise_is_not_proven() -> None:
    whole = list(Capture(CHOICE / "openai-sdk-openinference" / "order_lookup").spans)
    bodies = [at for at, span in enumerate(whole) if '"messages"' in str(span.attributes.get("input.value"))]
    said = [
        ("kettle", "teapot", "requests", "are given in two ways"),
        ("Find orders", "Find no orders", "parameters", "in two ways"),
    ]

    assert {"requests", "parameters"} <= proven(replayed_of(whole)[1])
    for was, becomes, name, words in said:
        _, result = replayed_of(changed(whole, bodies[-1], "input.value", was, becomes))
        part = result.facts["proof"][name]
        assert part["state"] == "not_comparable"
        assert words in part["reason"]


@pytest.mark.parametrize(
    ("at", "name", "role", "said", "words"),
    [
        (CHAT, "input", "user", "usér", "gives the role of a message differently from the one before it"),
        (SECOND, "input", "tool", "tóol", 'a message of the role "t\\u00f3ol", which is unknown'),
        (SECOND, "input", "assistant", "assistan", 'a message of the role "assistan", which is unknown'),
        (CHAT, "output", "assistant", "", None),
        (SECOND, "output", "assistant", "assistant ", 'a message of the role "assistant ", which is unknown'),
        (SECOND, "input", "user", "human", "gives the role of a message differently from the one before it"),
        (CHAT, "output", "assistant", "user", 'an answer of the role "user", which is not that of a model'),
        (SECOND, "output", "assistant", "User", 'an answer of the role "User", which is not that of a model'),
    ],
)
def test_who_speaks_in_another_word_is_not_proven(
    spans: list[Span], at: int, name: str, role: str, said: str, words: str | None
) -> None:
    _, result = replayed_of(changed(spans, at, f"gen_ai.{name}.messages", f'"role":"{role}"', f'"role":"{said}"'))

    part = result.facts["proof"]["requests"]
    assert (part["state"] == "proven") is (words is None and result.verdict == "reproduced")
    assert words is None or words in part["reason"]


@pytest.mark.parametrize(
    ("said", "is_another"),
    [
        ("stop", False),
        ("end_turn", False),
        ("STOP", False),
        ("length", True),
        ("error", True),
        ("max_tokens", True),
        ("content_filter", True),
    ],
)
def test_an_answer_that_ended_otherwise_than_its_message_tells_is_not_proven(said: str, is_another: bool) -> None:
    spans = [_plain(span) for span in decode_traces(export_run(_played()), is_json=True).spans]
    told = {**spans[SECOND].attributes, "gen_ai.response.finish_reasons": ["stop"]}
    spans[SECOND] = replace(spans[SECOND], attributes=told)

    _, result = replayed_of(changed(spans, SECOND, "gen_ai.output.messages", '"unknown"', f'"{said}"'))

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("are given in two ways" in reason) is is_another


@pytest.mark.parametrize("at", [CHAT, SECOND])
def test_a_tool_that_one_request_names_otherwise_is_not_proven(spans: list[Span], at: int) -> None:
    run, result = replayed_of(changed(spans, at, "gen_ai.tool.definitions", '"stock"', '"stocks"'))

    if result.verdict == "could_not_run":
        assert judge(run).reasons[0].code == "tools_contradicted"
        return
    part = result.facts["proof"]["parameters"]
    assert part["state"] != "proven"
    assert result.verdict != "reproduced" or "offers different tools from the request before it" in part["reason"]


@pytest.mark.parametrize(
    ("name", "part", "words"),
    [
        ("input.value", "tool_arguments", "gives its arguments in two ways"),
        ("output.value", "requests", "gives the result in two ways"),
    ],
)
def test_a_tools_span_that_tells_its_call_in_two_conventions_and_otherwise_is_named(
    name: str, part: str, words: str
) -> None:
    whole = list(Capture(CHOICE / "vercel-ai-openinference" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if "kettle" in str(span.attributes.get(name)) and _is_tool(span))

    for said, is_other in (("kettle", False), ("teapot", True)):
        _, result = replayed_of(changed(whole, at, name, "kettle", said))
        assert (words in (result.facts["proof"][part]["reason"] or "")) is is_other


def _is_tool(span: Span) -> bool:
    return span.attributes.get("openinference.span.kind") == "TOOL"


ALL_MESSAGES = "pydantic_ai.all_messages"


@pytest.mark.parametrize(
    ("was", "becomes", "is_another"),
    [
        ("delivered", "returned", True),
        ('"name": "lookup_order"', '"name": "find_order"', True),
        ("Where is the kettle", "Where is my kettle", True),
        ("Good news, Ana!", "Bad news, Ana!", True),
        ('"role": "user"', '"role": "USER"', True),
        ('"role": "user"', '"role": "assistant"', True),
        ("Where is the kettle", "Where is the kettle", False),
    ],
    ids=["a result", "a call", "the prompt", "the answer", "a role in other letters", "another role", "untouched"],
)
def test_a_runs_own_copy_of_the_conversation_that_tells_it_otherwise_is_named(
    was: str, becomes: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / "pydantic-ai-v4" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if ALL_MESSAGES in span.attributes)
    said = json.dumps(json.loads(str(whole[at].attributes[ALL_MESSAGES])), ensure_ascii=False)

    _, result = replayed_of(
        changed([*whole[:at], with_copy(whole[at], said), *whole[at + 1 :]], at, ALL_MESSAGES, was, becomes)
    )

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert is_another == ("the run's own span gives the conversation differently" in reason)


def test_a_runs_own_copy_of_the_conversation_that_tells_a_part_twice_is_named() -> None:
    whole = list(Capture(CHOICE / "pydantic-ai-v4" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if ALL_MESSAGES in span.attributes)
    messages = json.loads(str(whole[at].attributes[ALL_MESSAGES]))
    messages[1]["parts"] *= 2

    _, result = replayed_of([*whole[:at], with_copy(whole[at], json.dumps(messages)), *whole[at + 1 :]])

    reason = result.facts["proof"]["requests"]["reason"]
    assert reason == (
        "the requests agree; the run's own span gives the conversation differently from the requests and answers in it"
    )


def with_copy(span: Span, said: str) -> Span:
    return replace(span, attributes={**span.attributes, ALL_MESSAGES: said})


@pytest.mark.parametrize("variant", ["openai-sdk-mlflow-otlp", "langgraph-mlflow-otlp"])
@pytest.mark.parametrize(
    ("becomes", "is_another"),
    [("Find orders of a customer.", False), ("Find orders.", True)],
)
def test_mlflows_own_list_of_tools_that_tells_one_otherwise_is_named(
    variant: str, becomes: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / variant / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if "mlflow.chat.tools" in span.attributes)

    _, result = replayed_of(changed(whole, at, "mlflow.chat.tools", "Find orders of a customer.", becomes))

    part = result.facts["proof"]["parameters"]
    assert is_another == ("defines a tool in two ways" in (part["reason"] or ""))
    assert (part["state"] == "proven") is not is_another


@pytest.mark.parametrize("variant", ["openai-agents-openinference", "openai-sdk-openinference-responses"])
@pytest.mark.parametrize(
    ("was", "becomes", "reason"),
    [
        ("Find orders of a customer.", "Find orders.", "defines a tool in two ways"),
        ('"name":"lookup_order"', '"name":"lose_order"', "defines a tool in two ways"),
        ('"tools":[{', '"tools":[],"was":[{', "defines a tool in two ways"),
        ('"temperature":0.2', '"temperature":0.9', "gives its settings in two ways"),
        ("never make up order data", "make up order data", "are given in two ways"),
    ],
)
def test_a_response_that_repeats_its_request_otherwise_is_named(
    variant: str, was: str, becomes: str, reason: str
) -> None:
    whole = list(Capture(CHOICE / variant / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if was in str(span.attributes.get("output.value")))

    both = whole, changed(whole, at, "output.value", was, becomes)
    said, proof = (str(replayed_of(each)[1].facts["proof"]) for each in both)

    assert reason not in said
    assert reason in proof


@pytest.mark.parametrize(
    ("was", "becomes", "is_another"),
    [
        ('"role": "user"', '"role": "USER"', True),
        ('"role": "system"', '"role": "SYSTEM"', True),
        ("role", "role", False),
    ],
)
def test_a_role_that_a_body_spells_in_other_letters_than_the_attributes_is_named(
    was: str, becomes: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / "openai-sdk-openinference" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if span.attributes.get("openinference.span.kind") == "LLM")

    _, result = replayed_of(changed(whole, at, "input.value", was, becomes))

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert is_another == ("are given in two ways" in reason)


@pytest.mark.parametrize(
    ("node", "name", "was", "becomes", "is_another"),
    [
        ("model", "input.value", "Where is the kettle", "Where is my kettle", True),
        ("model", "output.value", "Good news, Ana!", "Bad news, Ana!", True),
        ("tools", "output.value", "delivered", "returned", True),
        ("tools", "output.value", "delivered", "delivered", False),
        ("tools", "output.value", '"name": "', '"name": "x_', True),
    ],
)
def test_a_node_of_a_graph_whose_state_has_a_message_of_its_own_is_named(
    node: str, name: str, was: str, becomes: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / "langgraph-openinference" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if span.name == node and was in str(span.attributes[name]))

    run, result = replayed_of(changed(whole, at, name, was, becomes))

    requests = result.facts["proof"]["requests"]
    assert (result.verdict, requests["state"]) == ("reproduced", "proven")
    step = next((step.index for step in run.steps if step.name == node and is_another and _is_of(step, whole[at])), 0)
    words = f"the span of step {step} ({node}), which was not played, has a message that no call has"
    assert requests["reason"] == (words if is_another else None)


def _is_of(step: Step, span: Span) -> bool:
    told = step.extra.get("span")
    return isinstance(told, dict) and told["span_id"] == span.span_id


@pytest.mark.parametrize("said", ["gpt-4o-mini", "openai:gpt-4o-mini-2024-07-18", "other"])
def test_a_call_whose_span_names_two_models_is_named(said: str) -> None:
    whole = list(Capture(CHOICE / "vercel-ai-v6" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if span.attributes.get("gen_ai.request.model") == "gpt-4o-mini")
    asked = replace(whole[at], attributes={**whole[at].attributes, "gen_ai.request.model": said})

    _, result = replayed_of([*whole[:at], asked, *whole[at + 1 :]])

    is_named = "gives its settings in two ways" in (result.facts["proof"]["model"]["reason"] or "")
    assert is_named is (said == "other")


@pytest.mark.parametrize(
    ("left", "right", "is_another"),
    [
        ('{"a": 1}', '{"a": 1}', False),
        ('{"a": 1}', '{"a": 1} and more', True),
        ('{"a": 1} and more', '{"a": 1}', True),
        ('{"a": 1}', "content='{\"a\": 1}' name='t'", False),
        ({"a": 1}, "printed", False),
    ],
)
def test_what_goes_on_behind_the_json_of_a_result_is_another_result(left: Any, right: Any, is_another: bool) -> None:
    assert is_value_told_otherwise(left, right) is is_another


def _agents_setting(spans: list[Span]) -> list[Span]:
    at = next(at for at, span in enumerate(spans) if span.name == "ai.generateText")
    assert "ai.settings.temperature" in spans[at].attributes
    return _with(spans, at, "ai.settings.temperature", 1.5)


def _agents_instructions(spans: list[Span]) -> list[Span]:
    at = next(at for at, span in enumerate(spans) if span.name == "ai.generateText")
    return changed(spans, at, "ai.prompt", '"system":"', '"system":"Never ')


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (_agents_setting, "model", "gives the model or a setting differently from the model call in it"),
        (_agents_instructions, "requests", "gives different instructions from the first request in it"),
    ],
)
@pytest.mark.parametrize("is_changed", [False, True])
def test_an_agents_span_that_tells_its_calls_otherwise_is_named(
    change: Callable[[list[Span]], list[Span]], name: str, words: str, is_changed: bool
) -> None:
    whole = list(Capture(CHOICE / "vercel-ai-v6" / "order_lookup").spans)

    _, result = replayed_of(change(whole) if is_changed else whole)

    assert (words in (result.facts["proof"][name]["reason"] or "")) is is_changed


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_cycle_of_an_event_loop_that_was_given_other_words_than_its_call_is_named(is_changed: bool) -> None:
    whole = list(Capture(CHOICE / "strands-latest-semconv" / "order_lookup").spans)
    at = [at for at, span in enumerate(whole) if span.name == "execute_event_loop_cycle"][-1]
    told = next(event for event in whole[at].events if "gen_ai.input.messages" in event.attributes)
    words = str(told.attributes["gen_ai.input.messages"])
    other = re.sub(r'("content": "\w+)', r"\1 zq", words, count=1) if is_changed else words
    assert (other != words) is is_changed
    event = replace(told, attributes={**told.attributes, "gen_ai.input.messages": other})
    spans = [*whole[:at], replace(whole[at], events=(event,)), *whole[at + 1 :]]

    _, result = replayed_of(spans)

    assert ("gives the conversation differently" in (result.facts["proof"]["requests"]["reason"] or "")) is is_changed


@pytest.mark.parametrize("said", ["customer", "zq"])
@pytest.mark.parametrize("place", ["tool_calls", "contents"])
@pytest.mark.parametrize("side", ["input_messages.2", "output_messages.0"])
def test_a_call_that_a_message_tells_in_its_contents_and_otherwise_in_its_calls_is_named(
    side: str, place: str, said: str
) -> None:
    whole = list(Capture(CHOICE / "anthropic-sdk-openinference" / "order_lookup").spans)
    name = f"llm.{side}.message.{place}.0.tool_call.function.arguments"
    at = next(at for at, span in enumerate(whole) if "customer" in str(span.attributes.get(name)))

    _, result = replayed_of(changed(whole, at, name, "customer", said))

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("are given in two ways" in reason or result.verdict == "diverged") is (said == "zq")


@pytest.mark.parametrize(("beside", "is_another"), [("", False), ("zq", True)])
@pytest.mark.parametrize("name", ["llm.input_messages.3.message.tool_call_id", "input.value"])
def test_a_result_of_an_earlier_request_under_another_id_is_named(name: str, beside: str, is_another: bool) -> None:
    whole = list(Capture(CHOICE / "openai-agents-openinference" / "order_lookup").spans)
    at = next(at for at, span in enumerate(whole) if "llm.input_messages.5.message.tool_call_id" in span.attributes)
    call_id = str(whole[at].attributes["llm.input_messages.3.message.tool_call_id"])

    _, result = replayed_of(changed(whole, at, name, call_id, call_id + beside))

    part = result.facts["proof"]["requests"]
    assert (part["state"] == "not_comparable") is is_another
    assert ("are given in two ways" in (part["reason"] or "")) is is_another


@pytest.mark.parametrize(("beside", "is_another"), [("", False), ("zq", True)])
def test_a_result_that_a_later_request_tells_under_an_id_of_no_call_is_named(beside: str, is_another: bool) -> None:
    whole = list(Capture(CHOICE / "pydantic-ai-v6" / "order_lookup").spans)
    name = "gen_ai.input.messages"
    at = max(range(len(whole)), key=lambda at: len(str(whole[at].attributes.get(name, ""))))
    messages = json.loads(str(whole[at].attributes[name]))
    result = next(part for message in messages for part in message["parts"] if part["type"] == "tool_call_response")
    result["id"] += beside

    _, replay = replayed_of(_with(whole, at, name, json.dumps(messages)))

    reason = replay.facts["proof"]["requests"]["reason"] or ""
    assert ("had ids of no open call" in reason) is is_another


@pytest.mark.parametrize(
    ("capture", "name", "kind", "key"),
    [
        ("pydantic-ai-v6", "gen_ai.input.messages", "tool_call_response", "name"),
        ("vercel-ai-v5", "ai.prompt.messages", "tool-result", "toolName"),
    ],
)
@pytest.mark.parametrize(("at", "beside", "is_another"), [(0, "", False), (0, "zq", True), (-1, "zq", True)])
def test_a_result_that_a_request_tells_under_the_name_of_another_tool_is_named(
    capture: str, name: str, kind: str, key: str, at: int, beside: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / capture / "order_lookup").spans)
    newest = max(range(len(whole)), key=lambda at: len(str(whole[at].attributes.get(name, ""))))
    messages = json.loads(str(whole[newest].attributes[name]))
    parts = [part for message in messages for part in message.get("parts", message.get("content"))]
    results = [part for part in parts if isinstance(part, dict) and part["type"] == kind]
    results[at][key] += beside

    run, replay = replayed_of(_with(whole, newest, name, json.dumps(messages)))

    part = replay.facts["proof"]["requests"]
    assert part["state"] == ("not_comparable" if is_another else "proven")
    assert ("had names of other tools than their calls" in (part["reason"] or "")) is is_another
    found = compare_runs(assemble(whole, is_closed=True), run)
    assert found.identical is not is_another
    assert is_another is (found.divergence is not None and found.divergence.path == "told_otherwise.tool_results")


@pytest.mark.parametrize(("session", "is_left_out"), [("order_lookup", False), ("parallel_tools", True)])
def test_words_beside_a_call_that_the_next_request_leaves_out_are_named(session: str, is_left_out: bool) -> None:
    """This instrumentation writes no words of an answer that asks for several tools into the request behind it."""
    whole = list(Capture(CHOICE / "openai-sdk-otel-contrib-legacy" / session).spans)

    _, result = replayed_of(whole)

    assert ("gives the words beside a call differently" in (result.facts["proof"]["requests"]["reason"] or "")) is (
        is_left_out
    )


PARAMETERS = "model_request_parameters"


@pytest.mark.parametrize(
    ("name", "was", "becomes", "words"),
    [
        (PARAMETERS, "You are the support agent", "zq are the support agent", "are given in two ways"),
        (
            "gen_ai.system_instructions",
            "You are the support agent",
            "zq are the support agent",
            "are given in two ways",
        ),
        (ALL_MESSAGES, '"name":"lookup_order","result"', '"name":"zq","result"', "gives the conversation differently"),
        (PARAMETERS, '"allow_text_output":true', '"allow_text_output":false', "agrees with the recording only up to"),
    ],
)
@pytest.mark.parametrize("is_another", [False, True])
def test_a_request_of_pydantic_ai_whose_attributes_tell_it_otherwise_is_named(
    name: str, was: str, becomes: str, words: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / "pydantic-ai-v6" / "order_lookup").spans)
    holding = [at for at, span in enumerate(whole) if was in str(span.attributes.get(name))]
    at = max(holding, key=lambda at: whole[at].start_ns or 0)

    _, result = replayed_of(changed(whole, at, name, was, becomes if is_another else was))

    requests = result.facts["proof"]["requests"]
    assert (requests["state"] == "proven") is not is_another
    assert (words in (requests["reason"] or "")) is is_another


@pytest.mark.parametrize("is_another", [False, True])
def test_a_system_message_that_an_agents_own_span_tells_otherwise_is_named(is_another: bool) -> None:
    whole, name = list(Capture(CHOICE / "pydantic-ai-v1-attributes" / "order_lookup").spans), "all_messages_events"
    at = next(at for at, span in enumerate(whole) if name in span.attributes)
    words = "You are the support agent"

    _, result = replayed_of(changed(whole, at, name, words, f"{words} zq" if is_another else words))

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("gives the conversation differently" in reason) is is_another


_REFUSED = "Error code: 400 - too many tokens"


def _refused(span: Span) -> Span:
    """As Langfuse tells of a call whose provider refused it, and of the spans around it."""
    output = {"langfuse.observation.output", "langfuse.trace.output"}
    kept = {name: value for name, value in span.attributes.items() if name not in output}
    told: dict[str, JsonValue] = {
        "langfuse.observation.level": "ERROR",
        "langfuse.observation.status_message": _REFUSED,
    }
    return replace(span, status="error", status_message=_REFUSED, attributes={**kept, **told})


@pytest.mark.parametrize(
    ("becomes", "is_another"), [(_REFUSED, False), (f"BadRequestError: {_REFUSED}", False), ("zq", True)]
)
@pytest.mark.parametrize("of", ["OpenAI-generation", "kettle_support"])
def test_an_error_that_a_span_tells_in_two_attributes_and_otherwise_is_no_proven_outcome(
    of: str, becomes: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / "openai-sdk-langfuse-v3" / "order_lookup").spans)
    calls = [span for span in whole if span.name == "OpenAI-generation"]
    last = max(calls, key=lambda span: span.start_ns or 0)
    around = {"support_agent", "kettle_support"}
    spans = [_refused(span) if span is last or span.name in around else span for span in whole]
    at = next(at for at, span in enumerate(spans) if span.name == of and span.status == "error")

    run, result = replayed_of(_with(spans, at, "langfuse.observation.status_message", becomes))

    outcome = result.facts["proof"]["outcome"]
    assert (run.status, result.verdict) == ("error", "reproduced")
    assert outcome["state"] == ("not_comparable" if is_another else "proven")
    assert ("gives its error in two ways" in (outcome["reason"] or "")) is is_another
    assert compare_runs(assemble(spans, is_closed=True), run).identical is not is_another


@pytest.mark.parametrize(
    ("side", "was", "becomes"),
    [
        ("input", '"input": {"customer": "Ana', '"input": {"customer": "Zq'),
        ("input", '"name": "lookup_order", "type": "tool_use"', '"name": "zq", "type": "tool_use"'),
        ("output", '"input": {"order_id": "A-1001"', '"input": {"order_id": "A-9"'),
    ],
)
@pytest.mark.parametrize("is_another", [False, True])
def test_a_block_of_anthropic_that_is_not_the_call_beside_it_is_named(
    side: str, was: str, becomes: str, is_another: bool
) -> None:
    whole = list(Capture(CHOICE / "langgraph-openinference-anthropic" / "order_lookup").spans)
    name = f"{side}.value"
    calls = [at for at, span in enumerate(whole) if span.name == "ChatAnthropic"]
    at = next(at for at in calls if was in str(whole[at].attributes[name]))

    _, result = replayed_of(changed(whole, at, name, was, becomes if is_another else was))

    assert ("are given in two ways" in (result.facts["proof"]["requests"]["reason"] or "")) is is_another


@pytest.mark.parametrize(
    ("variant", "name"), [("vercel-ai-v5", "ai.prompt.messages"), ("pydantic-ai-v6", "gen_ai.input.messages")]
)
@pytest.mark.parametrize("is_another", [False, True])
def test_a_call_that_a_later_request_tells_with_another_id_is_named(variant: str, name: str, is_another: bool) -> None:
    whole = list(Capture(CHOICE / variant / "order_lookup").spans)
    at = max(range(len(whole)), key=lambda at: len(str(whole[at].attributes.get(name, ""))))
    messages = json.loads(str(whole[at].attributes[name]))
    parts = [part for message in messages for part in message.get("parts") or message["content"]]
    call = next(part for part in parts if isinstance(part, dict) and part["type"] in ("tool-call", "tool_call"))
    key = "id" if "id" in call else "toolCallId"
    call[key] += "zq" if is_another else ""

    _, result = replayed_of(_with(whole, at, name, json.dumps(messages)))

    requests = result.facts["proof"]["requests"]
    assert ("gives the id of a call differently from the one before it" in (requests["reason"] or "")) is is_another
    assert (requests["state"] == "proven") is not is_another


MODEL, STATE = "langfuse.observation.model.name", "langfuse.observation.output"


def _other_model(spans: list[Span], named: str) -> list[Span]:
    at = next(at for at, span in enumerate(spans) if MODEL in span.attributes)
    return _with(spans, at, MODEL, named)


def _state_of_other_model(spans: list[Span], named: str) -> list[Span]:
    at = next(at for at, span in enumerate(spans) if span.name == "model" and STATE in span.attributes)
    return changed(spans, at, STATE, '"model_name": "gpt-4o-mini-2024-07-18"', f'"model_name": "{named}"')


@pytest.mark.parametrize("change", [_other_model, _state_of_other_model])
@pytest.mark.parametrize(
    ("named", "is_named"),
    [("gpt-4o-mini-2024-07-18", False), ("gpt-4o-mini", False), ("gpt-4o", True), ("gpt-4o-mini-2025-01-01", True)],
)
def test_a_call_that_the_state_around_it_gives_another_model_is_named(
    change: Callable[[list[Span], str], list[Span]], named: str, is_named: bool
) -> None:
    """Control: the name as it was, and the alias that was asked for."""
    spans = list(Capture(CHOICE / "langgraph-langfuse-v3" / "order_lookup").spans)

    _, result = replayed_of(change(spans, named))

    reason = result.facts["proof"]["model"]["reason"]
    assert (result.verdict, "gives the model or a setting differently" in reason) == ("reproduced", is_named)


@pytest.mark.parametrize("said", ["ana", "eve", None])
def test_the_name_of_a_user_in_a_body_is_that_of_the_attributes(said: str | None) -> None:
    whole = list(Capture(CHOICE / "openai-sdk-openinference" / "order_lookup").spans)
    at = [at for at, span in enumerate(whole) if '"messages"' in str(span.attributes.get("input.value"))][-1]
    body = json.loads(str(whole[at].attributes["input.value"]))
    place = next(place for place, each in enumerate(body["messages"]) if each["role"] == "user")
    body["messages"][place] |= {} if said is None else {"name": said}
    told = {"input.value": json.dumps(body), f"llm.input_messages.{place}.message.name": "ana"}
    named = replace(whole[at], attributes={**whole[at].attributes, **told})

    _, result = replayed_of([*whole[:at], named, *whole[at + 1 :]])

    reason = result.facts["proof"]["requests"]["reason"] or ""
    assert ("are given in two ways" in reason) is (said == "eve")
