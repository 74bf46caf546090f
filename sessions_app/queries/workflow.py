"""What the reproduction workflow of a run is made of: the run without its histories, and all that was tried."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from sessions_app import models
from sessions_app.core import run as core
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import read_header
from sessions_app.core.formats.native_steps import read_step
from sessions_app.core.judge.anomalies.anomaly import Anomaly, first_odd_step
from sessions_app.core.workflow.attempts import Attempt
from sessions_app.core.workflow.steps import Facts, KeptGolden
from sessions_app.mapping.load import header_of
from sessions_app.mapping.pieces import step_texts
from sessions_app.mapping.references import payload_references, read_references
from sessions_app.models.replays import FORK_MODES, ReplayMode, ReplayState
from sessions_app.queries.forks import expectation_words, fork_rows
from sessions_app.queries.goldens import LastRuns, goldens_about, last_runs
from sessions_app.queries.steps import GonePayload, StoredOrGone

STEPS = 2000
"""The first ones of a run; of the others nothing is said."""
REPLAYS = 50
"""The newest ones that changed nothing."""
_SAY_NOTHING = (ReplayState.CANCELLED, ReplayState.CRASHED)
_WORDS = {
    ReplayMode.RECORDING: "replay #{number}",
    ReplayMode.CODE: "code replay #{number}",
    ReplayMode.CODE_AND_TOOLS: "replay #{number} with code and tools",
    ReplayMode.LIVE: "replay #{number} with a live model",
    ReplayMode.FORK: "fork #{number} at step {step}",
    ReplayMode.RESUME: "run resumed from step {step} (#{number})",
    ReplayMode.SAMPLING: "samples from step {step} (#{number})",
}


_KIT_WORDS = {"partial": "captured in part", "contradictory": "contradictory"}


def workflow_facts(run: models.Run) -> Facts:
    """Eight queries at most, whatever the run holds and however often it was replayed."""
    recorded, is_part = _without_histories(run)
    lines = [line for line in run.kit.get("lines", []) if line["status"] != "captured"]
    missing = [f"{line['title']}: {_KIT_WORDS.get(line['status'], 'not captured')}" for line in lines]
    return Facts(
        run=recorded,
        is_part=is_part,
        story=run.story,
        odd=len(run.anomalies),
        first_odd=first_odd_step(_anomaly(found) for found in run.anomalies),
        kit_captured=run.kit_captured,
        kit_missing=tuple(missing),
        kit_total=len(run.kit.get("lines", [])),
        verdict=run.verdict,
        verdict_step=run.verdict_step,
        reasons=tuple(reason["message"] for reason in run.verdict_reasons),
        attempts=_attempts(run),
        goldens=_goldens(run),
    )


def _goldens(run: models.Run) -> tuple[KeptGolden, ...]:
    goldens = list(goldens_about(run))
    last = last_runs(goldens)
    return tuple(_golden(golden, last.get(golden.pk)) for golden in goldens)


def _golden(golden: models.Golden, last: LastRuns | None) -> KeptGolden:
    batch = last.decider.batch if last else None
    return KeptGolden(
        golden_id=golden.golden_id,
        name=golden.name,
        fails_on=golden.fails_on[0] if golden.fails_on else None,
        passes_on=golden.passes_on[0] if golden.passes_on else None,
        last_run_id=last.decider.golden_run_id if last else None,
        last_result=last.result if last else None,
        last_agents=last.agents if last else (),
        last_deploy=batch.label if batch and batch.is_deploy else None,
    )


def _anomaly(found: dict[str, Any]) -> Anomaly:
    steps, level = tuple(found.get("steps") or ()), found.get("level", "warning")
    return Anomaly(code=found["code"], message=found["message"], steps=steps, level=level)


def _without_histories(run: models.Run) -> tuple[core.Run, bool]:
    texts = step_texts(run.content, run.steps[:STEPS])
    recorded = [run.content.intact_header, *texts]
    wanted = {each for text in recorded for each in payload_references(text)}
    stored = StoredOrGone(read_references(run.content, wanted))
    steps = tuple(_without_gone(read_step(Fields(text), index, stored)) for index, text in enumerate(texts, start=1))
    found = read_header(header_of(run.content), stored, prior=None, steps=steps, final=None)
    return found, len(run.steps) > STEPS


def _without_gone(step: core.Step) -> core.Step:
    """Bytes that are no longer stored are not captured any more: nobody can look into them."""
    return replace(step, call=_known(step.call), http=None if step.http is None else _known(step.http))


def _known(part: Any) -> Any:
    gone = {each.name: None for each in fields(part) if isinstance(getattr(part, each.name), GonePayload)}
    return replace(part, **gone)


def _attempts(run: models.Run) -> tuple[Attempt, ...]:
    """Of the run itself, and forks of its forks, in the order in which they were asked for."""
    newest = run.replays.filter(mode=ReplayMode.RECORDING, is_golden=False).order_by("-pk")[:REPLAYS]
    rows = [(replay, 1, run.run_id) for replay in newest]
    grown = [row for row in fork_rows(run) if row.depth == 1 or row.replay.mode in FORK_MODES]
    rows += [(row.replay, row.depth, row.parent_run_id) for row in grown]
    in_order = sorted(rows, key=lambda row: row[0].pk)
    return tuple(_attempt(replay, f" of {parent}" if depth > 1 else "") for replay, depth, parent in in_order)


def _attempt(replay: models.Replay, of_fork: str) -> Attempt:
    words = _WORDS[ReplayMode(replay.mode)]
    differs = replay.stopped_at or replay.shown_divergence or {}
    return Attempt(
        replay_id=replay.replay_id,
        kind="fork" if replay.mode in FORK_MODES else "replay",
        words=words.format(number=replay.number, step=replay.order.get("at_step") or 1) + of_fork,
        is_over=replay.is_over,
        verdict=None if replay.state in _SAY_NOTHING else replay.shown_verdict,
        differs_at=differs.get("step"),
        has_stops=bool(replay.order.get("breakpoints")),
        expectation=expectation_words(replay),
        met=replay.expectation_met,
        unproven_source=replay.unproven_source,
    )
