"""Recorded HTTP of nock and WireMock as the interactions of a cassette.

nock (`nock.recorder.rec({output_objects: true})`, or a fixture of `nock.back`):

    [{"scope": "https://api.example.com:443", "method": "GET", "path": "/order/7", "body": "", "status": 200,
      "response": {…} or text or ["hex", …], "rawHeaders": [name, value, …] or {…}}]

WireMock: one stub mapping or `{"mappings": […]}`, as its recorder writes them, and its journal `{"requests": […]}`.

nock and WireMock may keep a body as the JSON value in it: its spelling is lost then, and the exchange says so.
"""

from __future__ import annotations

import base64
import binascii

from sessions_app.core.errors import RecordError
from sessions_app.core.payload import JsonObject, JsonValue, compact_json

RESPELLED = "respelled"
"""Beside an interaction whose body came as a JSON value: the bytes are not those that went over the wire."""


def is_http_file(value: JsonValue) -> bool:
    return _is_nock(value) or _wiremock(value) is not None


def interactions_of(value: JsonValue) -> list[JsonObject]:
    """Raises `RecordError` naming the field."""
    if _is_nock(value):
        return [_from_nock(item, f"[{position}]") for position, item in enumerate(value)]
    name, items = _wiremock(value) or ("", [])
    return [_from_wiremock(item, f"{name}[{position}]" if name else "") for position, item in enumerate(items)]


# --- nock --------------------------------------------------------------------------------------


def _is_nock(value: JsonValue) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_nock_item(item) for item in value)


def _is_nock_item(item: JsonValue) -> bool:
    return isinstance(item, dict) and {"scope", "method", "path"} <= item.keys()


def _from_nock(item: JsonObject, path: str) -> JsonObject:
    request, response = _body(item.get("body")), _nock_response(item.get("response"), f"{path}.response")
    scope, place = item["scope"], item["path"]
    if not isinstance(scope, str) or not isinstance(place, str):
        raise RecordError(f"{path}.scope and path must be strings.", field=path)
    return {
        "request": {
            "method": item["method"],
            "uri": _without_port(scope) + place,
            "headers": item.get("reqheaders") or {},
            "body": request[0],
        },
        "response": {
            "status": {"code": item.get("status")},
            "headers": _nock_headers(item.get("rawHeaders") or item.get("headers")),
            "body": response[0],
        },
        **_respelled(request, response),
    }


def _without_port(scope: str) -> str:
    """The port that the scheme stands for is not written in an address."""
    for scheme, port in (("https://", ":443"), ("http://", ":80")):
        if scope.startswith(scheme):
            return scope.removesuffix(port)
    return scope


def _nock_response(value: JsonValue, path: str) -> tuple[JsonValue, bool]:
    """Packed answers are lists of hex texts, one for each piece that came."""
    is_hex = isinstance(value, list) and bool(value) and all(isinstance(piece, str) for piece in value)
    if not is_hex:
        return _body(value)
    try:
        content = bytes.fromhex("".join(value))
    except ValueError:
        return _body(value)
    return {"base64_string": base64.b64encode(content).decode()}, False


def _nock_headers(value: JsonValue) -> JsonObject:
    """An object, or names and values by turns; a name may come again."""
    if isinstance(value, dict):
        return value
    flat = value if isinstance(value, list) else []
    headers: dict[str, list[JsonValue]] = {}
    for name, said in zip(flat[::2], flat[1::2], strict=False):
        headers.setdefault(str(name), []).append(said)
    return dict(headers)


# --- WireMock ----------------------------------------------------------------------------------


def _wiremock(value: JsonValue) -> tuple[str, list[JsonValue]] | None:
    """Where its exchanges stand, and the exchanges."""
    if not isinstance(value, dict):
        return None
    for name in ("mappings", "requests"):
        items = value.get(name)
        if isinstance(items, list) and items and all(map(_is_wiremock_item, items)):
            return name, items
    return ("", [value]) if _is_wiremock_item(value) else None


def _is_wiremock_item(item: JsonValue) -> bool:
    request, response = (item.get("request"), item.get("response")) if isinstance(item, dict) else (None, None)
    if not isinstance(request, dict) or not isinstance(response, dict):
        return False
    has_place = any(name in request for name in ("url", "urlPath", "urlPattern", "urlPathPattern", "absoluteUrl"))
    return has_place and "method" in request and isinstance(response.get("status"), int)


def _from_wiremock(item: JsonObject, path: str) -> JsonObject:
    at = f"{path}." if path else ""
    asked, answered = item["request"], item["response"]
    if "bodyFileName" in answered:
        words = (
            "names a file that holds the body: send the mapping with the body in it, or WireMock's journal of requests"
        )
        raise RecordError(f"{at}response.bodyFileName {words}.", field=f"{at}response.bodyFileName")
    request, response = _wiremock_request(asked), _wiremock_response(answered, f"{at}response")
    place = next((asked[n] for n in ("absoluteUrl", "url", "urlPath") if isinstance(asked.get(n), str)), None)
    if place is None:
        raise RecordError(f"{at}request has a pattern and no url: send what was recorded.", field=f"{at}request")
    return {
        "request": {
            "method": asked["method"],
            "uri": place,
            "headers": _plain_headers(asked.get("headers")),
            "body": request[0],
        },
        "response": {
            "status": {"code": answered["status"], "message": answered.get("statusMessage")},
            "headers": _plain_headers(answered.get("headers")),
            "body": response[0],
        },
        **({"recorded_at": asked["loggedDateString"]} if isinstance(asked.get("loggedDateString"), str) else {}),
        **_respelled(request, response),
    }


def _wiremock_request(asked: JsonObject) -> tuple[JsonValue, bool]:
    if isinstance(asked.get("bodyAsBase64"), str):
        return {"base64_string": asked["bodyAsBase64"]}, False
    patterns = asked.get("bodyPatterns")
    first = patterns[0] if isinstance(patterns, list) and patterns and isinstance(patterns[0], dict) else {}
    if isinstance(first.get("binaryEqualTo"), str):
        return {"base64_string": first["binaryEqualTo"]}, False
    if "equalToJson" in first:
        return _body(first["equalToJson"])[0], True
    return _body(first.get("equalTo", asked.get("body")))


def _wiremock_response(answered: JsonObject, path: str) -> tuple[JsonValue, bool]:
    for name in ("base64Body", "bodyAsBase64"):
        if isinstance(answered.get(name), str):
            _check_base64(answered[name], f"{path}.{name}")
            return {"base64_string": answered[name]}, False
    if "jsonBody" in answered:
        return compact_json(answered["jsonBody"]).decode(), True
    return _body(answered.get("body"))


def _check_base64(text: str, path: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RecordError(f"{path} is not base64.", field=path) from None


def _plain_headers(value: JsonValue) -> JsonObject:
    """Of a mapping's request they are what a header has to match."""
    pairs = value.items() if isinstance(value, dict) else ()
    plain = {name: next(iter(said.values()), None) if isinstance(said, dict) else said for name, said in pairs}
    return {name: said for name, said in plain.items() if isinstance(said, str | list)}


# --- bodies ------------------------------------------------------------------------------------


def _body(value: JsonValue) -> tuple[JsonValue, bool]:
    """A text as it is, and another JSON value as its text, which is then not the text that was sent."""
    if value is None or isinstance(value, str):
        return value or None, False
    return compact_json(value).decode(), True


def _respelled(*bodies: tuple[JsonValue, bool]) -> JsonObject:
    return {RESPELLED: True} if any(is_respelled for _, is_respelled in bodies) else {}
