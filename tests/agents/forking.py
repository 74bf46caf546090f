"""Forks in this process, as the child makes them, with answers from elsewhere given by the test."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessions_app.agents.loop.replaying import fork
from sessions_app.core.fork.answering import ModelAsk
from sessions_app.core.fork.instructions import Instructions
from sessions_app.core.fork.order import read_course, read_order
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.history import History, messages
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import ModelCall, Run, Step, answered

REFUSAL = "I don't have any documents about refund policy. Please check with support."
IN_WORDS = {"hypothesis": "a test", "expect": "something"}


@dataclass
class Elsewhere:
    """Other runs of the project: answers by key of the request, and by tool and arguments."""

    models: dict[str, JsonObject] = field(default_factory=dict)
    tools: list[tuple[str, JsonValue, JsonObject]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def model_answer(self, key: str) -> JsonObject | None:
        self.asked.append("model")
        return self.models.get(key)

    def tool_answer(self, name: str, arguments: JsonValue) -> JsonObject | None:
        self.asked.append(name)
        return next((found for tool, args, found in self.tools if (tool, args) == (name, arguments)), None)

    def live_answer(self, ask: ModelAsk) -> JsonObject:
        raise AssertionError("only samplings ask a live model")


class StepsOf:
    """The recorded steps of a run, as the forecast of a fork reads them."""

    def __init__(self, run: Run) -> None:
        self.status, self.model, self.replayable_to = run.status, run.model, judge(run).step
        self.is_text_final = run.agent.entry_point == "run_stream"
        self._run, self._instructions = run, Instructions()

    def step(self, index: int) -> Step:
        return self._run.steps[index - 1]

    def instructions(self, index: int) -> str | None:
        history = self._history(index)
        return None if history is None else self._instructions.of(history)

    def message(self, index: int, position: int) -> JsonValue:
        listed = messages(self._history(index))
        return listed[position].value if position < len(listed) else None

    def _history(self, index: int) -> History | None:
        call = self._run.steps[index - 1].call
        return call.history if isinstance(call, ModelCall) else None


def example(name: str) -> Run:
    return parse_document(Path(f"sessions_app/examples/{name}.json").read_bytes())


def forked(
    run: Run, at: int | str, *changes: JsonObject, answers: list[JsonObject] | None = None, **more: Any
) -> tuple[Result, Any]:
    """The result, and the run that the fork made or None, through the record format as it crosses from the child."""
    elsewhere = more.pop("elsewhere", None) or Elsewhere()
    course = {"answers": answers or [], **more.pop("course", {})}
    order = read_order({"at_step": at, "changes": list(changes), **IN_WORDS, **more})
    result, record = asyncio.run(
        fork(
            encode_native(run),
            f"{run.run_id}_fork_00000000",
            order,
            read_course(course),
            elsewhere=elsewhere,
            on_progress=lambda done, total: None,
        )
    )
    return result, parse_native(record) if record else None


def sources(run: Run | None) -> list[str]:
    assert run is not None
    return [step.source for step in run.steps if step.kind in ("model", "tool")]


def answer_of(run: Run | None, index: int) -> JsonValue:
    """What was answered at a step."""
    assert run is not None
    found = answered(run.steps[index - 1])
    return None if found is None else found.parsed


def outcome(run: Run | None) -> tuple[str, str | None]:
    assert run is not None
    return run.status, run.output.as_text() if run.output else None
