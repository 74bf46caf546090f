"""The bodies of the API, short enough for a model to read."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from sessions_app.core.payload import JsonObject, JsonValue, compact_json
from sessions_app.models import Replay, Run

BRIEF, LONG, WHOLE = 600, 3_000, 20_000
"""Characters of one value: in lists, of a replay, and of a run or a step that is read by itself."""
PAIRS = 40
"""Differing steps of a comparison."""


def cut(value: JsonValue, limit: int) -> JsonValue:
    """The value, or the beginning of its JSON with a word of how long it is. What is cut says so."""
    text = value if isinstance(value, str) else compact_json(value).decode()
    if len(text) <= limit:
        return value
    return f"{text[:limit]} … [cut: {limit:,} of {len(text):,} characters]"


def cut_members(body: JsonObject, limit: int) -> JsonObject:
    return {name: cut(value, limit) for name, value in body.items()}


def listed(run: Run) -> JsonObject:
    """What tells a run from others."""
    return {
        "run_id": run.run_id,
        "session_id": run.session.session_id,
        "agent": run.agent_name,
        "status": run.status,
        "story": run.story,
        "input": cut(run.input_preview, BRIEF),
        "output": cut(run.output_preview, BRIEF),
        "error": cut(run.error_preview, BRIEF),
        "started_at": run.started_at.isoformat() if run.started_at else None,
        "verdict": run.verdict,
        "page": page_of(run),
    }


def whole(run: Run, body: JsonObject) -> JsonObject:
    """Facts, verdict and what of the kit was not captured; `body` is that of the API."""
    lines = [line for line in run.kit.get("lines", []) if line["status"] != "captured"]
    kept = cut_members({name: body[name] for name in body if name not in _OF_SCRIPTS}, WHOLE)
    return {**kept, "kit_lacks": lines, "page": page_of(run)}


_OF_SCRIPTS = ("digest", "changed_at", "source_format")


def step_line(body: JsonObject) -> JsonObject:
    """A step of a list: without what is not known, and without the states around it."""
    left_out = _OF_A_STEP | ({"result"} if body["kind"] == "model" else {"decision", "tokens"})
    known = {name: value for name, value in body.items() if value not in (None, [], {}) and name not in left_out}
    return cut_members(known, BRIEF)


_OF_A_STEP = {"step_id", "arguments_digest", "result_digest", "input_state", "output_state", "first_token_at"}
"""What a model decided is the short form of its answer; what else a step decided says its name."""


def replayed(replay: Replay, body: JsonObject) -> JsonObject:
    """Where a replay or a fork is, what it came to, and where its answers came from."""
    address = reverse("replay", args=[replay.project.slug, replay.replay_id])
    return {name: cut(body[name], LONG) for name in _OF_A_REPLAY} | {"page": address}


_OF_A_REPLAY = (
    "replay_id", "run_of", "mode", "state", "progress", "verdict", "divergence", "run_id", "error", "at_step",
    "changes", "hypothesis", "expectation", "stopped_at", "sources", "proof", "live_calls", "refused_calls",
)  # fmt: skip


def compared(body: JsonObject) -> JsonObject:
    """The first difference in words, and the steps that differ."""
    steps: list[Any] = [pair for pair in body["steps"] if pair["status"] != "same"]
    kept = {name: body[name] for name in ("left", "right", "identical", "divergence", "sentence", "lines")}
    differing = [cut_members(pair, BRIEF) for pair in steps[:PAIRS]]
    return {
        **kept,
        "differing_steps": differing,
        "differing_steps_total": len(steps),
        "steps_total": len(body["steps"]),
    }


def page_of(run: Run) -> str:
    address = reverse("session", args=[run.project.slug, run.session.session_id])
    return f"{address}?{urlencode({'run': run.run_id})}"
