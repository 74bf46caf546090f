"""Rows to the objects of the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from sessions_app.core.errors import RecordError
from sessions_app.core.fork.expected_words import unproven_json
from sessions_app.core.formats.json_writer import iso
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import ErrorInfo, ModelCall, Step, ToolCall, asked
from sessions_app.mapping.rows import model_preview, shown_answer
from sessions_app.models import Note, Replay, Run, Session
from sessions_app.models.replays import ReplayState
from sessions_app.queries.forks import ForkRow, agent_of, expectation_words, sources_of


def run_body(row: Run, *, input_: JsonValue, output: JsonValue, error: ErrorInfo | None) -> JsonObject:
    """`input_` and `output` whole; lists give the previews that they show."""
    return {
        "run_id": row.run_id,
        "session_id": row.session.session_id,
        "agent": row.agent_name,
        "status": row.status,
        "input": input_,
        "output": output,
        "error": error_body(error),
        "model": row.model,
        "provider": row.provider,
        "user_id": row.user_id,
        "tenant_id": row.tenant_id,
        "started_at": moment(row.started_at),
        "duration_ms": row.duration_ms,
        "tokens": {"input": row.input_tokens, "output": row.output_tokens},
        "steps": row.step_count,
        "model_calls": row.model_call_count,
        "tool_calls": row.tool_call_count,
        "messages": row.message_count,
        "verdict": verdict_body(row),
        "anomalies": row.anomalies,
        "story": row.story,
        "answer_sources": row.answer_sources,
        "kit_captured": row.kit_captured,
        "cold_case": cold_case_body(row),
        "origin": row.origin,
        "parent_run_id": row.parent_run_id,
        "commit": row.commit,
        "source_format": row.source_format,
        "digest": bytes(row.content_digest).hex(),
        "changed_at": changed_at(row),
    }


def listed_run(run: Any) -> JsonObject:
    """A row that has what is JSON in it as text: it is written out without being read."""
    run.anomalies, run.verdict_reasons = map(msgspec.Raw, (run.anomalies_text, run.reasons_text))
    error = ErrorInfo(type=None, message=run.error_preview) if run.error_preview else None
    return run_body(run, input_=run.input_preview, output=run.output_preview, error=error)


def verdict_body(row: Run) -> JsonObject:
    return {"verdict": row.verdict, "step": row.verdict_step, "reasons": row.verdict_reasons}


def cold_case_body(row: Run) -> JsonObject | None:
    case = getattr(row, "cold_case", None)
    return None if case is None else {"reason": case.reason, "marked_at": moment(case.marked_at)}


def note_body(note: Note) -> JsonObject:
    return {
        "note_id": note.pk,
        "run_id": note.run.run_id,
        "step": note.step,
        "text": note.text,
        "author": note.by,
        "created_at": moment(note.created_at),
    }


def error_body(error: ErrorInfo | None) -> JsonObject | None:
    if error is None:
        return None
    return {"type": error.type, "message": error.message, **error.extra}


def session_body(session: Session, runs: list[JsonObject]) -> JsonObject:
    newest: JsonObject = runs[-1] if runs else {}
    return {
        "session_id": session.session_id,
        "runs": runs,
        "started_at": moment(session.started_at),
        "last_at": moment(session.last_at),
        "user_id": newest.get("user_id"),
        "tenant_id": newest.get("tenant_id"),
        "tags": session.tags,
    }


def step_body(step: Step, *, input_state: JsonValue, output_state: JsonValue, changes: list[str]) -> JsonObject:
    arguments, result = asked(step), shown_answer(step)
    model = step.call if isinstance(step.call, ModelCall) else None
    tool = step.call if isinstance(step.call, ToolCall) else None
    return {
        "index": step.index,
        "step_id": f"step_{step.index}",
        "kind": step.kind,
        "name": step.name,
        "call_id": tool.call_id if tool else None,
        "arguments": shown(arguments),
        "arguments_digest": arguments and arguments.digest,
        "result": shown(result),
        "result_digest": result and result.digest,
        "decision": decision(step),
        "error": error_body(step.error),
        "outcome": tool.outcome if tool else None,
        "model": model and (model.answered_model or model.model),
        "tokens": {"input": model and model.input_tokens, "output": model and model.output_tokens},
        "started_at": moment(step.started_at),
        "first_token_at": moment(step.first_token_at),
        "duration_ms": step.duration_ms,
        "parent": step.parent,
        "source": step.source,
        "input_state": input_state,
        "output_state": output_state,
        "state_changes": changes,
    }


def decision(step: Step) -> str | None:
    """As the recording says it. A model decides what to say or call; any other step was decided before it."""
    said = step.extra.get("decision")
    if isinstance(said, str) and said:
        return said
    if isinstance(step.call, ModelCall):
        return model_preview(step.call)
    return f"call {step.name}" if isinstance(step.call, ToolCall) else step.name


def shown(payload: Payload | None) -> JsonValue:
    """The parsed JSON where it parses, else the text; bytes as a note of their size and digest."""
    if payload is None:
        return None
    if payload.is_json or payload.is_text:
        return _parsed(payload.value)
    return {"digest": payload.digest, "media_type": payload.media_type, "size": payload.size}


def _parsed(value: JsonValue) -> JsonValue:
    """A text that is JSON by our own rules as that value: `[NaN]` stays a text, for it is no JSON."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return load_strict(value.encode())
    except RecordError:
        return value


