"""What is needed to go on from a step, rebuilt from the run: nothing of it is stored a second time."""

from __future__ import annotations

from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Checkpoint, ModelCall, Run
from sessions_app.core.state import state_after


def checkpoint(run: Run, step: int) -> Checkpoint:
    """The checkpoint behind a step; `step` counts from 1. Raises `IndexError` for a step that is not there."""
    if not 1 <= step <= len(run.steps):
        raise IndexError(f"Run {run.run_id!r} has no step {step}.")
    passed = run.steps[:step]
    models = [s.call for s in passed if isinstance(s.call, ModelCall)]
    last = models[-1] if models else None
    return Checkpoint(
        run_id=run.run_id,
        step=step,
        history=last.output_history if last else run.prior,
        tool_calls=tuple(s for s in passed if s.kind == "tool"),
        model_config=_model_config(run, last),
        state=state_after(run, step),
        agent_version=run.agent.version,
        taken_at=passed[-1].started_at,
    )


def _model_config(run: Run, call: ModelCall | None) -> JsonObject:
    """Model, provider and region as they were asked for, with the settings of the newest request."""
    settings = call.settings.value if call and call.settings else None
    return {
        "model": (call.model if call else None) or run.model,
        "provider": (call.provider if call else None) or run.provider,
        "region": (call.region if call else None) or run.region,
        "settings": settings,
    }
