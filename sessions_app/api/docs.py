"""The API's own pages, made from its OpenAPI description; no script and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI

from sessions_app.api.docs_examples import Examples
from sessions_app.api.docs_words import type_html, words_html
from sessions_app.api.openapi import JSON_TYPE, REFUSALS


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A page of its own, and the tags of the operations on it."""

    slug: str
    title: str
    tags: tuple[str, ...]


GROUPS = (
    Group(slug="runs", title="Runs", tags=("runs", "payloads", "exports")),
    Group(slug="sessions", title="Sessions and notes", tags=("sessions", "notes")),
    Group(slug="replays", title="Replays", tags=("replays", "session replays")),
    Group(slug="forks", title="Forks and checkpoints", tags=("forks", "checkpoints")),
    Group(slug="comparisons", title="Comparisons and cold cases", tags=("comparisons", "cold cases")),
    Group(slug="goldens", title="Goldens and datasets", tags=("goldens", "datasets")),
    Group(slug="projects", title="Projects, members and keys", tags=("projects", "redaction")),
    Group(slug="server", title="Server", tags=("server",)),
)
"""In the order in which people come to need them."""
_METHODS = ("get", "post", "put", "patch", "delete")


def index_page(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    reference = reference_of(api)
    context = {
        "groups": GROUPS,
        "groups_with_operations": [(group, reference.operations(group)) for group in GROUPS],
        "refusals": [(status, words_html(meaning)) for status, meaning in REFUSALS.items()],
        "base": _base(request),
    }
    return render(request, "api/docs.html", context)


def group_page(request: HttpRequest, api: NinjaAPI, slug: str) -> HttpResponse:
    group = next((each for each in GROUPS if each.slug == slug), None)
    if group is None:
        raise Http404
    reference = reference_of(api)
    operations = reference.operations(group, _base(request))
    context = {
        "groups": GROUPS,
        "group": group,
        "operations": operations,
        "schemas": reference.schemas_of(operations),
    }
    return render(request, "api/group.html", context)


@cache
def reference_of(api: NinjaAPI) -> Reference:
    return Reference(api.get_openapi_schema())


class Reference:
    """An OpenAPI description as the pages show it."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._paths: dict[str, Any] = described["paths"]
        self._schemas: dict[str, Any] = described["components"]["schemas"]
        self._examples = Examples(self._schemas)

    def operations(self, group: Group, base: str = "") -> list[dict[str, Any]]:
        """Of one address together, from a collection to its parts; else in the order of the code."""
        found = [
            self._operation(base, path, method, described)
            for tag in group.tags
            for path, methods in self._paths.items()
            for method, described in methods.items()
            if method in _METHODS and described["tags"] == [tag]
        ]
        paths = sorted(dict.fromkeys(each["path"] for each in found), key=lambda path: path.count("/"))
        return sorted(found, key=lambda each: paths.index(each["path"]))

    def _operation(self, base: str, path: str, method: str, described: dict[str, Any]) -> dict[str, Any]:
        body = described.get("requestBody", {}).get("content", {}).get(JSON_TYPE, {})
        good = [(status, answer) for status, answer in described["responses"].items() if status < "300"]
        status, answer = good[-1]
        return {
            "id": described["operationId"],
            "method": method.upper(),
            "path": path,
            "summary": words_html(described["summary"]),
            "about": words_html(described["description"]),
            "parameters": list(map(_parameter, described.get("parameters", []))),
            "body_optional": not described.get("requestBody", {}).get("required", False),
            "body": self._fields(_names_in(body.get("schema", {}))),
            "body_names": _names_in(body.get("schema", {})),
            "statuses": ", ".join(status for status, _ in good),
            "answer": type_html(_json_schema(answer)) if _json_schema(answer) else None,
            "answer_names": list(chain.from_iterable(_names_in(_json_schema(answer)) for _, answer in good)),
            "files": [each for each in answer.get("content", {}) if not _json_schema(answer)],
            "refusals": [status for status in described["responses"] if status >= "400"],
            "request_example": self._examples.curl(base, path, method.upper(), described),
            "answer_example": self._examples.answer(answer),
            "answer_status": status,
        }

    def schemas_of(self, operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What these answer with and what is inside of that; what they take stands beside them."""
        taken = {name for each in operations for name in each["body_names"]}
        found: dict[str, None] = {}
        waiting = [name for each in operations for name in each["answer_names"]]
        waiting += [inner for name in taken for inner in _names_in(self._schemas[name])]
        while waiting:
            if (name := waiting.pop(0)) not in found:
                found[name] = None
                waiting += _names_in(self._schemas[name])
        return [{"name": name, "fields": self._fields([name])} for name in sorted(found)]

    def _fields(self, names: list[str]) -> list[dict[str, Any]]:
        return [
            {
                "name": field,
                "type": type_html(described),
                "about": words_html(described.get("description", "")),
                "required": field in self._schemas[name].get("required", []),
            }
            for name in names
            for field, described in self._schemas[name].get("properties", {}).items()
        ]


def _base(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")


def _parameter(described: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": described["name"],
        "in": described["in"],
        "required": described.get("required", False),
        "type": type_html(described["schema"]),
        "about": words_html(described.get("description", "")),
    }


def _json_schema(answer: dict[str, Any]) -> dict[str, Any]:
    """Nothing for a file, of which JSON may be one form."""
    content = answer.get("content", {})
    schema: dict[str, Any] = content[JSON_TYPE]["schema"] if list(content) == [JSON_TYPE] else {}
    return schema


def _names_in(described: Any) -> list[str]:
    """Of the schemas that it refers to, in their order."""
    return list(dict.fromkeys(_each_name(described)))


def _each_name(described: Any) -> Iterator[str]:
    if isinstance(described, dict):
        if "$ref" in described:
            yield described["$ref"].rpartition("/")[2]
        described = list(described.values())
    if isinstance(described, list):
        for inner in described:
            yield from _each_name(inner)
