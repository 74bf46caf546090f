"""A tiny agent as a graph of steps, without a framework: each step emits an event, and the events are played again.

    python -m examples.minimal_agent_graph

The first half runs the agent with its real tool. The second half takes the same steps from the events alone: the tool
answers what was recorded, and every state must come out as it did. The run is also recorded by `replay_recorder`;
with REPLAY_URL and REPLAY_KEY set it is sent to that server.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import replay_recorder
from replay_recorder import record, recorded_tool, snapshot

State = dict[str, Any]
Tools = Mapping[str, Callable[..., Any]]
END = "end"

# --- events


@dataclass(frozen=True)
class ToolCall:
    name: str
    args: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class StepEvent:
    """All that one step saw, decided and did."""

    step_id: str
    input_state: State
    decision: str
    """The step that follows, or `END`."""
    tool: ToolCall | None
    output_state: State
    timestamp: str = field(compare=False)


def dump(events: list[StepEvent]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(asdict(event)) + "\n" for event in events)


def load(lines: str) -> list[StepEvent]:
    return [event_of(json.loads(line)) for line in lines.splitlines()]


def event_of(fields: dict[str, Any]) -> StepEvent:
    tool = fields["tool"] and ToolCall(**fields["tool"])
    return StepEvent(**{**fields, "tool": tool})


# --- the agent

Step = tuple[str, State, ToolCall | None]
"""The decision, what changes in the state, and the tool that was called."""


def plan(state: State, tools: Tools) -> Step:
    """Where a language model would decide."""
    return ("answer" if "docs" in state else "search"), {}, None


def search(state: State, tools: Tools) -> Step:
    args = {"query": state["question"]}
    found = tools["search_docs"](**args)
    return "plan", {"docs": found["docs"]}, ToolCall("search_docs", args, found)


def answer(state: State, tools: Tools) -> Step:
    said = state["docs"][0] if state["docs"] else "I don't have a document about this. Please ask our support team."
    return END, {"answer": said}, None


GRAPH: dict[str, Callable[[State, Tools], Step]] = {"plan": plan, "search": search, "answer": answer}


def take_step(step_id: str, state: State, tools: Tools) -> StepEvent:
    decision, changes, tool = GRAPH[step_id](state, tools)
    return StepEvent(step_id, state, decision, tool, {**state, **changes}, datetime.now().astimezone().isoformat())


class DocsAgent:
    """Answers questions from documents. `emit` gets the event of each step when the step is over."""

    def __init__(self, tools: Tools, emit: Callable[[StepEvent], None]) -> None:
        self.tools = tools
        self.emit = emit

    @record(name="docs_graph")
    def run(self, question: str) -> str:
        step_id, state = "plan", {"question": question}
        while step_id != END:
            event = take_step(step_id, state, self.tools)
            snapshot(step_id, decision=event.decision, **event.output_state)
            self.emit(event)
            step_id, state = event.decision, event.output_state
        return str(state["answer"])


@recorded_tool(kind="read")
def search_docs(query: str) -> dict[str, Any]:
    """Stands for a search service."""
    docs = [text for title, text in DOCS.items() if title in query.lower()]
    return {"docs": docs, "count": len(docs)}


DOCS = {"return": "Unused goods can be returned within 30 days.", "shipping": "Parcels leave within two days."}

# --- the replay


def replay(events: list[StepEvent]) -> list[StepEvent]:
    """Take every step again from the state that the last one left, with recorded answers of tools."""
    replayed: list[StepEvent] = []
    state = events[0].input_state
    for event in events:
        replayed.append(take_step(event.step_id, state, recorded_tools(event)))
        state = replayed[-1].output_state
    return replayed


def recorded_tools(event: StepEvent) -> Tools:
    called = event.tool
    return {} if called is None else {called.name: lambda **args: called.result}


def show(events: list[StepEvent]) -> None:
    for event in events:
        tool = f"{event.tool.name}({json.dumps(event.tool.args)})" if event.tool else "no tool"
        print(f"  {event.step_id:6} -> {event.decision:6}  {tool:50}  state: {', '.join(event.output_state)}")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="docs-graph-"))
    replay_recorder.install(spool=folder, agent_version="v1")
    events: list[StepEvent] = []
    said = DocsAgent({"search_docs": search_docs}, events.append).run("May I return my kettle?")
    stream = folder / "events.jsonl"
    stream.write_text(dump(events), encoding="utf-8")
    print("The run:")
    show(events)

    replayed = replay(load(stream.read_text(encoding="utf-8")))
    print("Its events, replayed without the tool:")
    show(replayed)
    print(f"{'The same states' if replayed == events else 'DIFFERENT STATES'}, and the same answer: {said}")
    print(f"Recorded: {whereabouts(folder)}")


def whereabouts(folder: Path) -> str:
    """Where the recording is now."""
    replay_recorder.flush()
    if replay_recorder.stats().get("delivered"):
        return "sent"
    newest = sorted(folder.glob("*/*.run"))[-1:]
    return " ".join(["replay-recorder inspect", *map(str, newest)])


if __name__ == "__main__":
    main()
