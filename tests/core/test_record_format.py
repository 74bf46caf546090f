"""The parser, the schema and the page about the record format say the same."""

import json
import re
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.history import History, extend, messages
from sessions_app.core.json_text import Limits
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.payload import Payload
from sessions_app.core.run import (
    AgentCall,
    AgentInfo,
    Call,
    Chunk,
    CodeInfo,
    ErrorInfo,
    HttpExchange,
    ModelCall,
    OtherCall,
    ParentLink,
    Retrieval,
    Run,
    StateChange,
    Step,
    ToolCall,
)
from sessions_app.core.state import state_after

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "sessions_app" / "examples"
MANIFEST = json.loads((EXAMPLES / "manifest.json").read_bytes())
PAGE = (ROOT / "docs" / "record-format.md").read_text()
SCHEMA = json.loads((ROOT / "docs" / "record.schema.json").read_bytes())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NATIVE_EXAMPLES = [entry["file"] for entry in MANIFEST if not entry["file"].endswith(".session.json")]
RECORDS = sorted((ROOT / "tests" / "records").glob("*.json"))


def read_example(name: str) -> Any:
    """Any: each test knows which kinds of steps its example has."""
    return parse_document((EXAMPLES / name).read_bytes())


# --- the examples ------------------------------------------------------------------------------


def test_manifest_names_every_example_once():
    named = [entry["file"] for entry in MANIFEST]

    assert sorted(named) == sorted(p.name for p in EXAMPLES.glob("*.json") if p.name != "manifest.json")
    assert all(set(entry) == {"file", "title", "story"} for entry in MANIFEST)


def test_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", NATIVE_EXAMPLES)
def test_example_is_valid_by_the_schema(name):
    assert list(VALIDATOR.iter_errors(json.loads((EXAMPLES / name).read_bytes()))) == []


@pytest.mark.parametrize("path", [*(EXAMPLES / e["file"] for e in MANIFEST), *RECORDS], ids=lambda p: p.name)
def test_record_survives_a_round_trip(path):
    run = parse_document(path.read_bytes())
    written = encode_native(run)

    assert parse_document(written) == run
    assert encode_native(parse_document(written)) == written
    assert list(VALIDATOR.iter_errors(json.loads(written))) == []


@pytest.mark.parametrize("name", NATIVE_EXAMPLES)
def test_example_has_only_known_fields_and_times_that_add_up(name):
    run = read_example(name)

    assert run.extra == {}
    assert [step.extra for step in run.steps if step.extra] == []
    assert sum(step.duration_ms or 0 for step in run.steps) == run.duration_ms


@pytest.mark.parametrize("name", NATIVE_EXAMPLES)
def test_example_tool_answers_are_those_in_the_messages(name):
    run = read_example(name)
    parts = [part for message in messages(run.final) for part in message.value["parts"]]
    answers = {p["tool_call_id"]: p["content"] for p in parts if p["part_kind"] == "tool-return"}
    asked = {p["tool_call_id"]: p["args"] for p in parts if p["part_kind"] == "tool-call"}

    calls = [call for _, call in run.tool_calls]
    assert {call.call_id: call.result.value for call in calls} == answers
    assert {call.call_id: call.arguments.value for call in calls} == asked


@pytest.mark.parametrize("name", NATIVE_EXAMPLES)
def test_example_histories_grow_from_step_to_step(name):
    calls = [call for _, call in read_example(name).model_calls]

    for before, call in pairwise(calls):
        assert call.history.parent == before.output_history
    assert read_example(name).final == calls[-1].output_history


def test_r_8821_holds_what_the_incident_is_about():
    run = read_example("r_8821.json")
    tool = run.steps[2]

    assert [step.duration_ms for step in run.steps] == [180, 1420, 240, 900, None]
    assert (run.user_id, run.tenant_id, run.code) == ("u_7710", "t_north", CodeInfo())
    assert (tool.user_id, tool.tenant_id) == (None, None)
    assert tool.call.arguments.value == {"query": "my order"}
    assert [order["order"] for order in tool.call.result.value] == ["#4421", "#4398", "#4377"]
    assert tool.call.result.value[0]["user_id"] != run.user_id
    assert run.output.value == "Order #4421 is shipped."


