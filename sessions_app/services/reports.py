"""Reproduction reports: the facts of a run and of its replays, put together."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import QuerySet

from sessions_app.core.fork.order import OnDifference, Order, read_order
from sessions_app.core.formats.fields import Fields
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.payload import JsonObject, Payload, compact_json
from sessions_app.core.replay.isolation import is_own_machine, refused_in_words, world_in_words
from sessions_app.core.replay.parts import ModelPart, Parts, parts_of
from sessions_app.core.replay.proof import STATE_WORDS, read_proof
from sessions_app.core.replay.words import Difference, Effect, LiveModel, ReplayFacts
from sessions_app.core.reports.run_report import (
    Attempt,
    Outcome,
    ReproductionReport,
    build_report,
)
from sessions_app.core.run import Run as RecordedRun
from sessions_app.mapping.load import load_run
from sessions_app.mapping.references import read_references_of
from sessions_app.mapping.stored import reference
from sessions_app.models import Replay, Run, RunContent
from sessions_app.models.replays import FORK_MODES, ReplayMode, ReplayState
from sessions_app.queries.forks import agent_of
from sessions_app.services.fork_facts import fork_facts, samples_of
from sessions_app.services.judgement import rules, wrong_in_called

_STOPPED = ("fixture_missing", "unknown_from_step")
"""Verdicts of replays that stopped at something that nothing in the recording answers."""


def report_of_run(run: Run) -> ReproductionReport:
    """The report of a run with all its replays so far; the newest finished one of what the run says now is told in
    full.

    Forks are reports of their own: what differs there was changed on purpose.
    """
    replays = list(_attempts_at(run))
    finished = [replay for replay in replays if replay.is_over]
    told = next((replay for replay in reversed(finished) if replay.content_id == run.content_id), None)
    return _report(run, finished, told)


def report_of(replay: Replay) -> ReproductionReport:
    """The report of one replay, beside the other attempts at its run."""
    finished = [attempt for attempt in _attempts_at(replay.run) if attempt.is_over]
    return _report(replay.run_as_asked, finished, replay if replay.is_over else None)


def _attempts_at(run: Run) -> QuerySet[Replay]:
    return (
        run.replays.filter(is_golden=False)
        .exclude(mode__in=FORK_MODES)
        .select_related("produced_run__content")
        .order_by("number")
    )


def _report(row: Run, finished: list[Replay], told: Replay | None) -> ReproductionReport:
    outputs = _outputs([*finished, told] if told else finished)
    run, project = load_run(row), row.project
    return build_report(
        run,
        anomalies=find_anomalies(run, rules(project), wrong_in_called(project, run)),
        kit=audit_kit(run),
        attempts=[_attempt(replay, outputs.get(replay.pk), row.content) for replay in finished],
        replay=replay_facts(told, run, outputs.get(told.pk)) if told else None,
    )


def _outputs(replays: list[Replay]) -> dict[int, Payload]:
    """What each replay ended with; as many queries for all of them as for one."""
    made = [(replay.pk, replay.produced_run.content) for replay in replays if replay.produced_run]
    named = [(pk, content, *reference(slice_)) for pk, content in made if (slice_ := _output(content)) is not None]
    contents = read_references_of([(content, {name}) for _, content, name, _ in named])
    return {
        pk: Payload(content=found[name], media_type=media_type)
        for (pk, _, name, media_type), found in zip(named, contents, strict=True)
        if name in found
    }


def _output(content: RunContent) -> bytes | None:
    return Fields(content.intact_header).slice("output")


def _attempt(replay: Replay, output: Payload | None, content: RunContent) -> Attempt:
    is_of_it = replay.content_id == content.pk
    return Attempt(
        number=replay.number,
        outcome=_outcome(replay) if is_of_it else "of_another_record",
        started_at=replay.claimed_at,
        output=output,
        matches_original=_has_same_outcome(replay) if is_of_it else None,
        not_matched=_of_outcome(replay) or "not compared",
        tool_calls=replay.produced_run.tool_call_count if replay.produced_run else 0,
        error=_error(replay),
        replay_id=replay.replay_id,
        parts=_parts(replay, read_order(replay.order)),
        state=_state(replay),
    )


def _state(replay: Replay) -> str | None:
    proof = read_proof(replay.facts.get("proof"))
    part = proof.parts.get("state") if proof else None
    return None if part is None else part.reason or STATE_WORDS[part.state]


def _outcome(replay: Replay) -> Outcome:
    if replay.state == ReplayState.CANCELLED:
        return "cancelled"
    if replay.state == ReplayState.DONE and replay.is_in_part:
        return "partial"
    if replay.state != ReplayState.DONE or replay.verdict == "could_not_run":
        return "error"
    if replay.verdict in _STOPPED:
        return "unknown"
    return "reproduced" if replay.verdict == "reproduced" else "different"


def _has_same_outcome(replay: Replay) -> bool | None:
    """None where the outcomes were not compared."""
    proof = read_proof(replay.facts.get("proof"))
    return None if proof is None else proof.has_same_outcome


def _of_outcome(replay: Replay) -> str | None:
    """As the proof has it."""
    proof = read_proof(replay.facts.get("proof"))
    return STATE_WORDS[proof.outcome.state] if proof else None


def _error(replay: Replay) -> str | None:
    if replay.verdict != "fixture_missing" or replay.is_in_part:
        return replay.error
    asked = replay.facts.get("asked_for", {})
    sent = asked.get("http")
    if sent is not None:
        return f"{asked.get('tool')} sent {sent['method']} {sent['url']}: {sent['reason']}."
    if "agents_not_played" in replay.facts:
        return f"No recorded answer of {asked.get('tool')}."
    return f"No recorded answer for {asked.get('tool')} with these arguments."


def _has_run(replay: Replay) -> bool:
    """Whether the loop was played: then it left a run behind. What a cancelled replay leaves shows nothing."""
    return replay.produced_run is not None and replay.state != ReplayState.CANCELLED


def replay_facts(replay: Replay, run: RecordedRun, output: Payload | None) -> ReplayFacts:
    """What the engine wrote down, as the report wants it."""
    return replace(plain_facts(replay), output=output, fork=fork_facts(replay, run))


def plain_facts(replay: Replay) -> ReplayFacts:
    """As far as the row alone holds them: without what a fork was asked for, and what its run came to."""
    facts, found, order = replay.facts, replay.shown_divergence, read_order(replay.order)
    return ReplayFacts(
        verdict=replay.verdict or "could_not_run",  # type: ignore[arg-type]  # one of ours, from a column
        steps=replay.produced_run.step_count if replay.produced_run else 0,
        stopped_at=(replay.stopped_at or found or {}).get("step"),
        proof=read_proof(facts.get("proof")),
        asked_tool=(facts.get("asked_for") or {}).get("tool"),
        limit=(facts.get("limit") or {}).get("reason"),
        limit_code=(facts.get("limit") or {}).get("code"),
        limit_fix=(facts.get("limit") or {}).get("fix"),
        possible_cause=facts.get("possible_cause", ""),
        snapshots_before=facts.get("snapshots_before", 0),
        left_over=len(facts.get("left_over", [])),
        difference=_difference(found) if found and replay.verdict == "diverged" else None,
        sources=facts.get("sources", {}),
        live_calls=None if is_own_machine(replay.facts) else replay.live_calls,
        world="" if replay.live_calls is None and not is_own_machine(replay.facts) else _world(replay),
        refused=refused_in_words(replay.facts, replay.refused_calls or 0),
        error=replay.error,
        has_record_changed=replay.content_id != replay.run.content_id,
        is_cold=replay.run.verdict == "cold",
        has_run=_has_run(replay),
        run_id=replay.produced_run.run_id if replay.produced_run else None,
        live_model=_live_model(replay),
        live_tools=facts.get("live_tools") or {},
        agent=agent_of(replay) if "commit" in facts else None,
        commit=facts.get("commit"),
        clock=facts.get("clock"),
        parts=_parts(replay, order),
        runs_tools=order.tools.run,
        samples=samples_of(replay) if replay.mode == ReplayMode.LIVE else None,
        effect=_effect(replay),
        request=_request(replay),
        agents_not_played=facts.get("agents_not_played", ()),
    )


def _request(replay: Replay) -> str | None:
    sent = (replay.facts.get("asked_for") or {}).get("http")
    return f"{sent['method']} {sent['url']}" if sent else None


def _parts(replay: Replay, order: Order) -> Parts | None:
    if replay.mode in FORK_MODES or not _has_run(replay):
        return None
    own_machine = is_own_machine(replay.facts)
    model = _live_model(replay)
    part: ModelPart = "live" if order.samples is not None else _MODELS[order.on_difference]
    return parts_of(
        agent=order.agent,
        runs_tools=order.tools.run,
        model=part,
        asked=model.words if model else None,
        is_on_own_machine=own_machine,
        live=() if own_machine else [name for name, times in (replay.facts.get("live_tools") or {}).items() if times],
    )


def _live_model(replay: Replay) -> LiveModel | None:
    live = replay.facts.get("live_model")
    if not live:
        return None
    return LiveModel(name=str(live["model"]), settings=live["settings"], answered=live["answered"])


_MODELS: dict[OnDifference, ModelPart] = {
    "stop": "recorded",
    "play_on": "recorded_for_others",
    "live": "recorded_then_live",
}


def _effect(replay: Replay) -> Effect | None:
    """The act of the code's own that is the first difference."""
    step = (replay.divergence or {}).get("step")
    for act in replay.facts.get("own_code") or ():
        if act["step"] == step and act["kind"] == "tool" and replay.mode not in FORK_MODES:
            return _effect_of(act)
    return None


def _effect_of(act: JsonObject) -> Effect:
    failed = bool(act.get("has_failed"))
    return Effect(
        step=act["step"],
        name=act["name"],
        recorded=_said(act["recorded"]),
        now=str(act["now"]) if failed else _said(act["now"]),
        has_failed=failed,
    )


def _said(value: object) -> str:
    return _text(value) or "nothing"


def _world(replay: Replay) -> str:
    return world_in_words(replay.facts, is_live=bool(replay.live_calls), refused=replay.refused_calls or 0)


def first_difference(replay: Replay) -> Difference | None:
    """None where there is none: where the recording ends, that a replay ends too is no difference."""
    found = replay.shown_divergence
    return _difference(found) if found and "path" in found and not replay.is_in_part else None


def _difference(found: dict[str, object]) -> Difference:
    return Difference(
        step=None if found["step"] is None else int(str(found["step"])),
        path=str(found["path"]),
        recorded=_text(found.get("recorded")),
        replayed=_text(found.get("replayed")),
    )


def _text(value: object) -> str | None:
    return None if value is None else compact_json(value).decode()