def replay_body(replay: Replay) -> JsonObject:
    return {
        "replay_id": replay.replay_id,
        "run_of": replay.run.run_id,
        "session_replay_id": replay.session_replay.session_replay_id if replay.session_replay else None,
        "number": replay.number,
        "state": replay_state(replay),
        "mode": replay.mode,
        "attempt": replay.attempt,
        "progress": {"done": replay.progress_done, "total": replay.progress_total},
        "verdict": replay.verdict,
        "divergence": replay.shown_divergence,
        "proof": replay.facts.get("proof"),
        "live_calls": replay.live_calls,
        "refused_calls": replay.refused_calls,
        "run_id": replay.produced_run.run_id if replay.produced_run else None,
        "error": replay.error,
        "facts": replay.facts,
        "queue": replay.queue,
        "agent": agent_of(replay),
        "fork_id": replay.fork_id,
        **_asked_of(replay),
        "expect": replay.order.get("expect"),
        "sources": sources_of(replay),
        "stopped_at": replay.stopped_at,
        "parent_digest": bytes(replay.content.digest).hex(),
        "changed_at": changed_at(replay),
    }


def _asked_of(replay: Replay) -> JsonObject:
    return {
        "at_step": replay.order.get("at_step"),
        "changes": replay.order.get("changes") or [],
        "hypothesis": replay.order.get("hypothesis"),
        "expectation": _expectation(replay),
    }


def _expectation(replay: Replay) -> JsonObject | None:
    words = expectation_words(replay)
    if not words:
        return None
    return {"words": words, "met": replay.expectation_met, "unproven": unproven_json(replay.unproven_source)}


def fork_item(row: ForkRow) -> JsonObject:
    replay = row.replay
    return {
        "replay_id": replay.replay_id,
        "mode": replay.mode,
        "state": replay_state(replay),
        "verdict": replay.verdict,
        "depth": row.depth,
        "parent_run_id": row.parent_run_id,
        "fork_id": replay.fork_id,
        "run_id": row.run.run_id if row.run else None,
        **_asked_of(replay),
        "outcome": row.outcome,
        "divergence": row.divergence,
        "steps": row.steps,
        "tokens": {"input": row.input_tokens, "output": row.output_tokens},
        "sources": row.sources,
        "created_at": moment(replay.created_at),
    }


def replay_state(replay: Replay) -> str:
    """That a worker has it but has not begun is nothing that a script has to know."""
    return ReplayState.RUNNING if replay.state == ReplayState.CLAIMED else replay.state


def changed_at(row: Run | Replay) -> str | None:
    """Known where a list was asked for what changed."""
    return moment(getattr(row, "changed_at", None))


def moment(value: datetime | None) -> str | None:
    return None if value is None else iso(value)
