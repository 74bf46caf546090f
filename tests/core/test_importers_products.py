import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.conventions.langfuse.span import read as read_langfuse
from sessions_app.core.conventions.langsmith.span import read as read_langsmith
from sessions_app.core.errors import RecordError
from sessions_app.core.importers import langfuse, langsmith, langsmith_multipart, phoenix
from sessions_app.core.importers.documents import read_document
from sessions_app.core.importers.ids import span_id_of, trace_id_of
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.reading import ChatMessage, TextPart
from sessions_app.core.spans.span import SpanEvent

IMPORTERS = (langfuse, langsmith, phoenix)
ROOT = "01a1fce8-4dd6-7111-8983-865552df0bfd"
CALL = "01a1fce8-4df3-7223-befd-02009b9eb490"
BOUNDARY = "multipart/form-data; boundary=b0"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "data", "runs", "metadata"]), inner)
    ),
    max_leaves=8,
)
FIELDS = (
    *("id", "traceId", "type", "startTime", "observations", "level", "run_type", "context", "trace_id", "error"),
    *(
        "attributes",
        "events",
        "extra",
        "metadata",
        "start_time",
        "tags",
        "outputs",
        "name",
        "parent_id",
        "dotted_order",
    ),
)


def make_observation(**said: Any) -> dict[str, Any]:
    return {"id": "o-1", "traceId": "t-1", "type": "SPAN", "startTime": "2026-11-21T07:00:00.000Z", **said}


def make_run(**said: Any) -> dict[str, Any]:
    return {"id": CALL, "trace_id": ROOT, "run_type": "llm", "name": "chat", **said}


def make_phoenix(**said: Any) -> dict[str, Any]:
    return {"name": "chat", "context": {"trace_id": "a" * 32, "span_id": "b" * 16}, **said}


LANGFUSE = {"id": "t-1", "observations": [make_observation()]}
SAMPLES = [
    (langfuse, LANGFUSE),
    (langfuse, [LANGFUSE]),
    (langfuse, [make_observation()]),
    (langfuse, {"data": [make_observation()], "meta": {"page": 1}}),
    (langfuse, [{"id": "o", "trace_id": "t", "type": "SPAN", "start_time": "2026-11-21 07:00:00"}]),
    (langsmith, [make_run()]),
    (langsmith, {"runs": [make_run()]}),
    (langsmith, make_run()),
    (phoenix, [make_phoenix()]),
    (phoenix, {"data": [make_phoenix()], "next_cursor": None}),
    (phoenix, [{"context.trace_id": "a" * 32, "context.span_id": "b" * 16, "name": "chat"}]),
]


@pytest.mark.parametrize(("importer", "value"), SAMPLES)
def test_matches_is_true_for_one_product_alone(importer, value):
    assert [each for each in IMPORTERS if each.matches(value)] == [importer]
    assert len(importer.to_spans(value)) == 1


@pytest.mark.parametrize(
    "value", [None, 3, "text", [], {}, [1], {"data": []}, {"runs": 3}, {"runs": []}, {"run_id": "r", "steps": []}, [[]]]
)
def test_matches_is_false_for_other_documents(value):
    assert not any(each.matches(value) for each in IMPORTERS)


@pytest.mark.parametrize(
    ("importer", "value", "field"),
    [
        (langfuse, {"id": 3, "observations": []}, "id"),
        (langfuse, {"id": "t", "observations": [{"type": "SPAN"}]}, "observations[0].id"),
        (langfuse, [make_observation(), make_observation(traceId=None)], "[1].traceId"),
        (langfuse, {"data": [make_observation(startTime="soon")]}, "data[0].startTime"),
        (langfuse, [3], "[0]"),
        (langsmith, [{"id": CALL, "run_type": "llm", "parent_run_id": ROOT}], "[0].trace_id"),
        (langsmith, {"runs": [make_run(end_time="soon")]}, "runs[0].end_time"),
        (langsmith, {"runs": [make_run(id=None)]}, "runs[0].id"),
        (phoenix, [make_phoenix(context={"trace_id": "a"})], "[0].context.span_id"),
        (phoenix, {"data": [make_phoenix(start_time="soon")]}, "data[0].start_time"),
    ],
)
def test_to_spans_names_the_field_that_is_wrong(importer, value, field):
    with pytest.raises(RecordError) as caught:
        importer.to_spans(value)

    assert caught.value.field == field


def test_read_document_reads_json_and_lines():
    assert read_document(b'{"a": 1}').value == {"a": 1}
    assert read_document(b'{"a": 1}\n\n{"a": 2}\n').value == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"nothing\nat all", "not JSON"), (b'{"a": 1}\n{"a": ', "Line 2"), (b'{"a": ', "not JSON"), (b"\xff\n1", "UTF-8")],
)
def test_read_document_says_where_it_ends(content, words):
    with pytest.raises(RecordError, match=words):
        read_document(content)


