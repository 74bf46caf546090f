"""An example beside each operation: a request to paste into a shell, and an answer made from the schema."""

from __future__ import annotations

import json
from shlex import quote
from typing import Any
from urllib.parse import urlencode

from sessions_app.api.examples import VALUES
from sessions_app.api.openapi import BINARY_TYPE, JSON_TYPE

_EMPTY: dict[str, Any] = {"string": "", "integer": 1, "number": 1.0, "boolean": True, "object": {}, "any": None}


class Examples:
    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas

    def curl(self, base: str, path: str, method: str, operation: dict[str, Any]) -> str:
        """With what has to be sent, and nothing else."""
        body = operation.get("requestBody", {}).get("content", {}).get(JSON_TYPE)
        lines = ["curl" if method in ("GET", "POST" if body else "GET") else f"curl -X {method}"]
        lines[0] += ' -H "Authorization: Bearer $REPLAY_KEY"'
        if body:
            lines.append('-H "Content-Type: application/json"')
            lines.append(f"-d {quote(written(self._body(body)))}")
        lines.append(quote(base + _address(path, operation)) + _into_file(operation))
        return " \\\n  ".join(lines)

    def answer(self, answer: dict[str, Any]) -> str | None:
        content = answer.get("content", {})
        example = self.of(content[JSON_TYPE]["schema"]) if list(content) == [JSON_TYPE] else None
        return written(example) if example else None

    def of(self, described: dict[str, Any], name: str = "") -> Any:
        """A value that the schema allows. What may be null is, unless fields of this name have a value."""
        if "$ref" in described:
            return self.of(self._schemas[described["$ref"].rpartition("/")[2]], name)
        if described.get("examples"):
            return described["examples"][0]
        if "properties" in described:
            return {field: self.of(about, field) for field, about in described["properties"].items()}
        if "anyOf" in described:
            return self._of_choices(described["anyOf"], name)
        if described.get("type") == "array":
            item = self.of(described.get("items", {}), name)
            return [item] if item else []
        return _simple(described, name)

    def _of_choices(self, choices: list[dict[str, Any]], name: str) -> Any:
        first = choices[0]
        known = first.get("format") == "date-time" or name in VALUES.get(first.get("type", ""), {})
        return self.of(first, name) if known or {"type": "null"} not in choices else None

    def _body(self, body: dict[str, Any]) -> Any:
        given = [each["value"] for each in body.get("examples", {}).values()]
        return given[0] if given else self.of(body["schema"].get("anyOf", [body["schema"]])[0])


def written(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _address(path: str, operation: dict[str, Any]) -> str:
    parameters = operation.get("parameters", [])
    values = {each["name"]: _simple(each["schema"], each["name"]) for each in parameters if each["required"]}
    for each in parameters:
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", str(values.pop(each["name"])))
    return f"{path}?{urlencode(values)}" if values else path


def _into_file(operation: dict[str, Any]) -> str:
    content = operation["responses"].get("200", {}).get("content", {})
    return " -OJ" if BINARY_TYPE in content else ""


def _simple(described: dict[str, Any], name: str) -> Any:
    if described.get("format") == "date-time":
        return "2026-03-02T09:30:00+00:00"
    kind = described.get("type", "any")
    value = VALUES.get(kind, {}).get(name, _EMPTY[kind])
    allowed = described.get("enum", [described["const"]] if "const" in described else [value])
    return value if value in allowed else allowed[0]
