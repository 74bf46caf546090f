"""The two sides of a capture: what truly happened, and what the runs tell."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from typing import Any

from sessions_app.core.embedded_json import parsed
from sessions_app.core.history import messages
from sessions_app.core.payload import JsonObject, canonical_json
from sessions_app.core.run import ModelCall, Run, Step, ToolCall
from tests.traces.captures import Capture

Truth = dict[str, Any]

# --- true --------------------------------------------------------------------------------------


def true_calls(capture: Capture) -> list[Truth]:
    return [call for run in capture.truth["runs"] for call in run["model_calls"]]


def true_tools(capture: Capture) -> list[Truth]:
    return [call for run in capture.truth["runs"] for call in run["tool_calls"]]


def true_requests(capture: Capture) -> list[Truth]:
    """The calls of tools that models asked for."""
    return [call for run in capture.truth["runs"] for call in run["requested_tool_calls"]]


# --- told --------------------------------------------------------------------------------------


def agent_runs(capture: Capture) -> list[Run]:
    """Those that are runs of the agent: setting up may leave traces of its own."""
    known = {trace["trace_id"]: trace["run_index"] for trace in capture.truth["captured"].get("traces") or []}
    return [run for run in capture.runs if known.get(run.run_id, 0) is not None]


def model_calls(capture: Capture) -> list[tuple[Step, ModelCall]]:
    return [pair for run in agent_runs(capture) for pair in run.model_calls]


def tool_calls(capture: Capture) -> list[tuple[Step, ToolCall]]:
    return [pair for run in agent_runs(capture) for pair in run.tool_calls]


def answer_text(call: ModelCall) -> str:
    return "".join(part["content"] for part in answer_parts(call, "text"))


def answer_parts(call: ModelCall, kind: str) -> list[JsonObject]:
    parts = call.response.value["parts"] if call.response else []
    return [part for part in parts if part["part_kind"] == kind]


def history_parts(call: ModelCall, *kinds: str) -> Iterator[JsonObject]:
    """Of the messages that went in, oldest first."""
    for message in messages(call.history):
        yield from (part for part in message.value["parts"] if part["part_kind"] in kinds)


# --- spellings ---------------------------------------------------------------------------------


def same(value: Any) -> str:
    """Equal for equal values, be they spelled as JSON, as text that holds it, or as Python prints them."""
    value = parsed(value)
    return str(value).strip() if isinstance(value, str) else canonical_json(value).decode()


def spellings(value: Any) -> set[str]:
    return {same(form) for form in _forms(value)}


def _forms(value: Any) -> Iterable[Any]:
    """Frameworks hand a value on in their own way: as Python prints it, or wrapped."""
    yield value
    inner = parsed(value)
    if isinstance(inner, dict):
        yield from (inner[key] for key in ("result", "output", "content", "text") if key in inner)
    if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict):
        yield from (inner[0][key] for key in ("text", "json") if key in inner[0])
    if isinstance(value, str):
        yield from _printed(value)


def _printed(text: str) -> Iterator[Any]:
    try:
        yield json.loads(json.dumps(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError):
        return
