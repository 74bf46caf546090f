"""Replays that ran on a person's own machine: what was observed there is judged and stored here, as one attempt."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from sessions_app import models
from sessions_app.core.errors import RunConflict
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject, sha256_hex
from sessions_app.core.replay.isolation import OWN_MACHINE
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.observed_pairs import Tools
from sessions_app.core.replay.own_machine import judge_observed
from sessions_app.core.run import Run
from sessions_app.mapping.load import load_content
from sessions_app.mapping.rows import storable
from sessions_app.models.replays import ReplayMode, ReplayQueue, ReplayState
from sessions_app.services import leases
from sessions_app.services.deadlocks import again_after_deadlock
from sessions_app.services.ingest import check_growth, limits
from sessions_app.services.redaction import redactor_of
from sessions_app.services.replay_results import produced_run_id, steps_answered
from sessions_app.services.replays import next_number
from sessions_app.services.run_store import store_assembled

_WORKER = "own machine"


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What became of what was sent."""

    replay: models.Replay
    created: bool
    """False when the same was sent before."""


@again_after_deadlock
def take_in_observed(
    run: models.Run, record: bytes, order: JsonObject, *, user: User | None = None, is_golden: bool = False
) -> Taken:
    """Judge the observed run, a native record, against `run` and store both results, or nothing.

    `order` says what was asked for on that machine: agent, tools.run, on_difference. Raises `RecordError` naming the
    field, and `RunConflict` where another replay has sent another run under this id.
    """
    observed, digest = _read(run.project, record)
    recorded = load_content(run.content)
    key = f"observed {sha256_hex(observed.run_id.encode())}"
    with transaction.atomic():
        # Numbers and keys are given one after the other, as for replays that are queued.
        models.Project.objects.select_for_update(no_key=True).get(pk=run.project_id)
        known = models.Replay.objects.filter(project=run.project_id, request_key=key).first()
        if known is not None:
            return Taken(replay=_same(known, run, digest, observed.run_id), created=False)
        asked = {**order, "observed": {"run_id": observed.run_id, "digest": digest}}
        replay = _begin(run, asked, key, user, is_golden=is_golden)
        tools: Tools = "run" if order["tools"]["run"] else "frozen"
        result, made = judge_observed(recorded, observed, tools=tools, run_id=produced_run_id(replay))
        _finish(replay, result, made)
    return Taken(replay=replay, created=True)


@again_after_deadlock
def take_in_unobserved(run: models.Run, reason: str, order: JsonObject) -> models.Replay:
    """A run of a golden that could not begin on that machine, for this reason."""
    with transaction.atomic():
        models.Project.objects.select_for_update(no_key=True).get(pk=run.project_id)
        replay = _begin(run, order, None, None, is_golden=True)
        _finish(replay, Result(verdict="could_not_run", error=reason, facts={"isolation": OWN_MACHINE}), None)
    return replay


def _read(project: models.Project, record: bytes) -> tuple[Run, str]:
    """The run, redacted before anything else looks at it, and the digest of what was sent."""
    redacted = redactor_of(project).redact(record).content
    observed = parse_native(redacted, limits())
    check_growth(observed)
    return observed, sha256_hex(redacted)


def _same(known: models.Replay, run: models.Run, digest: str, run_id: str) -> models.Replay:
    if known.run_id != run.pk or (known.order.get("observed") or {}).get("digest") != digest:
        raise RunConflict(run_id)
    return known


def _begin(run: models.Run, order: JsonObject, key: str | None, user: User | None, *, is_golden: bool) -> models.Replay:
    mode = ReplayMode.CODE_AND_TOOLS if order["tools"]["run"] else ReplayMode.CODE
    return models.Replay.objects.create(
        project_id=run.project_id,
        run=run,
        content=run.content,
        number=next_number(run, mode, is_golden=is_golden),
        is_golden=is_golden,
        mode=mode,
        queue=ReplayQueue.CODE,
        order=order,
        requested_by=user,
        request_key=key,
        state=ReplayState.RUNNING,
        attempt=1,
        worker=_WORKER,
        claimed_at=timezone.now(),
        progress_total=run.model_call_count + run.tool_call_count,
    )


def _finish(replay: models.Replay, result: Result, made: Run | None) -> None:
    found = result.divergence
    replay.state = ReplayState.FAILED if made is None else ReplayState.DONE
    replay.verdict = result.verdict
    told = {"divergence": found and asdict(found), "facts": result.facts, "error": result.error}
    for name, value in leases.without_secrets(replay, told).items():
        setattr(replay, name, storable(value))
    replay.produced_run = None if made is None else _stored(replay, made)
    replay.progress_done = steps_answered(result.facts)
    replay.finished_at = timezone.now()
    replay.save()


def _stored(replay: models.Replay, made: Run) -> models.Run:
    """By way of its record, as the runs of other replays come."""
    text = encode_native(made)
    run = parse_native(text, Limits(max_bytes=len(text)))
    return store_assembled(replay.project, run, source=text, made_before=None)
