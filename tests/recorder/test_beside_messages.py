"""What a record holds beside its messages and a replay does not read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturn
from pydantic_ai.models.function import AgentInfo, FunctionModel

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.playing import record_of

PICTURE = BinaryContent(b"png", media_type="image/png")
FOUND = [{"id": "k1", "score": 0.5, "content": "Refunds take 30 days."}, {"id": 2, "text": "No refunds."}]


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    call = ToolCallPart("look", {"what": "refunds"}, "c1")
    return ModelResponse(parts=[call if len(messages) == 1 else TextPart("In 30 days.")])


def record() -> dict[str, Any]:
    agent = Agent(FunctionModel(answer), name="looking")

    @agent.tool_plain
    def look(what: str) -> ToolReturn:
        return ToolReturn("two", content=["See:", PICTURE], metadata={"chunks": FOUND})

    async def work() -> None:
        await agent.run(["What is this?", PICTURE])

    made: dict[str, Any] = json.loads(record_of(work)[-1])
    return made


def step_of(made: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(step for step in made["steps"] if step["kind"] == kind)


def reasons_of(made: dict[str, Any]) -> list[tuple[str, int | None]]:
    return [(reason.code, reason.step) for reason in judge(parse_native(json.dumps(made).encode())).reasons]


def test_a_record_as_it_was_made_contradicts_nothing():
    made = record()

    assert reasons_of(made) == []
    assert [step["kind"] for step in made["steps"]] == ["model", "tool", "retrieval", "model"]


Change = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda made: made["input"][1].update(zz=1), ("input_contradicts", 1)),
        (lambda made: step_of(made, "tool")["content"][1].update(zz=1), ("answer_contradicted", 2)),
        (lambda made: step_of(made, "retrieval")["chunks"][0].update(content="LIES"), ("answer_contradicted", 3)),
        (lambda made: step_of(made, "retrieval")["chunks"][0].update(score=0.75), ("answer_contradicted", 3)),
        (lambda made: step_of(made, "retrieval")["chunks"][1].update(id="k9"), ("answer_contradicted", 3)),
        (lambda made: step_of(made, "retrieval")["chunks"].pop(), ("answer_contradicted", 3)),
    ],
    ids=["a field of the input", "a field of a tool's file", "words", "score", "id", "one less"],
)
def test_what_is_told_otherwise_beside_the_messages_is_judged(change: Change, reason: tuple[str, int]):
    made = record()
    change(made)

    assert reasons_of(made) == [reason]
