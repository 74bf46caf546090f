"""Goldens: keeping a scene with its checks, quarantine, and by which runs it was shown that it can fail."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from replay_goldens.checks import Judged, all_passed, judge, read_checks
from replay_goldens.judged import Check
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.goldens.traces import trace_of
from sessions_app.core.goldens.warnings import warnings_for
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run as RecordedRun
from sessions_app.mapping.load import load_run
from sessions_app.models import Golden, Project, Replay, Run
from sessions_app.queries.goldens import relatives_of
from sessions_app.services.replays import checked_order
from sessions_app.services.typed_json import without_secrets

MOST_SHOWN = 50
"""Runs that a golden names on each side."""
_LONGEST_NAME = 200
_LONGEST_WORDS = 2_000


def create_golden(*, run: Run, wanted: JsonObject, user: User | None = None) -> Golden:
    """Keep a scene: `run` with `name`, `description`, `expected_outcome`, `checks` and `replay` (mode and order, as for
    replays; the agent may be left out). The run and its relatives are judged at once, those named in `against` too.

    Raises `CheckError` and `ForkError` naming the field, `NotReplayable` for a mode that is none.
    """
    kept = without_secrets(run.project, wanted)
    checks = read_checks(kept.get("checks"))
    mode, order = _scene(run.project, kept.get("replay") or {})
    golden = Golden(
        project=run.project,
        run=run,
        name=_words(kept, "name", _LONGEST_NAME) or _refuse_empty(),
        description=_words(kept, "description", _LONGEST_WORDS),
        expected_outcome=_words(kept, "expected_outcome", _LONGEST_WORDS),
        checks=[check.to_json() for check in checks],
        mode=mode,
        order=order,
        created_by=user,
    )
    scene, others = load_run(run), [*relatives_of(run), *_named(run.project, kept)]
    outcomes = {each.run_id: outcome_of(each, judge_run(each, checks, scene)) for each in [run, *others]}
    golden.fails_on = _where(outcomes, False)
    golden.passes_on = _where(outcomes, True)
    golden.is_decided_by_code = _is_decided_by_code(run, mode, outcomes)
    golden.save()
    return golden


def _scene(project: Project, replay: JsonObject) -> tuple[str, JsonObject]:
    """Checked, and kept as it was asked for: each run of the golden makes an order of it."""
    mode = replay.get("mode") or "recording"
    order = {name: value for name, value in replay.items() if name != "mode" and value is not None}
    if order.get("breakpoints"):
        raise ForkError("A golden runs without pauses; leave the breakpoints out.", field="replay.breakpoints")
    at_least = order.pop("at_least", None)
    try:
        checked_order(project, mode, order, agent_is_named_later=True)
    except ForkError as error:
        raise ForkError(error.message, field=f"replay.{error.field}") from None
    return mode, order if at_least is None else {**order, "at_least": _of_samples(at_least, mode, order)}


def _of_samples(at_least: JsonValue, mode: str, order: JsonObject) -> int:
    """How many samples have to pass."""
    samples = order.get("samples") or 1
    if mode != "live" or type(at_least) is not int or not 1 <= at_least <= samples:
        words = f"at_least says how many samples of a live model have to pass: a number from 1 to {samples}."
        raise ForkError(words, field="replay.at_least")
    return at_least


def _words(kept: JsonObject, name: str, longest: int) -> str:
    value = kept.get(name) or ""
    if not isinstance(value, str) or len(value) > longest:
        raise ForkError(f"{name} must be text of at most {longest:,} characters.", field=name)
    return value.strip()


def _refuse_empty() -> str:
    raise ForkError("A golden needs a name.", field="name")


def _named(project: Project, kept: JsonObject) -> list[Run]:
    names = kept.get("against") or []
    found = list(Run.objects.filter(project=project, run_id__in=names[:MOST_SHOWN]).select_related("project"))
    lacking = next((name for name in names if name not in {run.run_id for run in found}), None)
    if lacking is not None:
        raise ForkError(f"There is no run {lacking!r} in this project.", field="against")
    return found


def judge_run(
    run: Run, checks: Sequence[Check], scene: RecordedRun, *, why_not_ended: str = "the run did not finish"
) -> list[Judged]:
    """What the checks say of a stored run, in the scene or of it."""
    recorded = scene if run.run_id == scene.run_id else load_run(run)
    return judge(checks, trace_of(recorded, scene=scene, why_not_ended=why_not_ended))


def outcome_of(run: Run, judged: Sequence[Judged]) -> bool | None:
    """Whether a run passes. One that ended with an error has failed, whatever else it did."""
    return False if run.status == "error" else all_passed(judged)


def _where(outcomes: dict[str, bool | None], outcome: bool) -> list[str]:
    return [name for name, each in outcomes.items() if each is outcome][:MOST_SHOWN]


def _is_decided_by_code(scene: Run, mode: str, outcomes: dict[str, bool | None]) -> bool:
    """Whether replays of the scene with code, with the same parts, come to another result than it or each other."""
    replays = Replay.objects.filter(run=scene, mode=mode, produced_run__run_id__in=outcomes)
    by_code = replays.values_list("produced_run__run_id", flat=True)
    return {True, False} <= {outcomes[name] for name in (scene.run_id, *by_code)}


def note_evidence(golden: Golden, run_id: str, passed: bool) -> None:
    """A run of the golden showed that it can pass, or that it can fail; by code, where the scene or another run does
    otherwise."""
    with transaction.atomic():
        kept = Golden.objects.select_for_update(of=("self",), no_key=True).select_related("run").get(pk=golden.pk)
        known, opposite = (kept.passes_on, kept.fails_on) if passed else (kept.fails_on, kept.passes_on)
        if run_id not in known and len(known) < MOST_SHOWN:
            known.append(run_id)
        is_contrary = kept.run.run_id in opposite or kept.runs.filter(result="fail" if passed else "pass").exists()
        kept.is_decided_by_code = kept.is_decided_by_code or is_contrary
        kept.save(update_fields=["passes_on", "fails_on", "is_decided_by_code"])


def warnings_of(golden: Golden) -> list[JsonObject]:
    """What speaks against the golden now; they go when a run shows otherwise, and not by being read."""
    return warnings_for(
        mode=golden.mode,
        on_difference=golden.order.get("on_difference") or "stop",
        fails_on=golden.fails_on,
        passes_on=golden.passes_on,
        is_decided_by_code=golden.is_decided_by_code,
    )


def quarantine(golden: Golden, reason: str) -> None:
    """Its result does not count until it is taken out again. Raises `ForkError` without a reason."""
    words = _words({"reason": reason}, "reason", _LONGEST_WORDS)
    if not words:
        raise ForkError("Say why it is put into quarantine.", field="reason")
    golden.quarantine_reason = words
    golden.quarantined_at = golden.quarantined_at or timezone.now()
    golden.save(update_fields=["quarantine_reason", "quarantined_at"])


def end_quarantine(golden: Golden) -> None:
    """Its result counts again; without a quarantine nothing happens."""
    golden.quarantine_reason, golden.quarantined_at = "", None
    golden.save(update_fields=["quarantine_reason", "quarantined_at"])
