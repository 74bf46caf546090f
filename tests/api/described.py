"""Whether an answer of the API is one that its description foresees."""

import json
import re
from datetime import datetime
from functools import cache
from typing import Any

from jsonschema import (  # type: ignore[import-untyped]  # its stubs are a package of their own
    Draft202012Validator,
    FormatChecker,
)

from sessions_app.api.urls import api

FORMATS = FormatChecker(formats=())


@FORMATS.checks("date-time", raises=ValueError)
def is_moment(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@cache
def description() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")))
    return found


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, methods in description()["paths"].items()
        for method, operation in methods.items()
    }


def whole(answer: dict[str, Any]) -> dict[str, Any]:
    """What a reference refers to."""
    if "$ref" not in answer:
        return answer
    found: dict[str, Any] = description()["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return found


def path_of(route: str) -> str:
    """As the description writes it."""
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)


def problem_of(method: str, path: str, status: int, content_type: str, content: bytes) -> str | None:
    """What of an answer the description does not say; None for nothing, and for what is no operation."""
    operation = operations().get((method, path))
    if operation is None:
        return None
    described = whole(operation["responses"].get(str(status), {}))
    if not described:
        return f"{method} {path}: {status} is not described"
    types = described.get("content")
    if types is None:
        return f"{method} {path}: {status} has a body" if content else None
    media_type = content_type.partition(";")[0]
    if media_type not in types:
        return f"{method} {path}: {status} is {media_type}, not one of {sorted(types)}"
    return _wrong_in(types[media_type]["schema"], content) if media_type == "application/json" else None


def errors_in(schema: dict[str, Any], value: Any) -> list[str]:
    found = _validator(json.dumps(schema)).iter_errors(value)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


def _wrong_in(schema: dict[str, Any], content: bytes) -> str | None:
    return next(iter(errors_in(schema, json.loads(content))), None)


@cache
def _validator(schema: str) -> Draft202012Validator:
    whole_schema = {**json.loads(schema), "components": description()["components"]}
    return Draft202012Validator(whole_schema, format_checker=FORMATS)
