"""Native records for tests of the pages of sessions, steps, replays and diffs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sessions_app.models import Project, Run
from sessions_app.services.ingest import ingest_document

EXAMPLES = Path(__file__).resolve().parents[2] / "sessions_app" / "examples"


def load_example(project: Project, name: str) -> Run:
    return ingest_document(project, (EXAMPLES / f"{name}.json").read_bytes()).run


def load_record(project: Project, **fields: Any) -> Run:
    return ingest_document(project, json.dumps(make_record(**fields)).encode()).run


def make_record(**fields: Any) -> dict[str, Any]:
    record = {
        "format": "agent-replay.run",
        "version": 1,
        "run_id": "run_1",
        "session_id": "chat_1",
        "status": "ok",
        "input": "check all",
        "output": "done",
        "started_at": "2026-11-17T15:14:00Z",
        "steps": [],
    }
    return record | fields


def model_step(index: int = 1, *, after: int | None = None, **fields: Any) -> dict[str, Any]:
    """A model call; `after` is the step whose history it goes on from."""
    text = f"question {index}"
    messages = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}]
    answer = {"kind": "response", "parts": [{"part_kind": "text", "content": f"answer {index}"}]}
    request = {"messages": messages} if after is None else {"after": after, "messages": messages}
    return {"kind": "model", "name": "sonnet-4", "model": "sonnet-4", "request": request, "response": answer} | fields


def tool_step(name: str = "lookup", **fields: Any) -> dict[str, Any]:
    step = {"kind": "tool", "name": name, "tool_name": name, "arguments": {"q": "x"}, "result": {"found": 1}}
    return step | fields


def loop_of(times: int) -> list[dict[str, Any]]:
    """A model asking the same again and again, and getting nothing."""
    steps: list[dict[str, Any]] = []
    for i in range(times):
        steps.append(model_step(i + 1, after=None if i == 0 else 2 * i - 1))
        steps.append(tool_step("search_docs", parent=2 * i + 1, result={"docs": [], "count": 0}))
    return steps


def long_run(steps: int) -> list[dict[str, Any]]:
    """Steps that all differ, every hundredth failed."""
    return [
        tool_step(arguments={"row": i}, result={"row": i}, error={"type": "Timeout", "message": "late"})
        if i % 100 == 0
        else tool_step(arguments={"row": i}, result={"row": i})
        for i in range(1, steps + 1)
    ]
