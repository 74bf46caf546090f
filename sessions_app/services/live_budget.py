"""What asking a live model is likely to take, in words, before it is asked."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings

from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.core.fork.sampling import Budget, estimate
from sessions_app.core.run import ModelCall, Run, Step
from sessions_app.models import Golden, Project
from sessions_app.models import Run as RunRow
from sessions_app.services.fork_checks import Parent
from sessions_app.services.live_models import live_model, live_models


def whole_run_in_words(run: RunRow, n: int, most: int) -> str:
    """Of `n` samples of the whole run; `most` requests are sent."""
    return budget_words(budget_of(Parent(run), 1, n), n, most)


def golden_in_words(golden: Golden) -> str:
    """Of one run of it; empty where no model can be asked."""
    try:
        most = live_model(golden.project, golden.order.get("live_model")).most_requests
    except ModelUnavailable:
        return ""
    return whole_run_in_words(golden.run, golden.order.get("samples") or 1, most)


def goldens_in_words(project: Project, goldens: Iterable[Golden]) -> str:
    """Of one run of each; empty where none of them asks a model, or no model can be asked."""
    counted = [(golden.run, golden.order.get("samples") or 1) for golden in goldens]
    if not counted or not any(not model.refusal for model in live_models(project)):
        return ""
    budget = Budget(
        requests=sum(run.model_call_count * n for run, n in counted),
        input_tokens=_sum([(run.input_tokens, n) for run, n in counted]),
        output_tokens=_sum([(run.output_tokens, n) for run, n in counted]),
    )
    most: int = settings.REPLAY_MODEL_MAX_REQUESTS * len(counted)
    return budget_words(budget, sum(n for _, n in counted), most)


def _sum(counted: list[tuple[int | None, int]]) -> int | None:
    return None if any(tokens is None for tokens, _ in counted) else sum((tokens or 0) * n for tokens, n in counted)


def budget_of(parent: Parent, at_step: int, n: int) -> Budget:
    """Of the main model calls alone, without their payloads."""
    steps = [
        Step(index=row.index, name="", call=_call(row.input_tokens, row.output_tokens))
        for row in parent.row.steps[at_step - 1 :]
        if row.kind == "model" and row.index in parent.main
    ]
    return estimate(Run(run_id=parent.row.run_id, session_id="", status="ok", steps=tuple(steps)), at_step, n)


def _call(sent: int | None, answered: int | None) -> ModelCall:
    return ModelCall(history=None, response=None, input_tokens=sent, output_tokens=answered)


def budget_words(budget: Budget, n: int, most: int) -> str:
    """`most` requests are sent, whatever the budget says."""
    limit = f"at most {_counted(most, 'request')}"
    if not budget.requests:
        return f"{_counted(n, 'sample')}: the recording has no model request from this step on; {limit}."
    words = f"{_counted(n, 'sample')}: about {_counted(budget.requests, 'request')}, {_tokens(budget)}; {limit}"
    return f"{words}, so not every sample will finish." if budget.requests > most else f"{words}."


def _tokens(budget: Budget) -> str:
    if budget.input_tokens is None or budget.output_tokens is None:
        return "tokens unknown, as not every request has them recorded"
    return f"{_counted(budget.input_tokens, 'token')} in, {budget.output_tokens:,} out"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
