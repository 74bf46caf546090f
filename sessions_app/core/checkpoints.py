"""What is needed to go on from a step, rebuilt from the run: nothing of it is stored a second time."""

from __future__ import annotations

from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue, canonical_json, sha256_hex
from sessions_app.core.run import Checkpoint, ModelCall, Run, Step, main_model_calls
from sessions_app.core.state import state_after


def checkpoint(run: Run, step: int) -> Checkpoint:
    """The checkpoint behind a step; `step` counts from 1. Raises `IndexError` for a step that is not there, and
    `PatchError` when a recorded change does not fit the state."""
    return _checkpoint(run, step, state_after(run, step))


def checkpoint_without_state(run: Run, step: int) -> Checkpoint:
    """As `checkpoint`, for a run whose state cannot be rebuilt."""
    return _checkpoint(run, step, None)


def _checkpoint(run: Run, step: int, state: JsonValue) -> Checkpoint:
    if not 1 <= step <= len(run.steps):
        raise IndexError(f"Run {run.run_id!r} has no step {step}.")
    passed = run.steps[:step]
    request = newest_request(run, step)
    return Checkpoint(
        run_id=run.run_id,
        step=step,
        history=_history(run, request),
        tool_calls=tuple(s for s in passed if s.kind == "tool"),
        model_config=model_config(run, request),
        state=state,
        agent_version=run.agent.version,
        taken_at=passed[-1].started_at,
    )


def newest_request(run: Run, step: int) -> Step | None:
    """The last model step up to the step; what a tool or a sub-agent asked a model is another history."""
    return next((each for each, _ in reversed(main_model_calls(run)) if each.index <= step), None)


def _history(run: Run, request: Step | None) -> History | None:
    call = request.call if request else None
    return call.output_history if isinstance(call, ModelCall) else run.prior


def model_config(run: Run, request: Step | None) -> JsonObject:
    """Model, provider and region as they were asked for, with the settings of the newest request and the version of
    the prompt, where one was recorded."""
    call = request.call if request else None
    call = call if isinstance(call, ModelCall) else None
    settings = call.settings.value if call and call.settings else None
    return {
        "model": (call.model if call else None) or run.model,
        "provider": (call.provider if call else None) or run.provider,
        "region": (call.region if call else None) or run.region,
        "settings": settings,
        "prompt_version": _prompt_version(run, request, settings),
    }


_PROMPT_VERSION = ("prompt_version", "prompt.version", "context.prompt_version", "langfuse.observation.prompt.version")
"""Names under which people record it; the format has no field for it."""


def prompt_version(run: Run) -> JsonValue:
    """The version of the prompt that the run began with; None where none was recorded."""
    first = next((step for step, _ in main_model_calls(run)), None)
    call = first.call if first else None
    settings = call.settings.value if isinstance(call, ModelCall) and call.settings else None
    return _prompt_version(run, first, settings)


def _prompt_version(run: Run, request: Step | None, settings: JsonValue) -> JsonValue:
    said = request.extra if request else {}
    span = said.get("span")
    attributes = span.get("attributes") if isinstance(span, dict) else None
    places = (settings, said, attributes, run.flags, run.extra)
    found = (place.get(name) for place in places if isinstance(place, dict) for name in _PROMPT_VERSION)
    return next((version for version in found if version is not None), None)


def state_digest(state: JsonValue) -> str | None:
    """SHA-256 of the state's canonical JSON, 64 hex digits; None for a run without state."""
    return None if state is None else sha256_hex(canonical_json(state))
