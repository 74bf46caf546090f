"""OTLP/HTTP: where the exporters of instrumented agents send spans and log records.

Source: OTLP specification 1.9, "OTLP/HTTP". Metrics are taken in and dropped, for senders that cannot be told to leave
them out would report errors for ever.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from sessions_app.api.bodies import read_body
from sessions_app.api.errors import Refused
from sessions_app.api.otlp_gate import GATE, expected_size
from sessions_app.api.otlp_keys import sending_project
from sessions_app.api.otlp_refusals import refusal_for
from sessions_app.core.otlp.answers import JSON_TYPE, PROTOBUF_TYPE, error_answer, export_answer
from sessions_app.core.otlp.decode import Decoded, decode_logs, decode_traces
from sessions_app.models import Project
from sessions_app.services.body_streams import discard_body
from sessions_app.services.ingest_log import note
from sessions_app.services.spans import receive

PREFIXES = "otel/|api/public/otel/"
"""What SDKs of other products put between the address of their server and that of the specification."""
_DECODE: dict[str, Callable[..., Decoded]] = {
    "traces": decode_traces,
    "logs": decode_logs,
    "metrics": lambda body, *, is_json: Decoded(),
}


_ADDRESS = re.compile(rf"/(?:{PREFIXES})?v1/(?P<signal>{'|'.join(_DECODE)})")


def serve_exporters(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A middleware that answers requests for these addresses itself: what pages need of cookies, forms and addresses
    would take a tenth of the time of a small export."""

    def serve(request: HttpRequest) -> HttpResponseBase:
        found = _ADDRESS.fullmatch(request.path_info)
        if found is None:
            return get_response(request)
        request.get_host()  # raises for one that is not ALLOWED_HOSTS'
        return export(request, found["signal"])

    return serve


def export(request: HttpRequest, signal: str) -> HttpResponse:
    """Serve one export request; the answer is always one that the specification knows."""
    return _Export(request, signal).answer()


class _Export:
    def __init__(self, request: HttpRequest, signal: str) -> None:
        self._request = request
        self._signal = signal
        self._project: Project | None = None
        self._is_json = request.content_type != PROTOBUF_TYPE
        """Also where nobody can know: then an error is in JSON."""

    def answer(self) -> HttpResponse:
        try:
            self._check_method()
            with GATE.enter(expected_size(self._request)):
                decoded = self._take_in()
            return self._accepted(decoded)
        except Exception as error:
            return self._refused(refusal_for(error))

    def _check_method(self) -> None:
        if self._request.method != "POST":
            raise Refused(405, "method_not_allowed", "Allowed here: POST.")

    def _take_in(self) -> Decoded:
        project = self._project = sending_project(self._request)
        if self._request.content_type not in (PROTOBUF_TYPE, JSON_TYPE):
            raise Refused(415, "unknown_type", f"Send {PROTOBUF_TYPE} or {JSON_TYPE}.")
        decoded = _DECODE[self._signal](read_body(self._request), is_json=self._is_json)
        if decoded.spans or decoded.logs:
            receive(project, decoded.spans, decoded.logs, others_wait=GATE.is_busy)
        return decoded

    def _accepted(self, decoded: Decoded) -> HttpResponse:
        words = _words(decoded)
        if taken := len(decoded.spans) + len(decoded.logs):
            self._note(200, "", taken)
        if decoded.refused:
            self._note(200, words, decoded.refused)
        return self._response(
            200, export_answer(self._signal, is_json=self._is_json, rejected=decoded.refused, message=words)
        )

    def _refused(self, refused: Refused) -> HttpResponse:
        # With 503 the database has enough to do, and the sender comes back.
        if refused.status not in (405, 503):
            self._note(refused.status, refused.message)
        discard_body(self._request)
        response = self._response(refused.status, error_answer(refused.status, refused.message, is_json=self._is_json))
        if refused.status == 401:
            response["WWW-Authenticate"] = "Bearer"
        if refused.status == 405:
            response["Allow"] = "POST"
        if refused.status == 503:
            response["Retry-After"] = str(random.randint(1, 5))  # not all of them at the same moment
        return response

    def _response(self, status: int, content: bytes) -> HttpResponse:
        response = HttpResponse(content, status=status, content_type=JSON_TYPE if self._is_json else PROTOBUF_TYPE)
        response["Content-Length"] = str(len(content))
        # Else Django logs every refusal: thousands of lines at the very moment that there is too much to do.
        response._has_been_logged = True  # type: ignore[attr-defined]
        return response

    def _note(self, status: int, words: str, count: int = 0) -> None:
        note(self._project, door=self._signal, status=status, words=words, count=count)


def _words(decoded: Decoded) -> str:
    """What the sender, and whoever looks for missing spans, is told; empty when all is well."""
    reasons = "; ".join(decoded.reasons)
    if not decoded.refused:
        return reasons
    total = decoded.refused + len(decoded.spans) + len(decoded.logs)
    return f"{decoded.refused} of {total} refused: {reasons}"
