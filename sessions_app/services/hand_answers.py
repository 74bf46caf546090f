"""Answers that somebody gives to what a replay stopped at, as the replay's course keeps them."""

from __future__ import annotations

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.fork.changes import ForkError, read_answer, read_failure
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import WAITING, Step, ToolCall
from sessions_app.mapping.load import load_step
from sessions_app.models import Project, Replay, Run
from sessions_app.services.typed_json import holds_nul

_OF_TOOLS = ("value", "error", "not_found", "twin")


def read_hand_answer(replay: Replay, given: JsonObject) -> JsonObject:
    """What the course keeps: `at`, `asked`, and the answer in one member. Raises `ForkError` naming the field."""
    stopped: JsonObject = replay.stopped_at or {}
    if given.get("at") not in (None, stopped["at"]):
        raise ForkError("By now it is waiting for something else.", field="at")
    read = _of_model if stopped["kind"] == "model" else _of_tool
    return {"at": stopped["at"], "asked": stopped["asked"], **read(replay.project, given)}


def as_change(replay: Replay, given: JsonObject) -> JsonObject:
    """The same answer as a change of the step at which the replay stopped."""
    entry, stopped = read_hand_answer(replay, given), replay.stopped_at or {}
    if "answer" in entry:
        return {"kind": "model_answer", "step": stopped["step"], "value": entry["answer"]}
    change = {"kind": "tool_result", "step": stopped["step"]}
    if entry.get("not_found"):
        return change | {"error": "Not found."}
    return change | {name: entry[name] for name in ("value", "error") if name in entry}


def _of_model(project: Project, given: JsonObject) -> JsonObject:
    _check_members(given, ("answer",), "This is a request to the model: give answer, with text, tool_calls or both.")
    read_answer(given["answer"], "answer")
    return {"answer": given["answer"]}


def _of_tool(project: Project, given: JsonObject) -> JsonObject:
    _check_members(given, _OF_TOOLS, f"This is a call of a tool: give one of {', '.join(_OF_TOOLS)}.")
    if "error" in given:
        read_failure(given["error"], "error")
        return {"error": given["error"]}
    if "not_found" in given:
        return {"not_found": _true(given["not_found"])}
    return _of_twin(project, given["twin"]) if "twin" in given else {"value": given["value"]}


def _check_members(given: JsonObject, allowed: tuple[str, ...], words: str) -> None:
    """Of the ways to answer it must be one, and one that fits."""
    ways = [name for name in ("answer", *_OF_TOOLS) if name in given]
    if len(ways) != 1 or ways[0] not in allowed:
        raise ForkError(words, field=next((way for way in ways if way not in allowed), "answer"))


def _true(value: JsonValue) -> bool:
    if value is not True:
        raise ForkError("not_found must be true.", field="not_found")
    return value


# --- the answer of another recorded call -------------------------------------------------------


def _of_twin(project: Project, twin: JsonValue) -> JsonObject:
    run_id, step = (twin.get("run_id"), twin.get("step")) if isinstance(twin, dict) else (None, None)
    if not isinstance(run_id, str) or not isinstance(step, int) or isinstance(step, bool):
        raise ForkError("twin needs the run_id and the step of a recorded call.", field="twin")
    return {"twin": {"run_id": run_id, "step": step}, **_outcome(_twin_step(project, run_id, step))}


def _twin_step(project: Project, run_id: str, index: int) -> Step:
    """The same words for what does not exist and for what belongs to another project."""
    run = Run.objects.filter(project=project, run_id=run_id).first()
    step = None if run is None else run.step(index)
    if run is None or step is None or step.kind != "tool":
        raise ForkError(f"There is no such recorded call: step {index} of {run_id}.", field="twin")
    try:
        return load_step(run, index)
    except StoredBytesMissing:
        raise ForkError("What that call answered is no longer stored.", field="twin") from None


def _outcome(step: Step) -> JsonObject:
    """How the recorded call ended: its value, or the error that it told the model or ended its run with."""
    call = step.call
    if not isinstance(call, ToolCall) or call.outcome in WAITING:
        raise ForkError("That call was left open, to be answered from outside its run.", field="twin")
    if call.outcome in ("failed", "retried") and call.result is not None:
        return {"error": {"message": str(_value(call.result)), "type": step.error.type if step.error else None}}
    if call.outcome == "crashed" or (call.result is None and step.error is not None):
        error = step.error
        return {"error": {"message": (error and error.message) or "", "type": error and error.type, "crashes": True}}
    if call.result is None:
        raise ForkError("That call has no recorded answer.", field="twin")
    return {"value": _value(call.result)}


def _value(result: Payload) -> JsonValue:
    if not (result.is_json or result.is_text) or holds_nul(result.value):
        raise ForkError("The answer of that call is not text that can be used here.", field="twin")
    return result.value