def test_price_429_keeps_the_partial_body_byte_for_byte():
    step = read_example("price_429.json").steps[1]

    assert step.http.status == 429
    assert step.http.response_body.content == step.call.result.content == b'{"price": 12'


def test_run_xyz789_repeats_one_call_twenty_times_and_ends_without_an_answer():
    run = read_example("run_xyz789.json")
    calls = [(call.arguments.content, call.result.content) for _, call in run.tool_calls]

    assert calls == [(b'{"query": "refund policy"}', b'{"docs": [], "count": 0}')] * 20
    assert run.steps[-1].call.response is None
    assert (run.status, run.error.type, run.steps[-1].error.type) == ("error", "TimeoutError", "TimeoutError")


def test_cancel_5521_cancels_what_the_lookup_called_non_cancellable():
    run = read_example("cancel_bug.json")
    lookup, cancel = (step for step in run.steps if step.kind == "tool")

    assert "non-cancellable" in lookup.call.result.value
    assert cancel.state.after[0] == {"op": "replace", "path": "/orders/ORD-5521/status", "value": "cancelled"}
    assert all(step.state for step in run.steps)


def test_charged_3107_paid_although_the_answer_broke_off():
    run = read_example("charged_twice.json")
    first, second = (step for step in run.steps if step.name == "charge_card")

    assert first.call.arguments.value == second.call.arguments.value
    assert first.call.result.value == '{"charge_id": "ch_3107_1'
    assert [len(state_after(run, step.index)["payments"]) for step in (first, second)] == [1, 2]
    assert len(state_after(run, len(run.steps))["outbox"]) == 2
    # The tools send no HTTP that could stand behind their values.
    assert [line.key for line in audit_kit(run).lines if line.status != "captured"] == ["tool_io"]
    found = [(anomaly.code, anomaly.steps) for anomaly in find_anomalies(run)]
    assert found == [("cut_off_json", (4,)), ("duplicate_call", (4, 6))]
    assert {anomaly.level for anomaly in find_anomalies(run)} == {"warning"}


# --- the page ----------------------------------------------------------------------------------


JSON_BLOCKS = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", JSON_BLOCKS)
def test_document_in_the_page_is_read(text):
    run = parse_document(text.encode())

    assert parse_document(encode_native(run)) == run
    assert run.status == "ok"
    kept_twice = {"items", "tool_calls"}  # what these formats say in their own words as well
    assert run.extra.keys() <= kept_twice


def test_page_shows_each_format():
    formats = {parse_document(text.encode()).source_format for text in JSON_BLOCKS}

    assert formats == {"native", "session-file", "pydantic-ai-messages", "openai-agents-items"}


def test_page_states_the_limits_of_the_parser():
    limits = Limits()

    assert f"{limits.max_bytes // 2**20} MiB" in PAGE
    assert f"{limits.max_depth} levels" in PAGE
    assert f"{limits.max_steps:,}" in PAGE


# --- field names -------------------------------------------------------------------------------


