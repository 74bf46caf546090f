"""Several goldens at once, with one or more agents: asking for them, cancelling, and what all of them came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.goldens.report import Outcome
from sessions_app.core.goldens.results import Result, worst_of
from sessions_app.core.replay.isolation import is_own_machine
from sessions_app.models import Golden, GoldenBatch, GoldenRun, Project, Replay
from sessions_app.models.replays import OF_CODE
from sessions_app.queries.forks import agent_of
from sessions_app.queries.goldens import deploy_before, golden_runs
from sessions_app.queries.replays import took_ms
from sessions_app.services.golden_runs import run_again, run_golden, settle
from sessions_app.services.replays import cancel_all

MOST_RUNS = 5_000
"""Runs that one batch may ask for."""


def run_batch(
    project: Project,
    goldens: Sequence[Golden],
    *,
    agents: Sequence[str] = (),
    label: str = "",
    is_deploy: bool = False,
    user: User | None = None,
) -> GoldenBatch:
    """Queue a run of each golden with each agent: all of them or none. Goldens from the recording alone run no code and
    are run once. Raises as `run_golden`, and `ForkError` where there is nothing to run or too much."""
    agents = list(dict.fromkeys(agents))
    if not goldens:
        raise ForkError("There is no golden to run.", field="goldens")
    if len(goldens) * max(1, len(agents)) > MOST_RUNS:
        raise ForkError(f"These are more than {MOST_RUNS:,} runs.", field="goldens")
    with transaction.atomic():
        batch = begin_batch(project, label, is_deploy=is_deploy, user=user)
        for golden in goldens:
            for agent in agents if agents and golden.mode in OF_CODE else (None,):
                _run_one(golden, agent, user, batch)
    return batch


def begin_batch(project: Project, label: str = "", *, is_deploy: bool = False, user: User | None = None) -> GoldenBatch:
    """Without a run so far. Raises `ForkError` for a deploy that nobody named."""
    if is_deploy and not label.strip():
        raise ForkError("Say what was deployed: a version or a commit.", field="label")
    return GoldenBatch.objects.create(project=project, label=label, is_deploy=is_deploy, requested_by=user)


def _run_one(golden: Golden, agent: str | None, user: User | None, batch: GoldenBatch) -> None:
    try:
        run_golden(golden, agent=agent, user=user, batch=batch)
    except ForkError as error:
        raise ForkError(f"{golden.name}: {error.message}", field=error.field) from None


def cancel_batch(batch: GoldenBatch) -> None:
    """What waits is cancelled at once, what runs as soon as its worker sees it."""
    cancel_all(Replay.objects.filter(golden_run__batch=batch))


def resume_batch(batch: GoldenBatch, *, user: User | None = None) -> None:
    """Run again what was cancelled or could not run; what was judged stays. Runs that were handed in are left to the
    machine that they came from. Raises as `run_golden`."""
    with transaction.atomic():
        GoldenBatch.objects.select_for_update(no_key=True).get(pk=batch.pk)
        runs = list(golden_runs(batch.runs.order_by("pk")))
        settle(runs)
        for run in runs:
            if can_resume(run):
                run_again(run, user=user)


def can_resume(run: GoldenRun) -> bool:
    """Of one that has been settled."""
    return run.result == "could_not_run" and not is_own_machine(run.replay.facts)


def outcomes_of(batch: GoldenBatch) -> list[Outcome]:
    """In the order in which they were asked for; those that are over are judged first."""
    runs, deploy = list(batch.runs.all()), deploy_before(batch)
    settle(runs)
    before = _results_by_golden(deploy) if deploy else {}
    return [_outcome_of(run, before.get(run.golden_id, {})) for run in runs]


def results_of(batches: Sequence[GoldenBatch]) -> dict[int, Result | None]:
    """What each came to as a whole, by its key; those that are over are judged first."""
    rows = GoldenRun.objects.filter(batch__in=[batch.pk for batch in batches])
    settle(golden_runs(rows.filter(result=None)))
    found: dict[int, list[Result | None]] = {batch.pk: [] for batch in batches}
    counting = rows.filter(golden__quarantined_at=None).order_by()
    for batch_id, result in counting.values_list("batch", "result").distinct():
        found[batch_id].append(result)  # type: ignore[arg-type]  # one of ours, from a column
    return {key: worst_of(results) for key, results in found.items()}


def _results_by_golden(deploy: GoldenBatch) -> dict[int, dict[str | None, str]]:
    """And by agent."""
    settle(golden_runs(deploy.runs.filter(result=None)))
    found: dict[int, dict[str | None, str]] = {}
    judged = deploy.runs.filter(result__isnull=False).select_related("replay")
    for run in judged.only("golden_id", "result", "replay", "replay__order"):
        found.setdefault(run.golden_id, {})[agent_of(run.replay)] = run.result or ""
    return found


def _outcome_of(run: GoldenRun, before: Mapping[str | None, str]) -> Outcome:
    """Of one that has been settled. `before` has the results of its golden at the last deploy; a version that was not
    there is held against the one that was."""
    golden, took = run.golden, took_ms(run.replay)
    agent, only = agent_of(run.replay), next(iter(before.values())) if len(before) == 1 else None
    return Outcome(
        golden_id=golden.golden_id,
        name=golden.name,
        golden_run_id=run.golden_run_id,
        agent=agent,
        result=run.result,  # type: ignore[arg-type]  # one of ours, from a column
        state=run.replay.state,
        words=run.words,
        checks=run.checks,
        seconds=None if took is None else took / 1000,
        quarantine=golden.quarantine_reason if golden.quarantined_at else None,
        address=reverse("golden_run", args=[golden.project.slug, run.golden_run_id]),
        before=before.get(agent, only),  # type: ignore[arg-type]  # likewise
    )
