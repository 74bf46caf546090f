"""What is answered, read back by the official library."""

import json

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from sessions_app.core.otlp.answers import REJECTED, error_answer, export_answer
from sessions_app.core.otlp.wire import FieldBudget, fields

RESPONSES = {
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points"),
}


@pytest.mark.parametrize("signal", RESPONSES)
def test_full_success_says_nothing(signal):
    assert export_answer(signal, is_json=False) == b""
    assert export_answer(signal, is_json=True) == b"{}"


@pytest.mark.parametrize(("rejected", "message"), [(7, "é" * 100), (300, ""), (0, "only a warning")])
@pytest.mark.parametrize("signal", RESPONSES)
def test_partial_success_is_read_by_the_official_library(signal, rejected, message):
    response, name = RESPONSES[signal]

    partial = response.FromString(
        export_answer(signal, is_json=False, rejected=rejected, message=message)
    ).partial_success
    said = json.loads(export_answer(signal, is_json=True, rejected=rejected, message=message))

    assert (getattr(partial, name), partial.error_message) == (rejected, message)
    assert said == {"partialSuccess": {REJECTED[signal]: str(rejected), "errorMessage": message}}
    assert partial.DESCRIPTOR.fields_by_name[name].json_name == REJECTED[signal]


def test_an_error_is_a_status():
    written = error_answer(503, "later", is_json=False)

    found = {tag >> 3: value for tag, value in fields(written, (0, len(written)), FieldBudget(10))}

    assert (found[1], written[slice(*found[2])]) == (14, b"later")  # type: ignore[misc]  # a sized field is a part
    assert json.loads(error_answer(503, "later", is_json=True)) == {"code": 14, "message": "later"}