def make_full_run() -> Run:
    """Every field of every class set, so that the writer shows all the names it knows."""
    when = datetime(2026, 1, 2, tzinfo=UTC)
    error = ErrorInfo(type="E", message="m", extra={"x": 1})
    payload = Payload.of_text("p")
    history = extend(None, [Payload.of_json({"kind": "request", "parts": []})])
    http = HttpExchange(
        method="GET",
        url="https://example.com",
        request_headers=(("a", "b"),),
        request_body=payload,
        status=429,
        response_headers=(("c", "d"),),
        response_body=payload,
        extra={"x": 1},
    )
    model = ModelCall(
        history=History(history, Payload.of_json({"kind": "request", "parts": [{"n": 1}]})),
        response=Payload.of_json({"kind": "response", "parts": []}),
        parameters=Payload.of_json({"output_mode": "text"}),
        tools=(Payload.of_json({"name": "t"}),),
        settings=Payload.of_json({"temperature": 0.7}),
        model="m",
        answered_model="m-1",
        provider="p",
        region="r",
        finish_reason="stop",
        input_tokens=1,
        output_tokens=2,
    )
    tool = ToolCall(
        tool_name="t",
        call_id="c",
        arguments=payload,
        result=payload,
        outcome="retried",
        retry={"cause": "model_retry"},
        metadata=payload,
        content=payload,
        is_output=True,
    )
    chunk = Chunk(chunk_id="1", score=0.5, content=payload, extra={"x": 1})
    retrieval = Retrieval(query=payload, chunks=(chunk,), index_version="i", embedding_version="e")
    calls: list[Call] = [
        model,
        tool,
        retrieval,
        AgentCall(run_id="r", arguments=payload, result=payload),
        OtherCall(arguments=payload, result=payload),
    ]
    change = {"op": "add", "path": "/a", "value": 1}
    steps = [
        Step(
            index=index,
            name="n",
            call=call,
            parent=index - 1 or None,
            started_at=when,
            first_token_at=when,
            duration_ms=1.5,
            error=error,
            user_id="u",
            tenant_id="t",
            state=StateChange(before=(change,), after=(change,)),
            http=http,
            source="borrowed",
            extra={"x": 1},
        )
        for index, call in enumerate(calls, start=1)
    ]
    return Run(
        run_id="r",
        session_id="s",
        status="error",
        input=payload,
        output=payload,
        error=error,
        origin="fork",
        parent=ParentLink(run_id="q", step=1),
        source_format="session-file",
        agent=AgentInfo(
            name="a",
            version="1",
            framework="f",
            framework_version="2",
            entry_point="run",
            end_strategy="early",
            tool_retries={"t": 1},
            output_retries=1,
            output_function="book",
            output_changed=True,
            output_unchecked=True,
            usage_limits={"request_limit": 50},
            extra={"x": 1},
        ),
        code=CodeInfo(commit="c", dirty=True, versions={"a": "1"}, extra={"x": 1}),
        model="m",
        provider="p",
        region="r",
        instructions="i",
        user_id="u",
        tenant_id="t",
        flags={"f": True},
        started_at=when,
        duration_ms=2.5,
        prior=history,
        deferred=Payload.of_json({"c": "approved"}),
        initial_state=Payload.of_json({"a": 0}),
        steps=tuple(steps),
        final=model.output_history,
        extra={"x": 1},
    )


def unset_fields(value: object, path: str = "run") -> list[str]:
    """Fields that `make_full_run` left empty; steps beyond the first have a parent."""
    if isinstance(value, tuple):
        return [name for i, item in enumerate(value) for name in unset_fields(item, f"{path}[{i}]")]
    if not is_dataclass(value):
        return []
    found = []
    for field in fields(value):
        item = getattr(value, field.name)
        found += [f"{path}.{field.name}"] if item in (None, (), {}) else unset_fields(item, f"{path}.{field.name}")
    return found


def test_full_run_has_every_field_set():
    assert unset_fields(make_full_run()) == ["run.steps[0].parent"]


def test_full_run_survives_a_round_trip_and_is_valid():
    text = encode_native(make_full_run())

    assert parse_document(text) == make_full_run()
    assert list(VALIDATOR.iter_errors(json.loads(text))) == []


