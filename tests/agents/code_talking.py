"""Talking with a code replay's process as a runner does."""

from __future__ import annotations

import json
import time
from typing import Any

from sessions_app.agents.process.code_fence import CodeLimits
from sessions_app.agents.process.code_sandbox import CodeChild, CodeCrashed
from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.own_machine import judge_sealed
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
    child_type: type[CodeChild] = CodeChild,
    inner: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The result as the runner stores it; a crash is one, and an observed run is judged."""
    live = ((order or {}).get("tools") or {}).get("live", ())
    child = child_type(target, limits, environment or {}, live=live)
    record = record or example("cancel_bug")
    try:
        return _judged(record, _converse(child, record, order or {}, replies, inner or {}), order or {})
    except CodeCrashed as crash:
        return {"verdict": "could_not_run", "error": str(crash), "live_calls": crash.live_calls}
    finally:
        child.end()


def _judged(record: dict[str, Any], told: dict[str, Any], order: dict[str, Any]) -> dict[str, Any]:
    """Of an agent of the OpenAI Agents SDK. Nothing in these recordings is secret."""
    if told["verdict"] != "observed":
        return told
    recorded, observed = parse_native(json.dumps(record).encode()), parse_native(told["record"].encode())
    runs_tools = (order.get("tools") or {}).get("run")
    return judge_sealed(recorded, observed, told, tools="run" if runs_tools else "frozen", run_id="again")


def _converse(
    child: CodeChild, record: dict[str, Any], order: dict[str, Any], replies: Any, inner: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    records = {"record": json.dumps(record), "inner": {run_id: json.dumps(each) for run_id, each in inner.items()}}
    child.begin({"id": "1", "run_id": "again", **records, "order": order, "course": {}})
    until = time.monotonic() + 120
    for answer in child.answers(poll_seconds=0.5):
        if answer is not None and "ask" in answer:
            asked = answer["ask"]
            reply = child.run_live_tool(asked) if asked["what"] == "live_tool" else replies(asked)
            child.send({"id": "1", "n": answer["n"], "reply": reply})
        if answer is not None and "result" in answer:
            return dict(answer["result"]) | {"live_calls": child.live_calls}
        assert time.monotonic() < until, "the child does not answer"
    raise AssertionError
