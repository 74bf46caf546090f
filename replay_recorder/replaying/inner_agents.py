"""Agents that ran as tools of another one: their answers are in recordings of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from replay_recorder.replaying.recording import Json, Recording, main_steps

Read = Callable[[str], Recording]
"""The recording of the run of this id. Raises `ValueError`, or `OSError`, where there is none."""


def inner_run_ids(record: Json) -> dict[str, str]:
    """The runs of agents that its tools were, by the id of their call."""
    calls = {index: step.get("call_id") for index, step in main_steps(record) if step["kind"] == "tool"}
    inner = (step for step in record.get("steps") or [] if step["kind"] == "agent" and step.get("run_id"))
    return {call_id: step["run_id"] for step in inner if (call_id := calls.get(step.get("parent") or 0))}


def read_inner(recording: Recording, read: Read) -> dict[str, Recording]:
    """Those that are to be had, by the id of their run."""
    found = {}
    for run_id in inner_run_ids(recording.record).values():
        try:
            found[run_id] = read(run_id)
        except (ValueError, OSError):
            continue
    return found


def by_call(recording: Recording, inner: Mapping[str, Recording], agent_tools: Iterable[Any]) -> dict[str, Recording]:
    """The recording behind each call of an agent as a tool. Raises `ValueError` for one that cannot be played."""
    names = {tool.name for tool in agent_tools if getattr(tool, "_is_agent_tool", False)}
    run_ids = inner_run_ids(recording.record)
    called = {call.call_id: call for call in recording.calls if call.name in names and call.call_id in run_ids}
    found = {}
    for call_id, call in called.items():
        assert call_id is not None
        lack = _lack(inner.get(run_ids[call_id]))
        if lack is not None:
            raise ValueError(
                f"Step {call.step}: {call.name} is an agent, and {lack}. Replay this run with frozen tools, and the "
                f"agent's own run, {run_ids[call_id]}, by itself."
            )
        found[call_id] = inner[run_ids[call_id]]
    return found


def _lack(recording: Recording | None) -> str | None:
    if recording is None:
        return "the recording of its own run is not there"
    if inner_run_ids(recording.record):
        return "its tools are agents, too"
    if any(step.http is not None and step.kind != "model" for step in recording.http_steps):
        return "its tools sent HTTP, which is answered in a replay of its own run alone"
    return None