def test_ids_are_those_of_opentelemetry_where_they_can_be():
    assert trace_id_of("A" * 32) == "a" * 32
    assert trace_id_of(ROOT) == ROOT.replace("-", "")
    assert span_id_of("b" * 16) == "b" * 16
    assert span_id_of(ROOT) == "8983865552df0bfd"
    assert span_id_of("o-1") == span_id_of("o-1") != span_id_of("o-2")
    assert len(trace_id_of("\ud800")) == 32


@pytest.mark.parametrize("text", ["0" * 32, "00000000-0000-0000-0000-000000000000", "", "z" * 16])
def test_ids_are_never_those_that_mean_none(text):
    assert trace_id_of(text).strip("0")
    assert span_id_of(text).strip("0")


def test_langfuse_trace_becomes_spans_that_its_convention_reads():
    generation = make_observation(
        id="o-2",
        type="GENERATION",
        name="llm",
        parentObservationId="o-1",
        endTime="2026-11-21T07:00:01.000Z",
        completionStartTime="2026-11-21T07:00:00.500Z",
        model="gpt-4o",
        modelParameters={"temperature": 0.2},
        input=[{"role": "user", "content": "Hi"}],
        output={"role": "assistant", "content": "Hello."},
        usageDetails={"input": 8, "input_cached_tokens": 12, "output": 3, "total": 23},
        level="DEFAULT",
        latency=1.0,
    )
    trace = {
        **LANGFUSE,
        "name": "checkout",
        "sessionId": "s-1",
        "userId": "u-1",
        "input": "asked",
        "output": "told",
        "tags": ["x"],
        "release": "1.4",
        "observations": [make_observation(), generation],
    }
    root, call = langfuse.to_spans(trace)
    whole, model = read_langfuse(root), read_langfuse(call)

    assert whole is not None
    assert model is not None
    assert (root.parent_id, call.parent_id, root.trace_id) == (None, root.span_id, call.trace_id)
    assert (whole.kind, whole.input, whole.output) == ("chain", "asked", "told")
    assert (model.kind, model.session_id, model.user_id, model.agent_version) == ("model", "s-1", "u-1", "1.4")
    assert model.messages == (ChatMessage(role="user", parts=(TextPart(text="Hi"),)),)
    assert model.answer == ChatMessage(role="assistant", parts=(TextPart(text="Hello."),))
    assert (model.model, model.settings, model.input_tokens) == ("gpt-4o", {"temperature": 0.2}, 20)
    assert (call.duration_ms, model.first_token_ns) == (1000.0, (call.start_ns or 0) + 500_000_000)
    assert call.attributes["langfuse.observation.export.latency"] == 1.0


@pytest.mark.parametrize("observations", [[], [make_observation(), make_observation(id="o-2")]])
def test_langfuse_trace_without_one_top_gets_a_span(observations):
    trace = {**LANGFUSE, "input": "asked", "timestamp": "2026-11-21T06:59:59Z", "observations": observations}
    top, *others = langfuse.to_spans(trace)

    assert top.attributes["langfuse.trace.input"] == "asked"
    assert top.attributes["langfuse.observation.type"] == "span"
    assert len({span.span_id for span in [top, *others]}) == len(observations) + 1
    assert top.start_ns == 1795244399000000000


def test_langfuse_error_is_the_level():
    [failed] = langfuse.to_spans([make_observation(type="TOOL", level="ERROR", statusMessage="503")])
    [warned] = langfuse.to_spans([make_observation(type="TOOL", level="WARNING", statusMessage="slow")])

    assert (failed.status, failed.status_message) == ("error", "503")
    assert (warned.status, warned.status_message) == ("unset", "")


def test_langfuse_event_ends_when_it_begins():
    [event] = langfuse.to_spans([make_observation(type="EVENT")])
    [open_span] = langfuse.to_spans([make_observation()])

    assert event.end_ns == event.start_ns is not None
    assert open_span.end_ns is None


def test_langfuse_observation_keeps_the_attributes_of_the_span_it_came_from():
    metadata = {"attributes": {"gen_ai.system": "openai"}, "scope": {"name": "lib"}, "team": "a"}
    [span] = langfuse.to_spans([make_observation(metadata=metadata)])

    assert span.attributes["gen_ai.system"] == "openai"
    assert span.attributes["langfuse.observation.metadata.team"] == "a"
    assert span.scope.name == "lib"


