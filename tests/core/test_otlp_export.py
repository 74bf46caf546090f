"""Runs as OTLP JSON, and such exports as runs again."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]  # it ships no types
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sessions_app.core.assembly.run import assemble
from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.otlp.decode import decode_traces
from sessions_app.core.otlp_export.request import export_run
from sessions_app.core.otlp_export.restore import is_export, restored_run, run_of_trace
from sessions_app.core.run import Run
from sessions_app.core.spans.span import Span
from tests.recorder.playing import last_record, recorded
from tests.recorder.replaying import assert_promise_kept, replayed
from tests.recorder.scenarios import SCENARIOS, multi_turn_with_repeated_ids

EXAMPLES = [path for path in sorted(Path("sessions_app/examples").glob("*.json")) if path.name != "manifest.json"]
SAMPLES = sorted(Path("tests/records").glob("*.json")) + EXAMPLES
OLD_NAMES = {"gen_ai.system", "gen_ai.prompt", "gen_ai.completion", "gen_ai.usage.prompt_tokens", "gen_ai.tool.message"}
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)


def read(sample: Path) -> Run:
    return parse_document(sample.read_bytes())


def native(**fields: Any) -> Run:
    record = {"format": "agent-replay.run", "version": 1, "run_id": "r1", **fields}
    return parse_native(json.dumps(record).encode())


def exported(run: Run) -> tuple[Span, ...]:
    decoded = decode_traces(export_run(run), is_json=True)
    assert decoded.refused == 0
    return decoded.spans


def restored(spans: Sequence[Span]) -> Run:
    """The run of a whole export."""
    run = restored_run(spans)
    assert run is not None
    return run


def said(run: Run) -> Any:
    """All that the run's record says; objects are equal whatever the order of their keys."""
    return json.loads(encode_native(run))


def changed(span: Span, **attributes: Any) -> Span:
    return replace(span, attributes={**span.attributes, **attributes})


def with_ids_as_bytes(request: Any) -> Any:
    """OTLP JSON writes ids in hex, where the JSON of protobuf expects base64."""
    if isinstance(request, list):
        return [with_ids_as_bytes(item) for item in request]
    if not isinstance(request, dict):
        return request
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode() if key in ids else with_ids_as_bytes(value)
        for key, value in request.items()
    }


EVERYTHING = {
    "session_id": "chat",
    "origin": "fork",
    "parent": {"run_id": "r0", "step": 1},
    "status": "error",
    "input": {"question": "where?", "n": 1.0},
    "output": {"base64": "AP8=", "media_type": "image/png"},
    "error": {"type": "Boom", "message": "no", "code": 7},
    "agent": {"name": "support", "end_strategy": "early", "tool_retries": {"look": 2}, "team": "blue"},
    "code": {"commit": "abc", "dirty": True, "versions": {"lib": "1"}},
    "model": "m",
    "provider": "p",
    "region": "eu",
    "instructions": "Be brief.",
    "user_id": "u",
    "tenant_id": "t",
    "flags": {"new": True},
    "started_at": "2026-02-17T14:23:01.000001+00:00",
    "duration_ms": 12.345678,
    "deferred": {"c9": "approved"},
    "initial_state": {"docs": []},
    "prior": [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}],
    "parameters": [{"function_tools": [{"name": "look"}], "output_mode": "text"}],
    "tools": [{"name": "look", "description": "Looks.", "parameters_json_schema": {"type": "object"}, "strict": True}],
    "own": {"kept": [1, None]},
    "steps": [
        {
            "kind": "model",
            "name": "first",
            "request": {
                "after": 0,
                "messages": [
                    {
                        "kind": "request",
                        "instructions": "Be brief.",
                        "parts": [
                            {"part_kind": "system-prompt", "content": "You help."},
                            {
                                "part_kind": "user-prompt",
                                "content": ["look", {"kind": "image-url", "url": "http://x/y"}],
                            },
                            {
                                "part_kind": "user-prompt",
                                "content": [{"kind": "binary", "data": "AA==", "media_type": "a/b"}],
                            },
                            {"part_kind": "user-prompt", "content": [7, {"kind": "odd"}], "timestamp": "t"},
                            {"part_kind": "user-prompt", "content": []},
                            {"part_kind": "retry-prompt", "content": "Again.", "retry": {"cause": "model_retry"}},
                            {
                                "part_kind": "retry-prompt",
                                "content": [{"loc": []}],
                                "tool_name": "look",
                                "tool_call_id": "c",
                            },
                            {"part_kind": "from-the-future", "type": "x", "agent_replay": 1, "content": None},
                            {"no kind": True},
                        ],
                    },
                    {"kind": "request", "parts": []},
                    {"kind": "odd", "parts": [{"part_kind": "odd"}]},
                ],
            },
            "response": {
                "kind": "response",
                "model_name": "m-2",
                "parts": [
                    {"part_kind": "thinking", "content": "hm", "signature": "s"},
                    {"part_kind": "text", "content": None},
                    {"part_kind": "tool-call", "tool_name": "look", "args": '{"a": 1}', "tool_call_id": "c1"},
                    {"part_kind": "builtin-tool-call", "tool_name": "web", "args": {}},
                ],
            },
            "parameters": 0,
            "tools": [0],
            "settings": {"temperature": 0.2, "seed": 7, "stop_sequences": ["."], "own": 1},
            "model": "m",
            "answered_model": "m-2",
            "provider": "p2",
            "finish_reason": "tool_call",
            "input_tokens": 10,
            "output_tokens": 3,
            "first_token_at": "2026-02-17T14:23:02+00:00",
        },
        {
            "kind": "tool",
            "tool_name": "look",
            "call_id": "c1",
            "parent": 1,
            "arguments": '{"a": 1}',
            "result": None,
            "outcome": "retried",
            "retry": {"cause": "model_retry"},
            "metadata": {"chunks": [1]},
            "content": "more",
            "is_output": True,
            "user_id": "other",
            "state": {"after": [{"op": "add", "path": "/a", "value": 1}]},
            "http": {"method": "GET", "status": 429, "request_headers": [["a", "b"]], "response_body": "cut {"},
            "tool_kind": "read",
        },
        {"kind": "retrieval", "query": "q", "parent": 2, "chunks": [{"id": "1", "score": 0.5, "content": "text"}]},
        {"kind": "agent", "name": "sub", "run_id": "r2", "arguments": {"x": 1}, "result": "done", "source": "by_hand"},
        {"kind": "other", "name": "prompt", "arguments": [1, 2], "result": {"base64": "AP8="}},
        {"kind": "model", "response": "not a message", "error": {"type": "Late", "message": "too late"}},
    ],
    "final": {"after": 1, "messages": [{"kind": "request", "parts": []}]},
}


