"""Case files: a run with the runs it belongs with, out of one installation and into another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import QuerySet

from sessions_app import models
from sessions_app.core.case_file.case import make_case, open_case
from sessions_app.core.compare.runs import Comparison, Divergence, compare_runs
from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.anomalies.anomaly import Rules
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.verdict import Verdict, judge
from sessions_app.core.payload import JsonObject
from sessions_app.core.reports.run_report import Attempt, Outcome, as_json, build_report
from sessions_app.core.run import Run
from sessions_app.mapping.load import load_run
from sessions_app.models.replays import ReplayState
from sessions_app.services.ingest import ingest_batch, limits
from sessions_app.services.judgement import rules
from sessions_app.services.run_store import Ingested

MAX_REPLAYS = 100
_FOR_THE_REST = 1024 * 1024
"""Bytes that are left for what is no record: manifest, report, names."""


def case_of(row: models.Run) -> bytes:
    """The sealed archive of a run, the run it came from, and its replays, as many as one import takes.

    It is made from the records alone, so the installation that takes it in gives the same bytes again.
    Raises `RecordTooLarge` when the run itself does not fit.
    """
    run = load_run(row)
    records = {run.run_id: encode_native(run)}
    room = limits().max_bytes - _FOR_THE_REST - len(records[run.run_id])
    if room < 0:
        raise RecordTooLarge("This run is too large for a case file; take the native record.")
    replays: list[Run] = []
    for other in _others(row):
        loaded = load_run(other)
        record = encode_native(loaded)
        if len(record) <= room:
            room -= len(record)
            records[loaded.run_id] = record
            replays += [loaded] if other.parent_run_id == row.run_id else []
    return make_case(records, _report(run, rules(row.project), replays))


def _others(row: models.Run) -> Sequence[models.Run]:
    """The run it came from, then its replays in order of their numbers."""
    project = models.Run.objects.filter(project=row.project_id)
    origin = project.filter(run_id=row.parent_run_id).exclude(pk=row.pk) if row.parent_run_id else project.none()
    return [*origin, *sorted(_replays(project, row), key=lambda replay: (len(replay.run_id), replay.run_id))]


def _replays(project: QuerySet[models.Run], row: models.Run) -> QuerySet[models.Run]:
    replays = project.filter(parent_run_id=row.run_id, origin="replay").exclude(run_id=row.parent_run_id or "")
    # One that was stopped half way is no attempt, and its run does not say that somebody stopped it.
    replays = replays.exclude(pk=row.pk).exclude(produced_by__state=ReplayState.CANCELLED)
    return replays.order_by("run_id")[:MAX_REPLAYS]


def _report(run: Run, odd: Rules, replays: Sequence[Run]) -> JsonObject:
    attempts = [_attempt(run, replay, number) for number, replay in enumerate(replays, start=1)]
    return as_json(build_report(run, anomalies=find_anomalies(run, odd), kit=audit_kit(run), attempts=attempts))


def _attempt(run: Run, replay: Run, number: int) -> Attempt:
    """What the records say of a replay; what only the engine saw is not among them."""
    comparison = compare_runs(run, replay)
    outcome = _outcome(judge(run), comparison.divergence)
    return Attempt(
        number=number,
        outcome=outcome,
        output=replay.output,
        matches_original=None if outcome == "partial" else _has_same_end(comparison),
        tool_calls=len(replay.tool_calls),
        error=replay.error.message if replay.error else None,
        replay_id=replay.run_id,
    )


def _outcome(judged: Verdict, found: Divergence | None) -> Outcome:
    """A replay comes no further than the judge has said: there it agrees in part, and no more."""
    step = None if found is None else found.left_step or found.right_step
    is_behind_end = judged.step is not None and (step is None or step.index > judged.step)
    if found is not None and not is_behind_end:
        return "different"
    return "reproduced" if judged.verdict == "replayable" else "partial"


def _has_same_end(comparison: Comparison) -> bool:
    ends = [fact for fact in comparison.facts if fact.name in ("status", "output", "error")]
    return all(fact.status == "same" and fact.is_captured for fact in ends)


def import_case(project: models.Project, content: bytes) -> list[Ingested]:
    """Take in all runs of a case file, the one it is about first: all of them or none.

    Raises `RecordError` naming the entry that is not as it was sealed, and what `ingest_batch` raises.
    """
    case = open_case(content, limits())
    _check_ids(dict(zip(case.runs, case.records, strict=True)))
    return ingest_batch(project, case.records)


def _check_ids(records: Mapping[str, bytes]) -> None:
    for run_id, record in records.items():
        if Fields(record).text("run_id") != run_id:
            raise RecordError(f"The manifest names the run {run_id[:80]!r}; its record is of another.", field="runs")