def written_names() -> dict[str, set[str]]:
    """Names that the writer emits, by the place in the schema that describes them."""
    record = json.loads(encode_native(make_full_run()))
    steps = {step["kind"]: step for step in record["steps"]}
    common = set.intersection(*(set(step) for step in record["steps"])) - {"x"}
    common.add("parent")
    names = {f"{kind}_step": set(step) - common for kind, step in steps.items()}
    names |= {
        "record": set(record),
        "step": common,
        "parent": set(record["parent"]),
        "agent": set(record["agent"]),
        "code": set(record["code"]),
        "error": set(record["error"]),
        "history": {name for step in (steps["model"]["request"], record["final"]) for name in step},
        "state": set(steps["tool"]["state"]),
        "http": set(steps["tool"]["http"]),
        "chunk": set(steps["retrieval"]["chunks"][0]),
    }
    return {place: found - {"x"} for place, found in names.items()}


def schema_names() -> dict[str, set[str]]:
    inline = {"record": SCHEMA, "state": SCHEMA["$defs"]["step"]["properties"]["state"]}
    inline |= {"http": SCHEMA["$defs"]["step"]["properties"]["http"]}
    inline |= {name: SCHEMA["properties"][name] for name in ("parent", "agent", "code")}
    places = inline | SCHEMA["$defs"]
    return {place: set(found["properties"]) for place, found in places.items() if "properties" in found}


def test_schema_has_the_fields_that_are_written():
    assert schema_names() == written_names()


def test_page_explains_the_fields_that_are_written():
    names = set().union(*written_names().values())

    assert sorted(name for name in names if f"`{name}`" not in PAGE) == []


# --- refusals ----------------------------------------------------------------------------------


def make_document(**changes: object) -> dict[str, object]:
    steps = [{"kind": "model"}, {"kind": "tool", "name": "t"}]
    document = {"format": "agent-replay.run", "version": 1, "run_id": "r", "steps": steps}
    return {name: value for name, value in (document | changes).items() if value is not ...}


def make_step(**changes: object) -> dict[str, object]:
    return make_document(steps=[{"kind": "model"}, {"kind": "tool", "name": "t"} | changes])