def test_langsmith_run_becomes_a_span_that_its_convention_reads():
    run = make_run(
        parent_run_id=ROOT,
        start_time="2026-11-21T07:00:45.171557",
        end_time="2026-11-21T07:00:45.210421+00:00",
        inputs={"messages": [{"role": "user", "content": "Hi"}]},
        outputs={"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}]},
        extra={
            "metadata": {"session_id": "s-1", "ls_provider": "openai"},
            "invocation_params": {"model": "gpt-4o", "temperature": 0.2, "tools": [{"name": "find"}]},
            "runtime": {"sdk": "langsmith-py"},
        },
        events=[{"name": "new_token", "time": "2026-11-21T07:00:45.2+00:00", "kwargs": {"token": "H"}}],
        tags=["a", "b"],
        session_id="of the project",
        prompt_tokens=20,
    )
    [span] = langsmith.to_spans([run])
    reading = read_langsmith(span)

    assert reading is not None
    assert (span.trace_id, span.span_id) == (ROOT.replace("-", ""), "befd02009b9eb490")
    assert (span.parent_id, span.status) == ("8983865552df0bfd", "unset")
    assert span.duration_ms == pytest.approx(38.864)
    assert (reading.kind, reading.session_id, reading.provider) == ("model", "s-1", "openai")
    assert (reading.model, reading.settings) == ("gpt-4o", {"temperature": 0.2})
    assert reading.answer == ChatMessage(role="assistant", parts=(TextPart(text="Hello."),))
    assert reading.tools is not None
    assert (reading.first_token_ns, reading.input_tokens) == (1795244445200000000, 20)
    assert span.attributes["langsmith.span.tags"] == "a, b"
    assert span.attributes["langsmith.run.session_id"] == "of the project"


def test_langsmith_error_is_read_as_the_exception_it_was():
    text = "ValueError('no')\n\nTraceback (most recent call last):\n  x"
    [span] = langsmith.to_spans([make_run(error=text, outputs={})])
    reading = read_langsmith(span)

    assert reading is not None
    assert span.status == "error"
    assert reading.error == ErrorInfo(
        type="ValueError", message="no", extra={"stacktrace": "Traceback (most recent call last):\n  x"}
    )


def test_langsmith_trace_id_may_be_in_the_dotted_order():
    order = f"20261121T070045142276Z{ROOT}.20261121T070045171557Z{CALL}"
    [span] = langsmith.to_spans([{"id": CALL, "run_type": "llm", "parent_run_id": ROOT, "dotted_order": order}])
    [root] = langsmith.to_spans([{"id": ROOT, "run_type": "chain"}])

    assert span.trace_id == root.trace_id == ROOT.replace("-", "")


def test_langsmith_first_token_time_stands_for_the_event():
    [span] = langsmith.to_spans([make_run(first_token_time="2026-11-21T07:00:45+00:00")])

    assert span.events == (SpanEvent(name="new_token", time_ns=1795244445000000000),)


def make_body(**parts: Any) -> bytes:
    """Parts by name, `__` for a dot and the run's id for `_`."""
    return b"".join(_part(name, value) for name, value in parts.items()) + b"--b0--\r\n"


def _part(name: str, value: Any) -> bytes:
    what, _, field = name.partition("__")
    head = f'--b0\r\nContent-Disposition: form-data; name="{what}.{CALL}{"." + field if field else ""}"\r\n'
    return head.encode() + b"Content-Type: application/json\r\n\r\n" + json.dumps(value).encode() + b"\r\n"


BEGUN = {**make_run(start_time="2026-11-21T07:00:45Z"), "parent_run_id": ROOT}
ENDED = {**make_run(end_time="2026-11-21T07:00:46Z"), "parent_run_id": None}


def test_multipart_post_and_patch_in_one_body_are_one_span():
    body = make_body(post=BEGUN, post__inputs={"a": 1}, post__outputs={}, patch=ENDED, patch__outputs={"output": "x"})
    [span] = langsmith_multipart.to_spans(body, BOUNDARY)

    assert (span.duration_ms, span.parent_id) == (1000.0, "8983865552df0bfd")
    assert (span.attributes["gen_ai.prompt"], span.attributes["gen_ai.completion"]) == ({"a": 1}, {"output": "x"})


def test_multipart_post_and_patch_in_two_bodies_are_halves_of_one_span():
    [begun] = langsmith_multipart.to_spans(make_body(post=BEGUN, post__inputs={"a": 1}, post__outputs={}), BOUNDARY)
    [ended] = langsmith_multipart.to_spans(make_body(patch=ENDED, patch__error="KeyError('a')"), BOUNDARY)

    assert (begun.trace_id, begun.span_id) == (ended.trace_id, ended.span_id)
    assert (begun.end_ns, ended.start_ns) == (None, None)
    assert "gen_ai.completion" not in begun.attributes
    assert "gen_ai.prompt" not in ended.attributes
    assert (begun.status, ended.status) == ("unset", "error")


def test_multipart_leaves_attachments_and_feedback_out():
    body = make_body(post=BEGUN, attachment__picture=[1], feedback={"score": 1})

    assert len(langsmith_multipart.to_spans(body, 'multipart/form-data; boundary="b0"')) == 1


@pytest.mark.parametrize(
    ("body", "content_type", "field"),
    [
        (make_body(post=BEGUN), "application/json", "Content-Type"),
        (make_body(post=BEGUN), "multipart/form-data", "Content-Type"),
        (make_body(post=BEGUN)[:-8], BOUNDARY, "body"),
        (b"", BOUNDARY, "body"),
        (make_body(post=[1]), BOUNDARY, f"post.{CALL}"),
        (make_body(post=BEGUN).replace(b'{"id"', b'{"id'), BOUNDARY, f"post.{CALL}"),
        (make_body(post=BEGUN).replace(b'name="', b'nome="'), BOUNDARY, "part 0"),
        (make_body(patch={"parent_run_id": ROOT}), BOUNDARY, f"run {CALL}.trace_id"),
    ],
)
def test_multipart_names_what_is_wrong(body, content_type, field):
    with pytest.raises(RecordError) as caught:
        langsmith_multipart.to_spans(body, content_type)

    assert caught.value.field == field


FLAT = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Hi",
    "llm.token_count.prompt": 20,
    "metadata": {"thread": {"id": 1}},
    "embedding.vector": [0.1, 0.2],
}
NESTED = {
    "openinference": {"span": {"kind": "LLM"}},
    "llm": {"input_messages": [{"message": {"role": "user", "content": "Hi"}}], "token_count": {"prompt": 20}},
    "metadata": {"thread": {"id": 1}},
    "embedding": {"vector": [0.1, 0.2]},
}
COLUMNS = {
    "attributes.openinference.span.kind": "LLM",
    "attributes.llm.input_messages": [{"message.role": "user", "message.content": "Hi"}],
    "attributes.llm.token_count.prompt": 20,
    "attributes.metadata": {"thread": {"id": 1}},
    "attributes.embedding.vector": [0.1, 0.2],
    "attributes.output.value": None,
}


