"""Several goldens at once, with one or more agents: asking for them, cancelling, and what all of them came to."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.goldens.report import Outcome
from sessions_app.models import Golden, GoldenBatch, GoldenRun, Project, Replay
from sessions_app.models.replays import OF_CODE
from sessions_app.queries.forks import agent_of
from sessions_app.queries.replays import took_ms
from sessions_app.services.golden_runs import run_golden, settle
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


def outcomes_of(batch: GoldenBatch) -> list[Outcome]:
    """In the order in which they were asked for; those that are over are judged first."""
    runs = list(batch.runs.all())
    settle(runs)
    return [outcome_of(run) for run in runs]


def outcome_of(run: GoldenRun) -> Outcome:
    """Of one that has been settled."""
    golden, took = run.golden, took_ms(run.replay)
    return Outcome(
        golden_id=golden.golden_id,
        name=golden.name,
        golden_run_id=run.golden_run_id,
        agent=agent_of(run.replay),
        result=run.result,  # type: ignore[arg-type]  # one of ours, from a column
        words=run.words,
        checks=run.checks,
        seconds=None if took is None else took / 1000,
        quarantine=golden.quarantine_reason if golden.quarantined_at else None,
        address=reverse("golden_run", args=[golden.project.slug, run.golden_run_id]),
    )
