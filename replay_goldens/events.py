"""A run as events, one for each step: what tests of intermediate states look at.

from replay_goldens.events import events_beside

load_events = events_beside(__file__)      # the exported goldens in the folder of this file

def test_empty_docs_no_loop():
    events = load_events("run_xyz789")     # what the agent of today does in that scene
    assert sum(event.tool_name == "search_docs" for event in events) <= 3
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay_goldens.playing import golden_of, played_record
from replay_goldens.records import Record
from replay_goldens.states import states_behind
from replay_goldens.trace import Json
from replay_goldens.values import parsed
from replay_recorder.replaying.recording import main_steps, plain_value
from replay_recorder.state import AUTOMATIC


@dataclass(frozen=True, kw_only=True)
class StepEvent:
    """One step of the agent. A call of a tool is one, together with the model's decision for it."""

    step_id: str
    """`step_0`, `step_1` …"""
    input_state: Json
    decision: str | None
    """The tool that was chosen, `answer`, or the name of the step."""
    tool_name: str | None
    tool_args: Json
    tool_result: Json
    output_state: Json
    """At the end it has the answer of the run as `answer`, where the agent's own state has none."""
    timestamp: str | None


def events_beside(file: str | Path) -> Callable[[str], list[StepEvent]]:
    """A `load_events` for the exported goldens in the folder of this file: it plays the scene with the agent of today,
    which is `--golden-agent`, GOLDEN_AGENT, or the one that the golden names."""
    return lambda run_id: load_events(run_id, file)


def load_events(run_id: str, folder: str | Path = ".", *, agent: str | None = None) -> list[StepEvent]:
    """What the agent of today does in the scene of this run. Raises `LookupError` where no golden has it, else as
    `play`."""
    return events_of(played_record(golden_of(run_id, folder), agent=agent))


def events_of(record: Record) -> list[StepEvent]:
    """Of a native record. Raises `StateBroken`."""
    steps = record.get("steps") or []
    initial = plain_value(record.get("initial_state"))
    states = [initial, *states_behind(initial, steps)]
    shown = [(index, step) for index, step in main_steps(record) if _is_event(step)]
    ends = [index - 1 for index, _ in shown[1:]] + [len(steps)]
    befores = [0, *ends]
    return list(_events(record, shown, [states[at] for at in befores], [states[at] for at in ends]))


def _is_event(step: dict[str, Any]) -> bool:
    if step["kind"] == "model":
        return not _asks_for_tools(plain_value(step.get("response")))
    return step.get("name") != AUTOMATIC


def _asks_for_tools(response: Json) -> bool:
    """Its calls are events of their own. Items of the OpenAI Agents SDK are read as parts are."""
    parts = response if isinstance(response, list) else (response or {}).get("parts") or (response or {}).get("output")
    kinds = {str(part.get("part_kind") or part.get("type")) for part in parts or () if isinstance(part, dict)}
    return bool(kinds & {"tool-call", "function_call"})


def _events(
    record: Record, shown: list[tuple[int, dict[str, Any]]], befores: list[Json], afters: list[Json]
) -> Iterator[StepEvent]:
    for number, (_, step) in enumerate(shown):
        is_last = number == len(shown) - 1
        tool = (step.get("tool_name") or step.get("name")) if step["kind"] == "tool" else None
        yield StepEvent(
            step_id=f"step_{number}",
            input_state=befores[number],
            decision=tool or ("answer" if step["kind"] == "model" else step.get("name")),
            tool_name=tool,
            tool_args=parsed(plain_value(step.get("arguments"))),
            tool_result=parsed(plain_value(step.get("result"))),
            output_state=_with_answer(afters[number], record) if is_last else afters[number],
            timestamp=step.get("started_at"),
        )


def _with_answer(state: Json, record: Record) -> Json:
    output = plain_value(record.get("output"))
    is_told = state is not None and (not isinstance(state, dict) or "answer" in state)
    return state if is_told or output is None else {**(state or {}), "answer": output}
