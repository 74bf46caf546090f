"""Runs that a replay or a fork made without the code that decides how they end: their outcome is not the agent's."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.run import Run

FIELD = "outcome_unproven"
"""Field of such a run: why."""


def with_unproven_outcome(run: Run, why: str) -> Run:
    return replace(run, extra={**run.extra, FIELD: why[0].lower() + why[1:]})


def why_unproven(run: Run) -> str | None:
    """None of a run whose outcome is its own."""
    return run.extra.get(FIELD)


def why_answer_unknown(run: Run) -> str | None:
    """Of a run whose code ran, but for the function that makes its answer; None where the answer is known."""
    function = run.agent.output_function
    if run.origin != "replay" or run.status != "ok" or run.output is not None or function is None:
        return None
    return f"the answer was to be made by {function}, an output function that did not run"
