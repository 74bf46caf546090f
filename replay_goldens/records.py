"""Native records as checks look at them, where an exported golden runs: beside the agent, without a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from replay_goldens.states import StateBroken, state_after
from replay_goldens.trace import (
    OF_ANOTHER_REQUEST,
    STOPS,
    Json,
    ToolUse,
    Trace,
    changes_something,
    cost_of,
    given_arguments,
    of_another_from,
)
from replay_goldens.values import as_text, parsed
from replay_recorder.replaying.recording import main_steps, plain_value

Record = dict[str, Any]


def trace_of(
    record: Record, scene: Record, *, tools: Literal["frozen", "run"] = "run", first_of_another: int | None = None
) -> Trace:
    """Of a record as `replay_recorder` writes it (docs/record-format.md), and of the one that was played again.
    `tools` says whether the functions of the agent ran, `first_of_another` which model step was the first to be given a
    recorded answer to another request."""
    said, is_stopped = _words(record.get("error")), _is_stopped(record, scene)
    status, error = ("cut_off", None) if is_stopped else (_status(record), said)
    lacking = OF_ANOTHER_REQUEST if first_of_another else _function_not_run(record, tools)
    unknown = lacking if status == "ok" else None
    output = None if unknown else plain_value(record.get("output"))
    return Trace(
        run_id=str(record["run_id"]),
        has_ended=status == "ok",
        has_failed=status == "error",
        why_not_ended=said or "the run did not finish",
        calls=tuple(_calls(record)),
        known_answers=tuple(answer for call in _calls(scene) for answer in call.answers),
        steps=sum(step["kind"] != "other" for _, step in main_steps(record)),
        output=parsed(output),
        output_text=None if output is None else as_text(output),
        why_answer_unknown=unknown,
        error=error,
        user_id=record.get("user_id"),
        tenant_id=record.get("tenant_id"),
        cost_usd=cost_of(step.get("response") for step in record.get("steps") or [] if step["kind"] == "model"),
        state_after=_states(record) if _has_states(record) else None,
        until_another=_until(first_of_another, record, scene) if first_of_another else None,
    )


def _until(step: int, record: Record, scene: Record) -> Trace:
    known = {**record, "steps": record["steps"][: step - 1], "status": "cut_off", "output": None, "error": None}
    return replace(trace_of(known, scene), why_not_ended=of_another_from(step))


def _is_stopped(record: Record, scene: Record) -> bool:
    ended, then = record.get("error"), scene.get("error")
    return isinstance(ended, dict) and ended.get("type") in STOPS and ended != then


def _function_not_run(record: Record, tools: Literal["frozen", "run"]) -> str | None:
    """With frozen tools a function that makes the answer is given what it made in the recording."""
    function = (record.get("agent") or {}).get("output_function") if tools == "frozen" else None
    return f"the answer was to be made by {function}, an output function that did not run" if function else None


def _status(record: Record) -> str:
    said = record.get("status")
    return str(said) if said else "error" if record.get("error") else "ok" if record.get("output") else "cut_off"


def _calls(record: Record) -> Iterator[ToolUse]:
    for index, step in enumerate(record.get("steps") or [], start=1):
        if step["kind"] == "tool" and not step.get("is_output"):
            asked = parsed(plain_value(step.get("arguments")))
            yield ToolUse(
                step=index,
                tool=str(step.get("tool_name") or step.get("name")),
                arguments=(given := given_arguments(asked, step)),
                is_as_asked=given == asked,
                result=parsed(plain_value(step.get("result"))),
                returned=plain_value(step.get("returned")),
                error=_words(step.get("error")),
                is_write=changes_something(step.get("tool_kind")),
                user_id=step.get("user_id"),
                tenant_id=step.get("tenant_id"),
            )


def _words(error: Json) -> str | None:
    if error is None or isinstance(error, str):
        return error
    return ": ".join(str(error[name]) for name in ("type", "message") if error.get(name))


def _has_states(record: Record) -> bool:
    return any(step.get("state") for step in record.get("steps") or [])


def _states(record: Record) -> Any:
    steps = record.get("steps") or []

    def at(step: int | None) -> Json:
        if step is not None and step > len(steps):
            raise LookupError(f"there is no step {step}")
        try:
            return state_after(plain_value(record.get("initial_state")), steps[:step])
        except StateBroken as error:
            raise LookupError(f"the state is not known there: {error}") from None

    return at
