"""Small builders for tests that have a database: projects with keys, and records as producers send them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client

from replay_web.supervisor.home import PROJECT_ROOT
from sessions_app.core.spans.span import Span
from sessions_app.models import IngestNote, Project
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import create_key

RECORDS = PROJECT_ROOT / "tests" / "records"
EXAMPLES = PROJECT_ROOT / "sessions_app" / "examples"
SESSION_FILE = RECORDS / "session_abc123.json"
SAMPLES = sorted(RECORDS.glob("*.json")) + sorted(set(EXAMPLES.glob("*.json")) - {EXAMPLES / "manifest.json"})

each_sample: Callable[..., Any] = pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)


def make_project(slug: str = "shop") -> Project:
    return Project.objects.create(slug=slug, name=slug.title())


def make_key(project: Project, scope: str = KeyScope.FULL) -> str:
    return create_key(project=project, name="test", scope=scope)[1]


def make_client(key: str | None) -> Client:
    """Answers as a server does: an exception is a 500 and not a traceback here."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return Client(raise_request_exception=False, headers=headers)


def project_client(slug: str = "shop") -> Client:
    return make_client(make_key(make_project(slug)))


def post_run(client: Client, body: Any, **headers: str) -> Any:
    """`body` is bytes, a file, or a value to be written as JSON."""
    if isinstance(body, Path):
        body = body.read_bytes()
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post("/api/v1/runs", content, content_type="application/json", headers=headers)


def make_record(run_id: str = "r1", *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"format": "agent-replay.run", "version": 1, "run_id": run_id, "steps": list(steps), **fields}


def make_tool_step(tool_name: str = "search", **fields: Any) -> dict[str, Any]:
    return {"kind": "tool", "tool_name": tool_name, **fields}


def make_growing_record(run_id: str, steps: int) -> dict[str, Any]:
    """Model and tool steps by turns; each request repeats all messages before it."""
    made: list[dict[str, Any]] = []
    for turn in range(steps // 2):
        added = _returned(turn - 1) if turn else [{"part_kind": "user-prompt", "content": "Sum up the year."}]
        request = {"messages": [{"kind": "request", "parts": added}]} | ({"after": 2 * turn - 1} if turn else {})
        made += [
            {"kind": "model", "request": request, "response": {"kind": "response", "parts": [_called(turn)]}},
            make_tool_step("look", call_id=f"c{turn}", arguments=_arguments(turn), result=_result(turn)),
        ]
    return make_record(run_id, *made)


def _arguments(turn: int) -> dict[str, Any]:
    return {"page": turn}


def _result(turn: int) -> str:
    return f"Page {turn:06}: " + f"{turn * 7919 % 1_000_003:06} items were sold. " * 8


def _called(turn: int) -> dict[str, Any]:
    return {"part_kind": "tool-call", "tool_name": "look", "args": _arguments(turn), "tool_call_id": f"c{turn}"}


def _returned(turn: int) -> list[dict[str, Any]]:
    content = _result(turn)
    return [{"part_kind": "tool-return", "tool_name": "look", "content": content, "tool_call_id": f"c{turn}"}]


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def a_span(**fields: Any) -> Span:
    made: dict[str, Any] = {"trace_id": TRACE, "span_id": "00f067aa0ba902b7", "parent_id": None, "name": "chat"}
    return Span(**made | {"start_ns": 1, "end_ns": 2} | fields)


def row_counts() -> dict[str, int]:
    """Rows of every table of ours but the log of refusals: what a refused request must leave as it was."""
    kept = set(apps.get_app_config("sessions_app").get_models()) - {IngestNote}
    return {model.__name__: model._default_manager.count() for model in kept}


def all_stored_bytes() -> Iterator[tuple[str, bytes]]:
    """Every value of every column of every table in the schema, binary ones as they lie."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT * FROM "{table}"')
            names = [column.name for column in cursor.description]
            for row in cursor.fetchall():
                for name, value in zip(names, row, strict=True):
                    yield (
                        f"{table}.{name}",
                        bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode(),
                    )
