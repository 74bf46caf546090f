"""Running goldens: each run is a replay of the scene, judged when it is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.db import transaction

from replay_goldens.checks import read_checks
from sessions_app.core.goldens.playing import played_of, samples_of
from sessions_app.core.goldens.results import GoldenResult, Result, result_of
from sessions_app.core.payload import JsonObject
from sessions_app.core.reports.run_report import GoldenVerdict, ReproductionReport
from sessions_app.mapping.load import load_content, load_run
from sessions_app.models import Golden, GoldenBatch, GoldenRun, Replay, Run
from sessions_app.models.replays import OF_CODE, ReplayMode, ReplayState
from sessions_app.queries.forks import agent_of
from sessions_app.queries.goldens import golden_runs
from sessions_app.services.goldens import note_evidence
from sessions_app.services.observed_replays import take_in_observed, take_in_unobserved
from sessions_app.services.replays import checked_order, queue_replay
from sessions_app.services.reports import plain_facts, report_of


def run_golden(
    golden: Golden, *, agent: str | None = None, user: User | None = None, batch: GoldenBatch | None = None
) -> GoldenRun:
    """Queue a replay of the scene. `agent` stands in for the one that the golden names. Raises as `request_replay`."""
    with transaction.atomic():
        return GoldenRun.objects.create(golden=golden, batch=batch, replay=_queued(golden, agent, user))


def run_again(run: GoldenRun, *, user: User | None = None) -> None:
    """In place of a replay that came to nothing; that one stays in the list of replays. Raises as `run_golden`."""
    golden = run.golden
    replay = _queued(golden, agent_of(run.replay) if golden.mode in OF_CODE else None, user)
    GoldenRun.objects.filter(pk=run.pk).update(replay=replay, result=None, words="", checks=[])


def _queued(golden: Golden, agent: str | None, user: User | None) -> Replay:
    order = {name: value for name, value in golden.order.items() if name != "at_least"}
    order |= {} if agent is None else {"agent": agent}
    wanted, read_agent = checked_order(golden.project, golden.mode, order)
    return queue_replay(
        run=golden.run,
        user=user,
        mode=golden.mode,
        request_key=None,
        order=wanted,
        agent=read_agent,
        is_golden=True,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenRun:
    """What became of a run that was handed in; `created` is false where it had been handed in before."""

    run: GoldenRun
    created: bool


def take_in_golden_run(
    golden: Golden, record: bytes, order: JsonObject, *, batch: GoldenBatch | None = None
) -> TakenRun:
    """Judge a run that was made on a person's own machine. Raises as `take_in_observed`."""
    taken = take_in_observed(golden.run, record, order, is_golden=True)
    run, created = GoldenRun.objects.get_or_create(replay=taken.replay, defaults={"golden": golden, "batch": batch})
    settle([run])
    return TakenRun(run=run, created=created)


def take_in_unrun(golden: Golden, *, agent: str, reason: str, batch: GoldenBatch | None = None) -> GoldenRun:
    """That a run could not begin on a person's own machine."""
    order = {"agent": agent, "tools": {"run": golden.mode == ReplayMode.CODE_AND_TOOLS}}
    replay = take_in_unobserved(golden.run, reason, order)
    run = GoldenRun.objects.create(golden=golden, batch=batch, replay=replay)
    settle([run])
    return run


def settle(runs: Iterable[GoldenRun]) -> bool:
    """Judge those whose replay is over and that nobody has judged yet; whether there were any. Their goldens have
    other evidence then."""
    due = [run for run in runs if run.result is None and run.replay.is_over]
    for run in due:
        _judge(run)
    return bool(due)


def golden_run_of(replay: Replay) -> GoldenRun | None:
    """The run of a golden that the replay is, judged where it is over; None where it is none, or its golden is gone."""
    found = golden_runs(GoldenRun.objects.filter(replay=replay)).first() if replay.is_golden else None
    if found is not None:
        settle([found])
    return found


def report_of_replay(replay: Replay) -> ReproductionReport:
    """Its report, with the verdict of the golden whose run it is."""
    run = golden_run_of(replay)
    if run is None or run.result is None:
        return report_of(replay)
    result: Result = run.result  # type: ignore[assignment]  # one of ours, from a column
    return replace(report_of(replay), golden=GoldenVerdict(name=run.golden.name, result=result, words=run.words))


def _judge(run: GoldenRun) -> None:
    checks, rows = read_checks(run.golden.checks), _made_by(run.replay)
    made = [load_run(each) for each in rows]
    asked = run.replay.order.get("samples") or 1
    enough = run.golden.order.get("at_least") or asked
    played = played_of(plain_facts(run.replay), made, asked=asked, enough=enough)
    samples = samples_of(load_content(run.replay.content), made, checks, played, mode=run.replay.mode)
    if _write(run, result_of(samples, played)):
        for each, sample in zip(rows, samples, strict=True):
            if sample.outcome is not None and not (sample.missing_tools or sample.is_recording):
                note_evidence(run.golden, each.run_id, sample.outcome)


def _write(run: GoldenRun, found: GoldenResult) -> bool:
    """False where somebody else was quicker, or another replay has taken its place."""
    run.result, run.words, run.checks = found.result, found.words, list(found.checks)
    unjudged = GoldenRun.objects.filter(pk=run.pk, replay=run.replay, result=None)
    return unjudged.update(result=run.result, words=run.words, checks=run.checks) == 1


def _made_by(replay: Replay) -> list[Run]:
    """The run that the replay produced, or those of all samples of a live model."""
    if replay.produced_run is None or replay.state != ReplayState.DONE:
        return []
    if replay.mode != ReplayMode.LIVE:
        return [replay.produced_run]
    first = replay.produced_run.run_id
    names = [first, *(f"{first}_{number}" for number in range(2, (replay.order.get("samples") or 1) + 1))]
    return list(Run.objects.filter(project=replay.project_id, run_id__in=names).order_by("pk"))
