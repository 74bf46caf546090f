"""Talking with a code replay's process as a runner does."""

from __future__ import annotations

import json
import time
from typing import Any

from sessions_app.agents.code_fence import CodeLimits
from sessions_app.agents.code_sandbox import CodeChild, CodeCrashed
from tests.agents.talking import example

AMPLE = CodeLimits(memory_mb=1024, seconds=60, output_mb=16)


def replay_in_child(
    target: str,
    record: dict[str, Any] | None = None,
    *,
    limits: CodeLimits = AMPLE,
    environment: dict[str, str] | None = None,
    order: dict[str, Any] | None = None,
    replies: Any = None,
) -> dict[str, Any]:
    """The result; a crash is one as the runner stores it."""
    is_live = bool(order and order.get("tools"))
    child = CodeChild(target, limits, environment or {}, is_live=is_live)
    try:
        return _converse(child, record or example("cancel_bug"), order or {}, replies)
    except CodeCrashed as crash:
        return {"verdict": "could_not_run", "error": str(crash), "live_calls": 0}
    finally:
        child.end()


def _converse(child: CodeChild, record: dict[str, Any], order: dict[str, Any], replies: Any) -> dict[str, Any]:
    child.begin({"id": "1", "run_id": "again", "record": json.dumps(record), "order": order, "course": {}})
    until = time.monotonic() + 120
    for answer in child.answers(poll_seconds=0.5):
        if answer is not None and "ask" in answer:
            child.send({"id": "1", "n": answer["n"], "reply": replies(answer["ask"])})
        if answer is not None and "result" in answer:
            return dict(answer["result"])
        assert time.monotonic() < until, "the child does not answer"
    raise AssertionError
