"""Bodies of OTLP/HTTP answers, in the encoding of the request.

Source: OTLP specification, "OTLP/HTTP Response"; `collector/*/v1/*_service.proto`, where all signals number alike;
google/rpc/status.proto. The messages are small enough to be written by hand.
"""

from __future__ import annotations

from sessions_app.core.payload import compact_json

JSON_TYPE, PROTOBUF_TYPE = "application/json", "application/x-protobuf"
REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords", "metrics": "rejectedDataPoints"}
"""By signal: how JSON calls the number of what was refused."""
_STATUS_CODES = {400: 3, 401: 16, 403: 7, 405: 12, 413: 3, 415: 3, 503: 14}
"""google.rpc.Code by HTTP status: invalid argument, unauthenticated, permission denied, unimplemented, unavailable."""
_UNKNOWN = 2


def export_answer(signal: str, *, is_json: bool, rejected: int = 0, message: str = "") -> bytes:
    """An `Export…ServiceResponse`; `partial_success` is set only when there is something to tell."""
    if is_json:
        told = {REJECTED[signal]: str(rejected), "errorMessage": message}
        return compact_json({"partialSuccess": told} if rejected or message else {})
    partial = _number(1, rejected) + _text(2, message)
    return _sized(1, partial) if partial else b""


def error_answer(status: int, message: str, *, is_json: bool) -> bytes:
    """A `google.rpc.Status` for this HTTP status."""
    code = _STATUS_CODES.get(status, _UNKNOWN)
    return compact_json({"code": code, "message": message}) if is_json else _number(1, code) + _text(2, message)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _text(field: int, value: str) -> bytes:
    return _sized(field, value.encode()) if value else b""


def _sized(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)