@pytest.mark.parametrize(
    "said", [{"attributes": FLAT}, {"attributes": NESTED}, {"attributes": json.dumps(NESTED)}, COLUMNS]
)
def test_phoenix_attributes_are_flat_however_they_came(said):
    [span] = phoenix.to_spans([make_phoenix(**said)])

    assert span.attributes == FLAT


def test_phoenix_span_keeps_times_status_and_events():
    said = {"name": "exception", "timestamp": "2026-11-21T07:00:45Z", "attributes": {"exception": {"type": "KeyError"}}}
    [span] = phoenix.to_spans(
        [
            make_phoenix(
                parent_id="c" * 16,
                start_time=1795244445000,
                end_time="2026-11-21T07:00:46+00:00",
                status_code="ERROR",
                status_message="503",
                span_kind="TOOL",
                events=[said],
                id="U3BhbjoxMw==",
            )
        ]
    )

    assert (span.parent_id, span.duration_ms, span.status, span.status_message) == ("c" * 16, 1000.0, "error", "503")
    assert span.events == (
        SpanEvent(name="exception", time_ns=1795244445000000000, attributes={"exception.type": "KeyError"}),
    )
    assert span.attributes == {"openinference.span.kind": "TOOL", "phoenix.id": "U3BhbjoxMw=="}


def test_phoenix_attributes_nested_without_end_stay_as_they_are():
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    [span] = phoenix.to_spans([make_phoenix(attributes={"x": deep})])

    assert span.attributes.keys() == {"x"}


def spans_or_error(to_spans: Any, *given_: Any) -> Any:
    try:
        return to_spans(*given_)
    except RecordError as error:
        return error


@given(st.sampled_from(SAMPLES), st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1))
def test_importers_refuse_with_a_field_or_give_spans(sample, wrong):
    importer, value = sample
    items = value if isinstance(value, list) else value.get("data", value.get("runs", [value]))
    found = spans_or_error(importer.to_spans, [{**item, **wrong} for item in items])

    assert found.field if isinstance(found, RecordError) else len(found) > 0


@given(VALUES)
def test_importers_refuse_other_documents_with_words(value):
    for importer in IMPORTERS:
        assert importer.matches(value) is False
        assert spans_or_error(importer.to_spans, value).message


@given(st.binary(max_size=80), st.text())
def test_multipart_refuses_with_a_field_or_gives_spans(inner, content_type):
    body = make_body(post=BEGUN, post__inputs=1)
    at = len(inner) * 7 % len(body)
    found = spans_or_error(langsmith_multipart.to_spans, body[:at] + inner + body[at:], BOUNDARY)

    assert found.field if isinstance(found, RecordError) else len(found) <= 2
    assert spans_or_error(langsmith_multipart.to_spans, body, content_type).field == "Content-Type"
