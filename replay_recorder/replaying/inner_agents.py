"""Agents that ran inside of the tools of another one: their answers are in recordings of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from replay_recorder.replaying.recording import Json, RecordedCall, Recording, main_steps

Read = Callable[[str], Recording]
"""The recording of the run of this id. Raises `ValueError`, or `OSError`, where there is none."""


def inner_run_ids(record: Json) -> dict[str, list[str]]:
    """The runs of agents inside of its tools, by the id of the tool's call and in the order in which they began."""
    calls = {index: step.get("call_id") for index, step in main_steps(record) if step["kind"] == "tool"}
    found: dict[str, list[str]] = defaultdict(list)
    for step in record.get("steps") or []:
        call_id = calls.get(step.get("parent") or 0)
        if step["kind"] == "agent" and step.get("run_id") and call_id:
            found[call_id].append(step["run_id"])
    return dict(found)


def read_inner(recording: Recording, read: Read) -> dict[str, Recording]:
    """Those that are to be had, by the id of their run."""
    found = {}
    for run_id in (each for run_ids in inner_run_ids(recording.record).values() for each in run_ids):
        try:
            found[run_id] = read(run_id)
        except (ValueError, OSError):
            continue
    return found


def by_call(recording: Recording, inner: Mapping[str, Recording]) -> dict[str, list[Recording]]:
    """The recordings behind each call of a tool that ran agents. Raises `ValueError` for one that cannot be played."""
    run_ids = inner_run_ids(recording.record)
    return {
        call.call_id: [_playable(call, inner.get(run_id), run_id) for run_id in run_ids[call.call_id]]
        for call in recording.calls
        if call.call_id in run_ids
    }


def _playable(call: RecordedCall, recording: Recording | None, run_id: str) -> Recording:
    lack = _lack(recording)
    if recording is None or lack is not None:
        raise ValueError(
            f"Step {call.step}: {call.name} runs an agent, and {lack}. Replay this run with frozen tools, and the "
            f"agent's own run, {run_id}, by itself."
        )
    return recording


def asked_inside(recording: Recording, call_id: str | None) -> str:
    """Why a replay ends where a model was asked in this call, or outside of all calls."""
    call = next((each for each in recording.calls if call_id is not None and each.call_id == call_id), None)
    if call is None:
        return "The agent's code asks a model outside of its own loop, and its answers are not in this recording."
    run_ids = inner_run_ids(recording.record).get(call.call_id or "", [])
    itself = f", and the agent's own run, {run_ids[0]}, by itself" if run_ids else ""
    return (
        f"Step {call.step}: {call.name} asks a model itself, and its answers are not in this recording. "
        f"Replay this run with frozen tools{itself}."
    )


def _lack(recording: Recording | None) -> str | None:
    if recording is None:
        return "the recording of its own run is missing"
    if inner_run_ids(recording.record):
        return "its tools run agents too"
    if any(step.http is not None and step.kind != "model" for step in recording.http_steps):
        return "its tools sent HTTP, which can only be answered in a replay of its own run"
    return None
