"""What became of a replay: its outcome and the run that it produced, in one transaction, both or none."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from sessions_app.core.formats.native import parse_native
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Origin
from sessions_app.mapping.rows import storable
from sessions_app.models import Replay, Run
from sessions_app.models.replays import FORK_MODES, ReplayQueue, ReplayState
from sessions_app.queries.borrowing import nearest_calls
from sessions_app.services import leases
from sessions_app.services.deadlocks import again_after_deadlock
from sessions_app.services.redaction import redactor_of
from sessions_app.services.run_store import store_assembled

_STATES = {"could_not_run": ReplayState.FAILED, "paused": ReplayState.PAUSED}


def produced_run_id(replay: Replay) -> str:
    """A fork's is given when it is asked for. A replay's is named after the recording; a name that a recording has
    already stays with it."""
    if replay.fork_id is not None:
        return replay.fork_id
    if replay.produced_run is not None:
        return replay.produced_run.run_id
    name = f"{replay.run.run_id[:460]}_{replay.kind}_{replay.number}"
    is_taken = Run.objects.filter(project=replay.project_id, run_id=name).exists()
    return f"{name}_{replay.replay_id}" if is_taken else name


@again_after_deadlock
def store_result(replay: Replay, result: JsonObject) -> None:
    """Write down what the child said. Raises `LeaseLost` when another worker has taken the replay over."""
    verdict = result["verdict"]
    with transaction.atomic():
        produced = store_produced(replay, result.get("record"))
        facts = result.get("facts") or {}
        leases.finish(
            replay,
            state=_state(result),
            verdict=None if verdict == "paused" else verdict,
            divergence=storable(result.get("divergence")),
            live_calls=result["live_calls"],
            refused_calls=result["refused_calls"],
            facts=storable(facts),
            error=storable(result.get("error")),
            stopped_at=storable(_stopped(replay, result.get("stopped"))),
            expectation_met=(facts.get("expectation") or {}).get("met"),
            produced_run=produced,
            progress_done=_done(replay, facts),
        )


def _state(result: JsonObject) -> str:
    if str(result.get("error") or "").startswith("crashed: "):
        return ReplayState.CRASHED
    return _STATES.get(result["verdict"], ReplayState.DONE)


def store_produced(replay: Replay, record: str | None, *, made_before: Run | None = None) -> Run | None:
    """Most are made of redacted texts alone; what the team's code or a live model said is redacted here."""
    if not record:
        return None
    text = record.encode()
    if replay.queue == ReplayQueue.CODE or replay.asks_live_model:
        text = redactor_of(replay.project).redact(text).content
    origin: Origin = "fork" if replay.mode in FORK_MODES else "replay"
    run = replace(parse_native(text, Limits(max_bytes=len(text))), origin=origin)
    before = replay.produced_run_id if made_before is None else made_before.pk
    return store_assembled(replay.project, run, source=None, made_before=before)


def _stopped(replay: Replay, stopped: JsonObject | None) -> JsonObject | None:
    """With the recorded calls that come nearest to one that nothing could answer."""
    if stopped is None or stopped["why"] != "unknown" or stopped["kind"] != "tool":
        return stopped
    near = nearest_calls(replay.project_id, replay.run_as_asked, stopped["name"], stopped["arguments"])
    return {**stopped, "nearest": [each.to_json() for each in near]}


def _done(replay: Replay, facts: JsonObject) -> int:
    if replay.mode in FORK_MODES:
        return int(facts.get("steps_after") or 0)
    return steps_answered(facts)


def steps_answered(facts: JsonObject) -> int:
    """By whomever; a step that nobody answered is where the replay stopped."""
    return sum(count for source, count in (facts.get("sources") or {}).items() if source != "unknown")