REFUSED_BY_BOTH = [
    (make_document(format="agent-replay.walk"), "format"),
    (make_document(version=2), "version"),
    (make_document(version=...), "version"),
    (make_document(run_id=...), "run_id"),
    (make_document(run_id=None), "run_id"),
    (make_document(run_id=" "), "run_id"),
    (make_document(run_id="a\n"), "run_id"),
    (make_document(run_id="a" * 513), "run_id"),
    (make_document(session_id=5), "session_id"),
    (make_document(status="fine"), "status"),
    (make_document(origin="invented"), "origin"),
    (make_document(parent={}), "parent.run_id"),
    (make_document(parent={"run_id": "a", "step": 0}), "parent.step"),
    (make_document(parent={"run_id": "a", "why": 1}), "parent.why"),
    (make_document(error=5), "error"),
    (make_document(error={"message": 5}), "error.message"),
    (make_document(agent=[]), "agent"),
    (make_document(agent={"output_retries": "1"}), "agent.output_retries"),
    (make_document(agent={"tool_retries": 1}), "agent.tool_retries"),
    (make_document(agent={"usage_limits": {"request_limit": True}}), "agent.usage_limits.request_limit"),
    (make_document(agent={"usage_limits": {"tool_calls_limit": "3"}}), "agent.usage_limits.tool_calls_limit"),
    (make_document(agent={"usage_limits": {"total_tokens_limit": -1}}), "agent.usage_limits.total_tokens_limit"),
    (make_document(agent={"usage_limits": {"input_tokens_limit": 2.5}}), "agent.usage_limits.input_tokens_limit"),
    (make_document(agent={"usage_limits": 3}), "agent.usage_limits"),
    (make_document(code={"dirty": "no"}), "code.dirty"),
    (make_document(model="a\x00"), "model"),
    (make_document(provider="a" * 1025), "provider"),
    (make_document(instructions=["be kind"]), "instructions"),
    (make_document(flags=[]), "flags"),
    (make_document(started_at=True), "started_at"),
    (make_document(duration_ms="12"), "duration_ms"),
    (make_document(prior={}), "prior"),
    (make_document(prior=["hello"]), "prior[0]"),
    (make_document(parameters={}), "parameters"),
    (make_document(tools="t"), "tools"),
    (make_document(steps={}), "steps"),
    (make_document(steps=["model"]), "steps[0]"),
    (make_document(final={"after": -1}), "final.after"),
    (make_document(final={"tail": []}), "final.tail"),
    (make_document(steps=[{}]), "steps[0].kind"),
    (make_document(steps=[{"kind": "guess"}]), "steps[0].kind"),
    (make_document(steps=[{"kind": "tool"}]), "steps[0].name"),
    (make_step(duration_ms="12"), "steps[1].duration_ms"),
    (make_step(duration_ms=True), "steps[1].duration_ms"),
    (make_step(parent=0), "steps[1].parent"),
    (make_step(source="thin air"), "steps[1].source"),
    (make_step(call_id=7), "steps[1].call_id"),
    (make_step(retry="twice"), "steps[1].retry"),
    (make_step(is_output=1), "steps[1].is_output"),
    (make_step(state={"after": [{"op": "add"}]}), "steps[1].state.after[0]"),
    (make_step(state={"during": []}), "steps[1].state.during"),
    (make_step(http={"status": -1}), "steps[1].http.status"),
    (make_step(http={"url": 5}), "steps[1].http.url"),
    (make_step(http={"request_headers": ["ab"]}), "steps[1].http.request_headers"),
    (make_step(http={"request_headers": 0}), "steps[1].http.request_headers"),
    (make_step(http={"response_headers": {"a": 1}}), "steps[1].http.response_headers"),
    (make_step(kind="model", input_tokens=-1), "steps[1].input_tokens"),
    (make_step(kind="model", request={"messages": [1]}), "steps[1].request.messages[0]"),
    (make_step(kind="model", request={"messages": [], "x": 1}), "steps[1].request.x"),
    (make_step(kind="model", tools=[None]), "steps[1].tools[0]"),
    (make_step(kind="model", parameters="first"), "steps[1].parameters"),
    (make_step(kind="retrieval", chunks=[1]), "steps[1].chunks[0]"),
    (make_step(kind="retrieval", chunks=[{"score": "high"}]), "steps[1].chunks[0].score"),
    (make_step(kind="agent", run_id=""), "steps[1].run_id"),
]

REFUSED_BY_THE_PARSER = [
    (make_document(started_at="yesterday"), "started_at"),
    (make_document(started_at=1e18), "started_at"),
    (make_document(input={"base64": "not base64"}), "input.base64"),
    (make_document(input={"base64": "", "media_type": "a/b\r\nx: y"}), "input.media_type"),
    (make_document(final={"after": 2}), "final.after"),
    (make_step(parent=2), "steps[1].parent"),
    (make_step(kind="model", tools=[0]), "steps[1].tools[0]"),
    (make_step(kind="model", parameters=3), "steps[1].parameters"),
    (make_step(kind="model", request={"after": 2}), "steps[1].request.after"),
    (make_step(kind="model", input_tokens=1.0), "steps[1].input_tokens"),
    (make_document(agent={"usage_limits": {"output_tokens_limit": 3.0}}), "agent.usage_limits.output_tokens_limit"),
]


def refused_field(document: dict[str, object]) -> str | None:
    with pytest.raises(RecordError) as caught:
        parse_document(json.dumps(document).encode())
    assert caught.value.message
    return caught.value.field


@pytest.mark.parametrize(("document", "field"), REFUSED_BY_BOTH)
def test_parser_and_schema_refuse_the_same(document, field):
    assert refused_field(document) == field
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(("document", "field"), REFUSED_BY_THE_PARSER)
def test_parser_refuses_what_a_schema_cannot_say(document, field):
    assert refused_field(document) == field


@pytest.mark.parametrize("document", [make_document(), make_step(parent=1), make_document(steps=..., status=None)])
def test_parser_and_schema_accept_the_same(document):
    parse_document(json.dumps(document).encode())

    assert VALIDATOR.is_valid(document)