@each_sample
def test_an_export_is_an_export_request_of_otlp(sample):
    run = read(sample)

    request = json_format.ParseDict(with_ids_as_bytes(json.loads(export_run(run))), ExportTraceServiceRequest())

    spans = request.resource_spans[0].scope_spans[0].spans
    ids = {span.span_id for span in spans}
    assert len(spans) == len(ids) == len(run.steps) + 1
    assert {len(span.trace_id) for span in spans} == {16}
    assert {len(each) for each in ids} == {8}
    assert [span.parent_span_id for span in spans if span.parent_span_id not in ids] == [b""]
    assert all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)


@each_sample
def test_an_export_has_only_todays_names(sample):
    names = {name for span in exported(read(sample)) for name in span.attributes}

    assert {name.split(".")[0] for name in names} <= {"gen_ai", "agent_replay", "user", "error"}
    assert not names & OLD_NAMES
    assert {"gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages"} <= names


@each_sample
def test_a_restored_run_says_the_same_and_is_exported_to_the_same_bytes(sample):
    run = read(sample)

    back = restored(exported(run))

    assert said(back) == said(run)
    assert judge(back) == judge(run)
    assert export_run(back) == export_run(run)


@each_sample
def test_a_restored_run_replays_as_the_recorded_one(sample):
    run = read(sample)

    assert assert_promise_kept(encode_native(restored(exported(run)))) == judge(run)


def test_a_changed_tool_result_in_an_export_changes_the_outcome_of_the_replay():
    spans = list(exported(read(Path("tests/records/parallel-tools.messages.json"))))
    at = next(i for i, span in enumerate(spans) if "gen_ai.tool.call.result" in span.attributes)
    spans[at] = changed(spans[at], **{"gen_ai.tool.call.result": '"something else"'})

    result, _ = replayed(encode_native(restored(spans)))

    assert result.verdict == "diverged"


def test_an_answer_of_an_earlier_turn_is_none_of_the_call_that_has_its_id_again():
    run = parse_native(recorded(multi_turn_with_repeated_ids())[-1])
    spans = exported(run)

    assert assert_promise_kept(encode_native(assemble(list(spans), is_closed=True))) == judge(run)
    assert judge(run).verdict == "replayable"


def test_another_answer_than_the_model_was_told_is_noticed_where_the_id_comes_again():
    spans = list(exported(parse_native(recorded(multi_turn_with_repeated_ids())[-1])))
    at = next(i for i, span in enumerate(spans) if "gen_ai.tool.call.result" in span.attributes)
    spans[at] = changed(spans[at], **{"gen_ai.tool.call.result": '"something else"'})

    judged = judge(assemble(spans, is_closed=True))

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("answer_contradicted", 3)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_recordings_of_every_kind_come_back(scenario):
    run = parse_native(last_record(scenario, "run"))

    back = restored(exported(run))

    assert said(back) == said(run)


def test_every_field_of_a_record_comes_back():
    run = native(**EVERYTHING)

    back = restored(exported(run))

    assert said(back) == said(run)
    assert export_run(back) == export_run(run)


