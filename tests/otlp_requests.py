"""OTLP requests as the official library writes them, in both encodings."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

TRACE_ID = bytes(range(1, 17))
SPAN_ID = bytes(range(0xA1, 0xA9))
START = 1_700_000_000_123_456_789
PROTOBUF, JSON = "application/x-protobuf", "application/json"
_IDS = {"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"}


def make_value(value: Any) -> AnyValue:
    """Of a Python value of the kinds that AnyValue knows; None is an empty one."""
    match value:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=map(make_value, value)))
        case dict():
            return AnyValue(kvlist_value=KeyValueList(values=make_attributes(value)))
    return AnyValue(string_value=value)


def make_attributes(attributes: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=make_value(value)) for key, value in attributes.items()]


def make_span(attributes: dict[str, Any] | None = None, **fields: Any) -> Span:
    """A good span, with these fields in place of its own."""
    good: dict[str, Any] = {
        "trace_id": TRACE_ID,
        "span_id": SPAN_ID,
        "name": "chat",
        "kind": 3,
        "start_time_unix_nano": START,
    }
    return Span(**good | {"end_time_unix_nano": START + 5, "attributes": make_attributes(attributes or {})} | fields)


def make_traces(*spans: Span, resource: dict[str, Any] | None = None) -> ExportTraceServiceRequest:
    """One resource, one scope."""
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add()
    block.resource.attributes.extend(make_attributes(resource or {"service.name": "shop"}))
    scope = block.scope_spans.add()
    scope.scope.name, scope.scope.version = "library", "1.2"
    scope.spans.extend(spans)
    return request


def make_logs(*records: LogRecord) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.extend(records)
    return request


def as_json(request: Any, **options: Any) -> bytes:
    """OTLP's JSON: as Protobuf's own mapping, but ids are hex."""
    return json.dumps(_with_hex_ids(MessageToDict(request, **options))).encode()


def as_protobuf(request: Any) -> bytes:
    return bytes(request.SerializeToString())


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_hex_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(item).hex() if key in _IDS and isinstance(item, str) else _with_hex_ids(item)
        for key, item in value.items()
    }


def sized(number: int, content: bytes) -> bytes:
    """A field of protobuf that holds bytes, written by hand: for requests that no library would write."""
    size, written = len(content), bytearray([number << 3 | 2])
    while size > 127:
        written.append(size & 127 | 128)
        size >>= 7
    return bytes([*written, size]) + content


def around_spans(spans: bytes) -> bytes:
    """A request of one resource and one scope whose content is given."""
    return sized(1, sized(2, spans))
