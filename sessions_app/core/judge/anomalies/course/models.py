"""Which models were asked, and which answered."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.reading import (
    main_models,
)
from sessions_app.core.model_names import is_same_model
from sessions_app.core.run import Run


def model_changed(run: Run, rules: Rules) -> Iterator[Anomaly]:
    named = [(step, name) for step, call in main_models(run) if (name := call.model or call.answered_model)]
    for (before, old), (step, new) in pairwise(named):
        if old != new:
            message = f"Model changed: {old}, then {new}"
            yield Anomaly(code="model_changed", message=message, steps=(before.index, step.index))


def other_model_answered(run: Run, rules: Rules) -> Iterator[Anomaly]:
    found: dict[tuple[str, str], list[int]] = {}
    for step, call in run.model_calls:
        asked, answered = call.model, call.answered_model
        if asked and answered and not is_same_model(asked, answered):
            found.setdefault((asked, answered), []).append(step.index)
    for (asked, answered), steps in found.items():
        message = f"Requested {asked}, but {answered} answered"
        yield Anomaly(code="other_model_answered", message=message, steps=tuple(steps))
