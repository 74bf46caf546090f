"""Any value in any field of a record: it is refused in words, or everything that is said of the run can be said."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.errors import RecordError, ReplayProductError
from sessions_app.core.formats.detect import parser_of
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.json_text import Limits
from sessions_app.core.judge.anomalies.anomaly import Rules
from sessions_app.core.replay.plan import make_plan
from sessions_app.core.step_summary import write_summaries
from sessions_app.mapping.rows import content_columns, run_columns, step_rows
from sessions_app.mapping.stored import Collector
from sessions_app.services.judgement import judgement_columns
from tests.builders import EXAMPLES

OUT_OF_RANGE = [10**30, "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"]
VALUES: list[Any] = [
    None,
    True,
    -1,
    1.5,
    "",
    "x",
    '{"a":',
    [],
    {},
    [None],
    [[]],
    [{}],
    {"a": []},
    {"kind": "x"},
    *OUT_OF_RANGE,
]
Path = tuple[str | int, ...]

SAID = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Where is it?"}]}
ASKED = {"part_kind": "tool-call", "tool_name": "find", "args": "{}", "tool_call_id": "c1"}
AT = "2026-01-01T00:00:00Z"
EXCHANGE = {
    "method": "GET",
    "url": "http://backend/orders",
    "status": 200,
    "request_headers": {"accept": "*/*"},
    "response_headers": {"etag": "1"},
    "request_body": "q",
    "response_body": "a",
    "ext": {},
}
STEPS: list[dict[str, Any]] = [
    {
        "kind": "model",
        "model": "m",
        "answered_model": "m-1",
        "provider": "p",
        "request": {"messages": [SAID]},
        "response": {"kind": "response", "parts": [ASKED]},
        "settings": {"temperature": 0, "seed": 1},
        "parameters": 0,
        "input_tokens": 1,
        "finish_reason": "stop",
        "started_at": AT,
        "first_token_at": AT,
        "duration_ms": 2,
        "http": EXCHANGE,
        "error": {"type": "E", "message": "m", "traceback": "t"},
        "span": {"span_id": "b" * 16, "parent_id": None, "twins": [{"span_id": "c" * 16}]},
        "agent": {"name": "a"},
        "handoff": {"to": "b"},
        "borrowed_from": {"run_id": "r", "step": 1},
        "state": {"before": [{"op": "add", "path": "/x", "value": 1}], "after": [{"op": "remove", "path": "/x"}]},
    },
    {
        "kind": "tool",
        "tool_name": "find",
        "call_id": "c1",
        "parent": 1,
        "arguments": {"a": 1},
        "result": {"r": 1},
        "metadata": {"m": 1},
        "content": ["x"],
        "outcome": "success",
        "retry": {"cause": "validation", "max_retries": 1, "retries": 1},
        "is_output": False,
        "decision": {"approved": True},
        "attempt": 1,
        "snapshot": {"label": "l", "automatic": True},
        "tool_kind": "read",
    },
    {"kind": "retrieval", "query": "q", "chunks": [{"id": "1", "text": "t", "score": 0.5, "source": "s"}]},
    {"kind": "agent", "run_id": "r2", "input": "x", "output": "y"},
    {"kind": "other", "name": "o"},
]
FULL: dict[str, Any] = {
    "format": "agent-replay.run",
    "version": 1,
    "run_id": "m",
    "session_id": "s",
    "status": "ok",
    "agent": {"name": "a", "version": "1", "framework": "pydantic-ai", "framework_version": "2"},
    "code": {"commit": "c", "dirty": True},
    "parent": {"run_id": "p"},
    "model": "m",
    "user_id": "u",
    "started_at": AT,
    "duration_ms": 1,
    "input": "q",
    "output": {"a": 1},
    "error": {"type": "E", "message": "m"},
    "initial_state": {"a": 1},
    "instructions": "i",
    "environment": {"python": "3"},
    "flags": {"x": True},
    "tool_calls": [{"tool": "find", "args": {}}],
    "recorder.lost": 1,
    "trace": {"root": {"span_id": "a" * 16}, "spans": 1, "conventions": {"genai": 1}},
    "parameters": [
        {
            "function_tools": [{"name": "find"}],
            "output_tools": [{"name": "out", "outer_typed_dict_key": "k", "parameters_json_schema": {}}],
            "output_mode": "text",
        }
    ],
    "tools": [{"name": "find"}],
    "prior": [SAID],
    "steps": STEPS,
}
SESSION_FILE = json.loads((EXAMPLES / "abc123.session.json").read_bytes())


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from paths(child, (*at, name))


def changed(document: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    copied = copy.deepcopy(document)
    inner = copied
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return copied


def is_taken(document: Any) -> bool:
    """Whether it is; all that is said of it when it comes in was said then."""
    try:
        run = parser_of(document)(json.dumps(document).encode(), Limits())
    except ReplayProductError:
        return False
    collector = Collector()
    judgement_columns(run, Rules())
    run_columns(run)
    content_columns(run, collector)
    write_summaries(step_rows(run, collector))
    assert compare_runs(run, parse_native(encode_native(run))).identical in (True, None)
    with suppress(ReplayProductError):
        make_plan(run)
    return True


@pytest.mark.parametrize("document", [FULL, SESSION_FILE], ids=["record", "session file"])
def test_a_value_of_another_type_breaks_nothing(document):
    assert is_taken(document)
    fields = list(paths(document))

    taken = [is_taken(changed(document, path, value)) for path in fields for value in VALUES]

    print(f"{len(fields)} fields, {len(taken)} documents, {sum(taken)} of them taken")
    assert 0 < sum(taken) < len(taken)


@pytest.mark.parametrize("tool", [None, 0, "x", [], {}, {"name": None}, {"name": "find", "kind": []}])
def test_what_is_no_definition_of_a_tool_is_refused_by_name(tool):
    with pytest.raises(RecordError, match=r"^tools\[0\]"):
        parse_native(json.dumps({**FULL, "tools": [tool]}).encode())


def test_a_definition_with_fields_of_others_is_taken():
    assert parse_native(json.dumps({**FULL, "tools": [{"name": "find", "x-kind": []}]}).encode()).steps