def test_spans_say_what_a_reader_of_the_conventions_expects():
    root, first, tool, search, agent, _, failed = exported(native(**EVERYTHING))

    assert (root.name, root.attributes["gen_ai.conversation.id"]) == ("invoke_agent support", "chat")
    assert (root.status, root.events[0].attributes["exception.type"]) == ("error", "Boom")
    assert (first.name, first.parent_id, first.attributes["gen_ai.request.seed"]) == ("chat m", root.span_id, 7)
    roles = [message["role"] for message in json.loads(first.attributes["gen_ai.input.messages"])]
    assert roles == ["user", "system", "user", "tool", "user", "user", "user"]
    answer = json.loads(first.attributes["gen_ai.output.messages"])[0]
    assert [part["type"] for part in answer["parts"]] == ["reasoning", "text", "tool_call", "builtin-tool-call"]
    assert answer["parts"][2] | {"agent_replay": None} == {
        "type": "tool_call",
        "id": "c1",
        "name": "look",
        "arguments": '{"a": 1}',
        "agent_replay": None,
    }
    definitions = json.loads(first.attributes["gen_ai.tool.definitions"])
    assert (definitions[0]["parameters"], definitions[0]["type"]) == ({"type": "object"}, "function")
    assert (tool.name, tool.parent_id, tool.attributes["gen_ai.tool.call.result"]) == (
        "execute_tool look",
        root.span_id,
        "null",
    )
    assert (search.parent_id, search.attributes["gen_ai.retrieval.query.text"]) == (tool.span_id, "q")
    assert agent.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert (failed.status, failed.attributes["error.type"]) == ("error", "Late")


def test_steps_without_times_keep_their_order_one_nanosecond_apart():
    run = native(started_at="2026-01-01T00:00:00Z", steps=[{"kind": "tool", "tool_name": "a"}] * 3)

    root, *steps = exported(run)

    assert [span.start_ns for span in (root, *steps)] == [1_767_225_600_000_000_000 + n for n in range(4)]


def test_a_run_id_that_is_a_trace_id_stays_one():
    own = "0af7651916cd43dd8448eb211c80319c"

    assert exported(native(run_id=own))[0].trace_id == own
    assert exported(native(run_id="0" * 32))[0].trace_id != "0" * 32
    assert exported(native(run_id="a"))[0].trace_id == exported(native(run_id="a"))[0].trace_id
    assert exported(native(run_id="a"))[0].trace_id != exported(native(run_id="b"))[0].trace_id


def test_an_export_that_came_in_as_a_trace_has_the_id_of_the_trace():
    spans = exported(native(**EVERYTHING))

    run = run_of_trace(spans)

    assert run is not None
    assert (run.run_id, run.source_format) == (spans[0].trace_id, "native")
    assert run.extra == {"own": {"kept": [1, None]}, "exported_run_id": "r1"}
    assert said(run) | dict.fromkeys(("run_id", "exported_run_id")) == (
        said(native(**EVERYTHING)) | dict.fromkeys(("run_id", "exported_run_id"))
    )
    assert run_of_trace(exported(run)) == run
    assert run_of_trace(spans[1:]) is None


def test_the_order_in_which_spans_come_is_no_matter():
    run = native(**EVERYTHING)

    assert said(restored(exported(run)[::-1])) == said(run)


def test_a_part_of_an_export_is_no_whole_run():
    spans = exported(native(**EVERYTHING))

    assert is_export(spans)
    for left_out in range(len(spans)):
        assert restored_run(spans[:left_out] + spans[left_out + 1 :]) is None
    assert restored_run([*spans, spans[1]]) is None
    assert restored_run([]) is None
    assert not is_export(spans[1:])


HOSTILE = (
    None,
    7,
    -1,
    True,
    1.5,
    "",
    "{",
    "[]",
    "[1]",
    "{}",
    "null",
    "[" * 5000,
    [],
    [[]],
    {},
    "\ud800",
    '["\\ud800"]',
)


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: repr(value)[:20])
def test_attributes_of_any_kind_are_no_error(hostile):
    spans = exported(native(**EVERYTHING))

    for at, span in enumerate(spans):
        for name in span.attributes:
            back = restored_run([*spans[:at], changed(span, **{name: hostile}), *spans[at + 1 :]])
            assert back is None or export_run(back)


def test_a_run_that_would_repeat_itself_too_often_is_refused_before_it_is_written():
    message = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "x" * 1000}]}
    answer = {"kind": "response", "parts": []}
    steps = [{"kind": "model", "request": {"messages": [message]}, "response": answer}]
    steps += [
        {"kind": "model", "request": {"after": i, "messages": [message]}, "response": answer} for i in range(1, 50)
    ]
    run = native(steps=steps)

    with pytest.raises(RecordTooLarge):
        export_run(run, max_bytes=1_000_000)
    assert len(export_run(run, max_bytes=2_000_000)) > 1_000_000
