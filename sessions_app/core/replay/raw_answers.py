"""Answers as the model gave them, where hooks behind the request made others of them: the recorder keeps both.

A rebuilt agent has no hooks and is given what they made. The team's own hooks run again, and are given what the model
gave.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan
from sessions_app.core.run import Run, Step

RAW = "raw_response"
"""Field of a model step: the answer of the model, of which hooks made the response."""


def raw_response(step: Step) -> JsonObject | None:
    said = step.extra.get(RAW)
    return said if isinstance(said, dict) else None


def with_raw_answers(plan: ReplayPlan) -> ReplayPlan:
    """The plan of a replay whose hooks run."""
    return replace(plan, answers=tuple(_raw(plan, answer) for answer in plan.answers))


def _raw(plan: ReplayPlan, answer: PlannedAnswer) -> PlannedAnswer:
    step = plan.run.steps[answer.step - 1]
    raw = raw_response(step)
    if raw is None or answer.response is None:
        return answer
    made = answer.response.value
    stamps = {name: made[name] for name in _STAMPS if raw.get(name) is None and made.get(name) is not None}
    return replace(answer, response=Payload.of_json({**raw, **stamps}))


_STAMPS = ("run_id", "conversation_id", "model_id")
"""What the loop itself puts on an answer."""


def not_raw(run: Run, step: int) -> Reason:
    """Why a replay ends at an answer that a hook changed, in a recording that does not keep what the model gave."""
    message = (
        f"A hook of the agent changed the recorded answer of step {step}. This recording does not say whether that is "
        "what the model gave, or what a hook had already made of it."
    )
    return reason_at(run, "answer_not_raw", message, run.steps[step - 1])
