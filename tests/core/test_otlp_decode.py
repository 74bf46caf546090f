"""Requests of both encodings become the same spans, and one bad span does not take the others with it."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.trace.v1 import trace_pb2

from sessions_app.core.otlp.decode import Decoded, decode_logs, decode_traces
from sessions_app.core.otlp.errors import OtlpError
from sessions_app.core.otlp.schema import LOGS, TRACES, Kind
from sessions_app.core.spans.span import Link, Scope, Span, SpanEvent
from sessions_app.core.spans.span import LogRecord as OurLog
from tests.otlp_requests import (
    SPAN_ID,
    START,
    TRACE_ID,
    around_spans,
    as_json,
    as_protobuf,
    make_attributes,
    make_logs,
    make_span,
    make_traces,
    make_value,
    sized,
)


def decode_both(request, decode=decode_traces):
    """What both encodings of a request give, which has to be the same."""
    decoded = decode(as_protobuf(request), is_json=False)
    assert decode(as_json(request), is_json=True) == decoded
    return decoded


def from_json(span, **block):
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]} | block]}
    return decode_traces(json.dumps(request).encode(), is_json=True)


GOOD = {"traceId": TRACE_ID.hex(), "spanId": SPAN_ID.hex()}


def attribute_from_json(value):
    """The one attribute of a span, given its AnyValue as JSON text."""
    span = json.dumps(GOOD)[:-1] + f', "attributes": [{{"key": "a", "value": {value}}}]}}'
    text = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{span}]}}]}}]}}'
    decoded = decode_traces(text.encode("utf-8", "surrogatepass"), is_json=True)
    return decoded.spans[0].attributes["a"] if decoded.spans else decoded.reasons[0]


# What comes out


def test_every_field_of_a_span_arrives():
    request = make_traces(
        make_span(
            {"text": "é", "yes": True, "whole": -7, "half": 0.5, "bytes": b"\xff\x00", "list": [1, "a", [None]]},
            parent_span_id=b"\x01" * 8,
            trace_state="a=b",
            events=[{"name": "exception", "time_unix_nano": START + 1, "attributes": make_attributes({"a": {"b": 1}})}],
            links=[{"trace_id": SPAN_ID * 2, "span_id": SPAN_ID, "attributes": make_attributes({"l": 1})}],
            status={"code": 2, "message": "timed out"},
            dropped_attributes_count=1,
            dropped_events_count=2,
            dropped_links_count=4,
            flags=257,
        )
    )

    assert decode_both(request) == Decoded(
        spans=(
            Span(
                trace_id=TRACE_ID.hex(),
                span_id=SPAN_ID.hex(),
                parent_id="01" * 8,
                name="chat",
                kind=3,
                start_ns=START,
                end_ns=START + 5,
                status="error",
                status_message="timed out",
                attributes={
                    "text": "é",
                    "yes": True,
                    "whole": -7,
                    "half": 0.5,
                    "bytes": {"base64": "/wA="},
                    "list": [1, "a", [None]],
                },
                events=(SpanEvent(name="exception", time_ns=START + 1, attributes={"a": {"b": 1}}),),
                links=(Link(trace_id=SPAN_ID.hex() * 2, span_id=SPAN_ID.hex(), attributes={"l": 1}),),
                scope=Scope(name="library", version="1.2"),
                resource={"service.name": "shop"},
                trace_state="a=b",
                dropped=7,
            ),
        )
    )


def test_every_field_of_a_log_record_arrives():
    record = LogRecord(
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        time_unix_nano=START,
        severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
        event_name="gen_ai.choice",
        body=make_value({"role": "assistant"}),
        attributes=make_attributes({"index": 0}),
    )

    (log,) = decode_both(make_logs(record), decode_logs).logs

    event = SpanEvent(
        name="gen_ai.choice", time_ns=START, attributes={"index": 0}, body={"role": "assistant"}, severity="INFO"
    )
    assert log == OurLog(trace_id=TRACE_ID.hex(), span_id=SPAN_ID.hex(), event=event)


def test_an_attribute_with_two_values_is_two_versions_of_its_span_event_or_record():
    twice = [*make_attributes({"a": 1, "b": "x"}), *make_attributes({"a": 2, "b": "x"})]
    span = trace_pb2.Span(trace_id=TRACE_ID, span_id=SPAN_ID, attributes=twice)
    span.events.add(name="e", attributes=twice)
    log = LogRecord(trace_id=TRACE_ID, span_id=SPAN_ID, attributes=twice)
    versions = [{"a": 1}, {"a": 2, "b": "x"}]

    spans, logs = decode_both(make_traces(span)).spans, decode_both(make_logs(log), decode_logs).logs

    assert [each.attributes for each in spans] == versions
    assert [[event.attributes for event in each.events] for each in spans] == [versions, versions]
    assert [each.event.attributes for each in logs] == versions


def test_a_map_that_gives_a_key_two_values_stays_a_list():
    span = trace_pb2.Span(trace_id=TRACE_ID, span_id=SPAN_ID)
    for name, other in (("both", 2), ("same", 1)):
        map_of_two = span.attributes.add(key=name).value.kvlist_value
        map_of_two.values.extend([*make_attributes({"k": 1}), *make_attributes({"k": other})])

    (made,) = decode_both(make_traces(span)).spans

    assert made.attributes == {"both": [{"key": "k", "value": 1}, {"key": "k", "value": 2}], "same": {"k": 1}}


def test_a_log_record_may_name_no_trace_and_have_its_name_among_the_attributes():
    record = LogRecord(observed_time_unix_nano=START, attributes=make_attributes({"event.name": "old"}))

    (log,) = decode_both(make_logs(record), decode_logs).logs

    assert (log.trace_id, log.span_id) == (None, None)
    assert log.event == SpanEvent(name="old", time_ns=START, attributes={"event.name": "old"})


def test_spans_share_their_resource_and_scope():
    first, second = decode_both(make_traces(make_span(), make_span(span_id=b"\x02" * 8))).spans

    assert first.resource is second.resource
    assert first.scope is second.scope


@pytest.mark.parametrize("body", [b"", as_protobuf(make_traces())])
def test_a_request_without_spans_is_fine(body):
    assert decode_traces(body, is_json=False) == Decoded()


@pytest.mark.parametrize(("number", "said"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_doubles_that_json_does_not_know_are_named(number, said):
    assert decode_both(make_traces(make_span({"a": number}))).spans[0].attributes == {"a": {"double": said}}


def test_an_unknown_kind_and_status_are_none():
    span = decode_both(make_traces(make_span(kind=77, status={"code": 9}))).spans[0]

    assert (span.kind, span.status) == (0, "unset")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\0é", max_size=3), inner, max_size=3),
    max_leaves=8,
)
attributes = st.dictionaries(st.text("abc.", max_size=5), values, max_size=4)
spans = st.builds(
    make_span,
    attributes,
    parent_span_id=st.sampled_from([b"", bytes(8), SPAN_ID]),
    kind=st.integers(0, 5),
    start_time_unix_nano=st.integers(0, 2**63 - 1),
    events=st.lists(
        st.builds(trace_pb2.Span.Event, name=st.text("ab"), attributes=attributes.map(make_attributes)), max_size=2
    ),
    status=st.builds(trace_pb2.Status, code=st.sampled_from([0, 1, 2]), message=st.text("ab")),
)


@given(st.lists(spans, max_size=3), attributes, st.booleans(), st.booleans())
@settings(max_examples=60)
def test_both_encodings_of_a_request_give_equal_spans(made, resource, with_numbers, with_file_names):
    request = make_traces(*made, resource=resource)
    options = {"use_integers_for_enums": with_numbers, "preserving_proto_field_name": with_file_names}
    body = as_json(request, **options)

    decoded = decode_traces(as_protobuf(request), is_json=False)

    assert decode_traces(body, is_json=True) == decoded
    assert len(decoded.spans) == len(made)


@given(st.binary(max_size=200), st.booleans())
@settings(max_examples=300)
def test_any_bytes_give_spans_or_our_error(body, is_json):
    for decode in (decode_traces, decode_logs):
        with suppress(OtlpError):
            assert isinstance(decode(body, is_json=is_json), Decoded)


@given(st.data())
@settings(max_examples=200)
def test_a_damaged_request_gives_spans_or_our_error(data):
    body = bytearray(as_protobuf(make_traces(make_span({"a": [1, {"b": "c"}]}), make_span())))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    with suppress(OtlpError):
        assert isinstance(decode_traces(bytes(body), is_json=False), Decoded)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("a0é\ud800\0", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [name for signal in (TRACES, LOGS) for name in signal.record.by_name]
                + ["spans", "scopeSpans", "resourceSpans", "key", "value", "stringValue", "arrayValue", "values"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
@settings(max_examples=300)
def test_any_json_gives_spans_or_our_error(value):
    within = {"resourceSpans": [{"scopeSpans": [{"spans": [value, GOOD]}]}]}

    assert decode_traces(json.dumps(within).encode(), is_json=True).spans[-1].trace_id == TRACE_ID.hex()
    with suppress(OtlpError):
        assert isinstance(decode_traces(json.dumps(value).encode(), is_json=True), Decoded)


def test_the_numbers_of_the_schema_are_those_of_the_specification():
    for signal, service in (
        (TRACES, trace_service_pb2.ExportTraceServiceRequest),
        (LOGS, logs_service_pb2.ExportLogsServiceRequest),
    ):
        assert compare_with_official(signal.request, service.DESCRIPTOR) > 10


def compare_with_official(message, descriptor):
    """How many fields were compared."""
    compared = 0
    for field in message.fields:
        official = descriptor.fields_by_name[field.name]
        assert (field.number, field.json_name, field.many) == (
            official.number,
            official.json_name,
            official.is_repeated,
        )
        if field.kind is Kind.ENUM:
            assert dict(field.words) == {value.name: value.number for value in official.enum_type.values}
        if field.kind in (Kind.MESSAGE, Kind.BLOCK, Kind.RECORD):
            compared += compare_with_official(field.message, official.message_type)
        compared += 1
    return compared


# Refused alone


def in_one_span(span):
    return sized(2, span)


BAD = {
    "trace_id is missing": as_protobuf(make_span(trace_id=b"")),
    "trace_id is all zeros": as_protobuf(make_span(trace_id=bytes(16))),
    "span_id is not 8 bytes, in JSON 16 hex digits": as_protobuf(make_span(span_id=b"\x01" * 7)),
    "parent_span_id is not 8 bytes, in JSON 16 hex digits": as_protobuf(make_span(parent_span_id=b"\x01" * 9)),
    "start_time_unix_nano is out of range": as_protobuf(make_span(start_time_unix_nano=2**64 - 1)),
    "there are more than 2000 attributes": as_protobuf(make_span({str(n): n for n in range(2001)})),
    "malformed protobuf: it ends in the middle of a field": as_protobuf(make_span())[:-1],
}


def test_seven_bad_spans_of_a_hundred_are_refused_alone():
    good = [as_protobuf(make_span(span_id=bytes([7] * 7 + [n]))) for n in range(93)]
    mixed = good[:40] + list(BAD.values()) + good[40:]

    decoded = decode_traces(around_spans(b"".join(map(in_one_span, mixed))), is_json=False)

    assert [span.span_id[-2:] for span in decoded.spans] == [f"{n:02x}" for n in range(93)]
    assert decoded.refused == 7
    assert sorted(decoded.reasons) == sorted(f"{words} (1)" for words in BAD)


BAD_JSON = {
    "trace_id is missing": {"spanId": SPAN_ID.hex()},
    "span_id is all zeros": GOOD | {"spanId": "0" * 16},
    "trace_id is not 16 bytes, in JSON 32 hex digits": GOOD | {"traceId": "AQIDBAUGBwgJCgsMDQ4PEA=="},
    "Span is not an object": 7,
    "name is not a text": GOOD | {"name": 7},
    "start_time_unix_nano is not a whole number": GOOD | {"startTimeUnixNano": "yesterday"},
    "end_time_unix_nano is out of range": GOOD | {"endTimeUnixNano": -1},
    "attributes is not a list": GOOD | {"attributes": {}},
    "an attribute is not an object": GOOD | {"attributes": ["a"]},
    "the key of an attribute is not a text": GOOD | {"attributes": [{"key": 0}]},
    "stringValue is not a text": GOOD | {"attributes": [{"key": "a", "value": {"stringValue": 7}}]},
    "intValue is not a whole number": GOOD | {"attributes": [{"key": "a", "value": {"intValue": 1.5}}]},
    "boolValue is not true or false": GOOD | {"attributes": [{"key": "a", "value": {"boolValue": "true"}}]},
    "doubleValue is not a number": GOOD | {"attributes": [{"key": "a", "value": {"doubleValue": "x"}}]},
    "bytesValue is not base64": GOOD | {"attributes": [{"key": "a", "value": {"bytesValue": "a"}}]},
    "Status is not an object": GOOD | {"status": "ok"},
    "Event is not an object": GOOD | {"events": [None]},
    "dropped_links_count is out of range": GOOD | {"droppedLinksCount": -1},
    "time_unix_nano is out of range": GOOD | {"events": [{"timeUnixNano": 10**20}]},
}


@pytest.mark.parametrize(("words", "span"), BAD_JSON.items(), ids=BAD_JSON)
def test_a_bad_span_in_json_is_refused_alone(words, span):
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [span, GOOD]}]}]}

    decoded = decode_traces(json.dumps(body).encode(), is_json=True)

    assert (len(decoded.spans), decoded.refused, decoded.reasons) == (1, 1, (f"{words} (1)",))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b"7",
        b'{"resourceSpans": {}}',
        b'{"resourceSpans": [7]}',
        b'{"resourceSpans": [{"resource": 7}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"scope": {"name": 7}}]}]}',
        b"{} {}",
    ],
)
def test_json_that_cannot_be_taken_apart_is_refused(body):
    with pytest.raises(OtlpError):
        decode_traces(body, is_json=True)


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a",
        b"\x0a\x05a",
        b"\x0b",
        b"\x00",
        b"\x02\x00",
        b"\xff" * 11,
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ],
)
def test_protobuf_that_cannot_be_taken_apart_is_refused(body):
    with pytest.raises(OtlpError, match="malformed protobuf"):
        decode_traces(body, is_json=False)


# JSON as it is sent


def test_ids_may_be_in_either_case_and_times_numbers_or_texts():
    span = from_json({"traceId": "ABCD" * 8, "spanId": "EF" * 8, "startTimeUnixNano": "5", "endTimeUnixNano": 6}).spans[
        0
    ]

    assert (span.trace_id, span.span_id, span.start_ns, span.end_ns) == ("abcd" * 8, "ef" * 8, 5, 6)


@pytest.mark.parametrize("kind", [3, "3", "SPAN_KIND_CLIENT", 3.0])
def test_an_enum_may_be_a_number_or_a_name(kind):
    assert from_json(GOOD | {"kind": kind}).spans[0].kind == 3


@pytest.mark.parametrize("status", [{"code": 2}, {"code": "STATUS_CODE_ERROR"}])
def test_a_status_may_be_a_number_or_a_name(status):
    assert from_json(GOOD | {"status": status}).spans[0].status == "error"


@pytest.mark.parametrize("more", [{}, {"status": {}}, {"parentSpanId": ""}, {"parentSpanId": None, "events": None}])
def test_what_is_left_out_has_its_default(more):
    assert from_json(GOOD | more).spans[0] == Span(trace_id=TRACE_ID.hex(), span_id=SPAN_ID.hex())


def test_names_may_be_those_of_the_proto_files():
    span = {"trace_id": TRACE_ID.hex(), "span_id": SPAN_ID.hex(), "start_time_unix_nano": 5}
    span["attributes"] = [{"key": "a", "value": {"string_value": "b"}}]
    body = {"resource_spans": [{"scope_spans": [{"spans": [span]}]}]}

    (found,) = decode_traces(json.dumps(body).encode(), is_json=True).spans

    assert (found.start_ns, found.attributes) == (5, {"a": "b"})


def test_unknown_fields_are_skipped():
    unknown = b"\xa5\x06abcd" + b"\xa1\x06abcdefgh" + b"\xa0\x06\x01" + b"\xa2\x06\x01a"
    body = around_spans(in_one_span(as_protobuf(make_span()) + unknown) + unknown) + unknown

    (span,) = decode_traces(body, is_json=False).spans

    assert (span.span_id, span.name) == (SPAN_ID.hex(), "chat")
    assert from_json(GOOD | {"future": [{"a": 1}], "flags": 1}, schemaUrl="x", future=7) == from_json(GOOD)


# Text and numbers


@pytest.mark.parametrize(
    ("json_text", "value"),
    [
        (r'{"stringValue": "a\u0000b"}', "a\0b"),
        (r'{"stringValue": "a\\u0000b"}', r"a\u0000b"),
        (r'{"stringValue": "\ud83d\ude00"}', "😀"),
        (r'{"stringValue": "a\ud83d"}', "a\ufffd"),
        (r'{"stringValue": "\ude00\ud83d"}', "\ufffd\ufffd"),
        ('{"stringValue": "\u202e\u200b\x1b[31m"}', "\u202e\u200b\x1b[31m"),
        ('{"stringValue": "a\tb\nc"}', "a\tb\nc"),
        ('{"intValue": "9223372036854775807"}', 2**63 - 1),
        ('{"intValue": 18446744073709551616}', 2**64),
        (f'{{"intValue": "{"9" * 30}"}}', 10**30 - 1),
        (f'{{"intValue": {"9" * 5000}}}', "intValue is not a whole number (1)"),
        (f'{{"intValue": "{"9" * 5000}"}}', "intValue is not a whole number (1)"),
        ('{"doubleValue": 1.0}', 1.0),
        ('{"doubleValue": 1}', 1.0),
        ('{"doubleValue": "0.25"}', 0.25),
        ('{"doubleValue": NaN}', {"double": "NaN"}),
        ('{"doubleValue": "-Infinity"}', {"double": "-Infinity"}),
        ('{"doubleValue": 1e999}', {"double": "Infinity"}),
        ('{"bytesValue": "_-8"}', {"base64": "/+8="}),
        ('{"stringValue": "a", "stringValue": "b"}', "b"),
        ('{"stringValue": null}', None),
        ('{"arrayValue": {}}', []),
        ('{"kvlistValue": {"values": null}}', {}),
        ("{}", None),
        ("null", None),
    ],
)
def test_values_in_json(json_text, value):
    found = attribute_from_json(json_text)

    assert (found, type(found)) == (value, type(value))


def test_text_that_is_not_utf_8_is_repaired_and_told():
    value = sized(9, sized(1, b"a") + sized(2, sized(1, b"b\xffc")))
    body = around_spans(in_one_span(as_protobuf(make_span()) + value))

    decoded = decode_traces(body, is_json=False)

    assert decoded.spans[0].attributes == {"a": "b\ufffdc"}
    assert decoded.refused == 0
    assert decoded.reasons == ("something was not valid Unicode text and became U+FFFD",)


def test_json_that_is_not_utf_8_or_begins_with_a_mark_is_read():
    body = as_json(make_traces(make_span({"a": "bXc"})))

    assert decode_traces(b"\xef\xbb\xbf" + body, is_json=True) == decode_traces(body, is_json=True)
    assert decode_traces(body.replace(b"X", b"\xff"), is_json=True).spans[0].attributes == {"a": "b\ufffdc"}
