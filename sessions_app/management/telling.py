"""Replays in words for a terminal. Recorded text cannot steer it: each line is made printable."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sessions_app import models
from sessions_app.core.clipping import clipped
from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.fork.expected_words import met_in_words
from sessions_app.core.history import History, messages
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run
from sessions_app.core.state import state_after
from sessions_app.mapping.load import load_run, load_steps
from sessions_app.models import Replay
from sessions_app.models.replays import FORK_MODES, ReplayState
from sessions_app.queries.forks import expectation_words
from sessions_app.services.reports import report_of

SHOWN = 200


def printable(text: str) -> str:
    """Recorded text could otherwise steer the terminal."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def short(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clipped(text, SHOWN)


# --- where it waits ----------------------------------------------------------------------------


def stop_lines(replay: Replay) -> Iterator[str]:
    """What it waits for, and the recorded calls that come nearest."""
    stopped: JsonObject = replay.stopped_at or {}
    call = f"{stopped['name']}({short(stopped.get('arguments'))})" if stopped["kind"] == "tool" else "the model"
    if stopped["why"] == "unknown":
        answer = f"the answer of {call}" if stopped["kind"] == "tool" else "the model's answer"
        yield f"stopped at step {stopped['step']}: {answer} is unknown"
    else:
        words = stopped.get("breakpoint") or "one step"
        yield f"paused before step {stopped['step']}: {call}  ({words})"
    sent = (replay.facts.get("asked_for") or {}).get("http")
    if sent is not None:
        yield f"  it sent {sent['method']} {sent['url']}: {sent['reason']}"
    for near in stopped.get("nearest") or []:
        differs = ", ".join(near.get("differs") or []) or "nothing"
        yield f"  like {near['run_id']}#{near['step']}: {short(near.get('arguments'))}  (differs: {differs})"


def shown(replay: Replay, what: str) -> Iterator[str]:
    """Arguments, messages and state at a stop; all of them in short, or one of them whole."""
    stopped: JsonObject = replay.stopped_at or {}
    made = load_run(replay.produced_run) if replay.produced_run else None
    values: dict[str, JsonValue] = {
        "messages": [message.value for message in messages(_history(made))] if made else [],
        "state": _state(replay, made),
    }
    if stopped["kind"] == "tool":
        values["arguments"] = stopped.get("arguments")
    if what in values:
        yield from json.dumps(values[what], ensure_ascii=False, indent=2).splitlines()
        return
    if what:
        yield f"There is no {what!r} to show here; there are: {', '.join(sorted(values))}."
        return
    if "arguments" in values:
        yield f"arguments  {short(values['arguments'])}"
    for position, message in enumerate(values["messages"]):
        yield f"message {position}  {message.get('kind')}  {short(message.get('parts'))}"
    yield f"state  {short(values['state'])}"


def _state(replay: Replay, made: Run | None) -> JsonValue:
    """Only forks change it; what a replay makes without a change holds no state of its own."""
    if replay.mode in FORK_MODES:
        return state_after(made, len(made.steps)) if made else None
    states = load_steps(replay.run_as_asked, after=(replay.stopped_at or {})["step"] - 1, limit=1)[1]
    return states[0][0] if states else None


def _history(run: Run | None) -> History | None:
    """The newest messages of a run as far as it has come."""
    if run is None:
        return None
    return run.final or next((call.output_history for _, call in reversed(run.model_calls)), None)


# --- its end -----------------------------------------------------------------------------------


def outcome_lines(replay: Replay) -> Iterator[str]:
    """Where each step's answer came from, what was expected, how it ended."""
    made = replay.produced_run
    if made is not None:
        for step in made.steps:
            yield f"{step.index:>5}  {step.kind:<9}  {step.source:<9}  {step.name}"
    yield replay.state if replay.verdict in (None, replay.state) else f"{replay.state}: {replay.verdict}"
    if words := _report_words(replay):
        yield words
    if replay.state == ReplayState.DONE and not replay.waits_for_answer:
        yield from _ending(replay, made)
    yield from live_lines(replay)


def _report_words(replay: Replay) -> str | None:
    """The sentence of the report, so that no two places say different things."""
    try:
        return report_of(replay).verdict
    except StoredBytesMissing as error:
        return replay.error or str(error)


def _ending(replay: Replay, made: models.Run | None) -> Iterator[str]:
    """Of what has ended; a fork that waits for an answer has not."""
    if words := expectation_words(replay):
        yield f"expected: {words}: {met_in_words(replay.expectation_met, replay.unproven_source)}"
    if made is not None:
        outcome = made.output_preview or made.error_preview
        yield f"ended with: {short(outcome)}" if outcome else "ended without an outcome"


def live_lines(replay: Replay) -> Iterator[str]:
    """What became of each tool that was asked for live: how often it ran, or why it did not."""
    asked: list[str] = (replay.order.get("tools") or {}).get("live") or []
    ran: JsonObject = replay.facts.get("live_tools") or {}
    reasons: list[str] = replay.facts.get("lint") or []
    for name in asked:
        reason = next((words for words in reasons if words.startswith(f"{name} ")), None)
        if name in ran:
            yield f"live: {name} ran {ran[name]} {'time' if ran[name] == 1 else 'times'}"
        else:
            yield f"live: {reason or f'{name} did not run: no call reached it.'}"
    for drift in replay.facts.get("drift") or []:
        yield f"live: {drift['tool']} answers differently now, at step {drift['step']}: {drift['path']}"
