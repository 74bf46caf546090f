"""The API's own page, made from its OpenAPI description; no script and nothing from elsewhere."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI

GROUPS = {
    "Send and read runs": ("runs", "payloads", "exports"),
    "Sessions": ("sessions", "notes"),
    "Replay": ("replays", "session replays"),
    "Fork and resume": ("forks", "checkpoints"),
    "Compare": ("comparisons", "cold cases"),
    "Goldens": ("goldens", "datasets"),
    "Projects, members, keys and redaction": ("projects", "redaction"),
    "This server": ("server",),
}
"""Headings of the page, and the tags of what stands under each."""
_METHODS = ("get", "post", "put", "patch", "delete")


def docs_page(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    schema = api.get_openapi_schema()
    context = {
        "groups": groups(operations(schema)),
        "schemas": schemas(schema),
        "base": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "api/docs.html", context)


def groups(found: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """In the order in which people come to need them."""
    return [(title, [each for tag in tags for each in found if each["tag"] == tag]) for title, tags in GROUPS.items()]


def operations(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """One entry for each address and method, in the order of the code."""
    return [
        {
            "method": method.upper(),
            "tag": described["tags"][0],
            "path": path,
            "summary": described.get("description") or described.get("summary"),
            "parameters": described.get("parameters", []),
            "body": _schema_name(described.get("requestBody", {})),
            "answers": [
                {"status": status, "schema": _schema_name(_whole(schema, answer)), "about": _about(schema, answer)}
                for status, answer in described.get("responses", {}).items()
            ],
        }
        for path, methods in schema["paths"].items()
        for method, described in methods.items()
        if method in _METHODS
    ]


def schemas(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found = schema.get("components", {}).get("schemas", {})
    return [
        {
            "name": name,
            "example": _example(body),
            "fields": [
                {"name": field, "type": _type(described), "about": described.get("description", "")}
                for field, described in body.get("properties", {}).items()
            ],
        }
        for name, body in sorted(found.items())
    ]


def _example(body: dict[str, Any]) -> str:
    examples = body.get("examples", [])
    return json.dumps(examples[0], indent=2, ensure_ascii=False) if examples else ""


def _whole(schema: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Refusals stand in one place, and operations refer to them."""
    if "$ref" not in answer:
        return answer
    found: dict[str, Any] = schema["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return found


def _about(schema: dict[str, Any], answer: dict[str, Any]) -> str:
    """What a refusal means; of a file, its types."""
    files = [media_type for media_type in answer.get("content", {}) if media_type != "application/json"]
    return ", ".join(answer["content"]) if files else str(_whole(schema, answer)["description"])


def _schema_name(holder: dict[str, Any]) -> str | None:
    content = holder.get("content", {}).get("application/json", {}).get("schema", {})
    return _type(content) if content else None


def _type(described: dict[str, Any]) -> str:
    if "$ref" in described:
        return str(described["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in described:
        return " or ".join(_type(choice) for choice in described["anyOf"])
    if "enum" in described:
        return " | ".join(str(value) for value in described["enum"])
    if described.get("type") == "array":
        return f"list of {_type(described.get('items', {}))}"
    return str(described.get("type", "any"))
