"""The OpenAPI description: what ninja cannot see of an operation, and what all operations have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from ninja import NinjaAPI
from ninja.operation import Operation
from pydantic import BaseModel

ABOUT = """Send, read and replay recorded runs of AI agents.

Send `Authorization: Bearer <key>`. Lists return `items` and `next_cursor`; pass it as `cursor` to get the next page.
Every error is `{"error": {"code", "message", "field"}}`. Unknown values are `null`, times are ISO 8601 with an offset,
durations are milliseconds. Version 1 may gain fields, operations and error codes; docs/api.md has the rules."""

JSON_TYPE = "application/json"
BINARY_TYPE = "application/octet-stream"
ZIP_TYPES = ("application/zip", BINARY_TYPE)
"""What it is, and what it is to a client that knows no archives: generated ones leave out an answer of unknown type."""
XML_TYPE = "application/xml"
MARKDOWN_TYPE = "text/markdown"
REPORT_TYPES = (MARKDOWN_TYPE, "text/plain", "text/html", JSON_TYPE)
ANY_JSON = {"title": "Recording", "description": "Any JSON; the server recognises the format from the content."}
_BYTES = {"type": "string", "format": "binary"}
_OBJECT = {"type": "object"}
_SCHEMAS = {JSON_TYPE: _OBJECT, BINARY_TYPE: _BYTES, "application/zip": _BYTES}

REFUSALS = {
    400: "Invalid request; `field` names the part.",
    401: "No key, or not a valid one.",
    403: "The key's scope is too narrow: ingest keys only send recordings, and only admin keys manage the project.",
    404: "Not found in this key's project.",
    405: "Method not allowed; see the `Allow` header.",
    409: "Conflicts with something that already exists or is still running.",
    410: "The recorded bytes are missing or damaged on the server.",
    413: "The request or its answer exceeds a limit.",
    415: "Unsupported `Content-Encoding`.",
    429: "Too many requests are waiting; retry after `Retry-After` seconds.",
    500: "Server error; the reference in `message` is in the server's log.",
    503: "Temporarily unavailable; retry after `Retry-After` seconds.",
}
_PARAMETERS = {
    name: {"description": about}
    for name, about in {
        "q": "A query, as in the search box of the page.",
        "cursor": "`next_cursor` of the previous page.",
        "limit": "Items a page.",
        "changed_since": "Only what changed since then, oldest change first. Pass the newest `changed_at` next.",
        "wait": "Seconds to wait for it to end, up to 60.",
        "run_id": "Id of the run, or of its trace.",
        "step": "Number of the step, from 1.",
        "path": "A JSON Pointer such as `/orders/0/status`.",
        "left": "Id of the first run.",
        "right": "Id of the second run.",
        "digest": "SHA-256 in hex.",
        "golden": "Id of a golden; may be repeated.",
        "batch": "Id of the batch that the run belongs to.",
    }.items()
}
_CONTENT = re.compile(r"\{run_id\}|\{digest\}")
"""What is looked up by these, or made of spans meanwhile, is read from where recorded bytes lie."""
_NAMED: dict[str, dict[str, Any]] = {}
_ALWAYS = (400, 401, 405, 500, 503)
_HEADERS = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}}},
    405: {"Allow": {"schema": {"type": "string"}}},
    429: {"Retry-After": {"schema": {"type": "integer"}}},
    503: {"Retry-After": {"schema": {"type": "integer"}}},
}


class DescribedApi(NinjaAPI):
    """Ninja's, with a description that a client can be generated from."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def get_openapi_schema(self, **options: Any) -> Any:
        schema = super().get_openapi_schema(**options)
        for path, methods in schema["paths"].items():
            for operation in methods.values():
                operation["responses"] = _responses(path, operation)
                operation["summary"] = _first_sentence(operation["description"])
                for parameter in operation["parameters"]:
                    parameter |= _PARAMETERS.get(parameter["name"], {})
        schema["components"]["schemas"] |= _NAMED
        schema["components"]["responses"] = {_name(status): _refusal(status) for status in REFUSALS}
        return schema


def takes(schema: dict[str, Any], examples: dict[str, Any] | None = None) -> dict[str, Any]:
    """Of an operation that reads its body itself, by what it holds; `schema` and `examples` are of its JSON.

    Other types are left to the words of the operation: a client that is generated takes one.
    """
    described: dict[str, Any] = {"schema": schema}
    if examples is not None:
        described["examples"] = {name: {"value": value} for name, value in examples.items()}
    return {"requestBody": {"required": True, "content": {JSON_TYPE: described}}, "responses": {415: {}}}


def answers_file(*media_types: str) -> dict[str, Any]:
    """Of an operation that answers with a file. Where it has several forms, clients that are generated take the first
    that they know for all of them: a text, which each form is."""
    return {"responses": {200: {"description": "OK", "content": _content(media_types)}}}


def _content(media_types: Iterable[str]) -> dict[str, Any]:
    return {media_type: {"schema": _SCHEMAS.get(media_type, {"type": "string"})} for media_type in media_types}


def named(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a body that ninja does not see; it refers to no other."""
    _NAMED[model.__name__] = model.model_json_schema()
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _first_sentence(text: str) -> str:
    return " ".join(re.split(r"(?<=\.)\s", text, maxsplit=1)[0].split())


def _responses(path: str, operation: dict[str, Any]) -> dict[str, Any]:
    described = {int(status): answer for status, answer in operation["responses"].items()}
    refused = {*_ALWAYS, *(status for status in described if status >= 400), *_by_its_shape(path, operation)}
    described |= {status: {"$ref": f"#/components/responses/{_name(status)}"} for status in refused}
    return {str(status): described[status] for status in sorted(described)}


def _by_its_shape(path: str, operation: dict[str, Any]) -> list[int]:
    """Names in the address may be unknown, bodies too large, and keys too weak."""
    weak = any("FullKeyHolder" in scheme or "AdminKeyHolder" in scheme for scheme in operation.get("security", []))
    signs = {403: weak, 404: "{" in path, 410: _CONTENT.search(path) is not None, 413: "requestBody" in operation}
    return [status for status, applies in signs.items() if applies]


def _name(status: int) -> str:
    return HTTPStatus(status).phrase.replace(" ", "")


def _refusal(status: int) -> dict[str, Any]:
    answer = {
        "description": REFUSALS[status],
        "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}},
    }
    return answer | ({"headers": _HEADERS[status]} if status in _HEADERS else {})
