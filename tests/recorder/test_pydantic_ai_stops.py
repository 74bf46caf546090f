"""Runs of Pydantic AI that are stopped, killed, or never begin."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from replay_recorder.hooks import pydantic_ai_run
from replay_recorder.writing.assembly import assemble
from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import ModelCall, Run, ToolCall, answered
from tests.recorder.recordings import only_run_of, records_of, runs_of, value

LONG = 30.0
"""Seconds; nobody waits for it."""


def stopped(agent: Agent[Any, Any]) -> Run:
    async def work() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent.run("Go"), 0.3)

    return only_run_of(lambda: asyncio.run(work()))


def test_a_request_that_is_stopped_says_what_was_asked():
    async def never(*_: Any) -> ModelResponse:
        await asyncio.sleep(LONG)
        raise AssertionError

    run = stopped(Agent(FunctionModel(never)))

    (step,) = run.steps
    assert isinstance(step.call, ModelCall)
    assert run.status == "cut_off"
    assert step.call.history is not None
    assert step.call.settings is not None
    assert (step.duration_ms or 0) >= 200
    assert step.error is not None
    assert step.error.type == "CancelledError"


def test_a_tool_that_is_stopped_says_so():
    agent = Agent(FunctionModel(lambda *_: ModelResponse(parts=[ToolCallPart("look", {}, "c1")])))

    @agent.tool_plain
    async def look() -> None:
        await asyncio.sleep(LONG)

    _, step = stopped(agent).steps

    assert isinstance(step.call, ToolCall)
    assert step.call.outcome == "interrupted"
    assert (step.duration_ms or 0) >= 200


def test_a_run_inside_that_is_stopped_ends_its_step():
    async def never(*_: Any) -> ModelResponse:
        await asyncio.sleep(LONG)
        raise AssertionError

    inner = Agent(FunctionModel(never), name="inner")
    outer = Agent(FunctionModel(lambda *_: ModelResponse(parts=[ToolCallPart("ask", {}, "c1")])), name="outer")

    @outer.tool_plain
    async def ask() -> str:
        return (await inner.run("inner")).output

    async def work() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(outer.run("Go"), 0.3)

    runs = {run.agent.name: run for run in runs_of(lambda: asyncio.run(work())) if run.agent is not None}

    step = runs["outer"].steps[-1]
    assert (step.kind, step.name) == ("agent", "inner")
    assert (step.duration_ms or 0) >= 200
    assert step.error is not None
    assert runs["inner"].status == "cut_off"


KILLED = """
import asyncio, os, signal, sys
import replay_recorder
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

async def work():
    agent = Agent(FunctionModel(lambda *_: ModelResponse(parts=[ToolCallPart("look", {"a": 1}, "c1")])))
    agent.tool_plain(lambda a: a, name="look")
    async with agent.iter("Go") as run:
        async for node in run:
            if Agent.is_call_tools_node(node):
                # The answer is there, and the team looks at it before the loop goes on.
                os.kill(os.getpid(), signal.SIGKILL)

replay_recorder.install(spool=sys.argv[1])
asyncio.run(work())
"""


def test_an_answer_is_on_the_disk_before_the_loop_goes_on(tmp_path: Path):
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=LONG).returncode == -9

    (path,) = (tmp_path / "open").iterdir()
    model, tool = parse_native(assemble(path.read_bytes())).steps
    assert answered(model) is not None
    assert isinstance(tool.call, ToolCall)
    assert (tool.name, tool.call.call_id, tool.call.outcome) == ("look", "c1", None)


def test_an_answer_that_the_team_edits_before_it_is_taken_up_is_recorded_as_it_was_taken_up():
    answers: Any = iter([ToolCallPart("look", {"a": 1}, "c1"), TextPart("Done.")])
    agent = Agent(FunctionModel(lambda *_: ModelResponse(parts=[next(answers)])))

    @agent.tool_plain
    def look(a: int) -> int:
        return a

    async def work() -> None:
        async with agent.iter("Go") as run:
            async for node in run:
                if Agent.is_call_tools_node(node):
                    for part in node.model_response.parts:
                        edit(part)
                    node.model_response.usage.input_tokens = 999

    def edit(part: Any) -> None:
        if isinstance(part, ToolCallPart):
            part.args = {"a": 77}
        else:
            part.content = "Edited."

    model, tool, last = only_run_of(lambda: asyncio.run(work())).steps

    assert value(answered(model))["parts"][0]["args"] == {"a": 77}
    assert value(answered(model))["usage"]["input_tokens"] == 999
    assert isinstance(tool.call, ToolCall)
    assert (value(tool.call.arguments), value(tool.call.result)) == ({"a": 77}, 77)
    assert value(answered(last))["parts"][0]["content"] == "Edited."


class Cached(AbstractCapability[Any]):
    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return ModelResponse(parts=[TextPart("cached")])


def test_an_answer_from_a_cache_keeps_its_stamps_in_a_stream():
    agent = Agent(FunctionModel(lambda *_: ModelResponse(parts=[TextPart("Done.")])), capabilities=[Cached()])

    async def work() -> None:
        async with agent.run_stream("Go") as stream:
            assert await stream.get_output() == "cached"

    found = only_run_of(lambda: asyncio.run(work()))

    assert value(answered(found.steps[0]))["run_id"] == found.run_id


class Refuses(AbstractCapability[Any]):
    async def for_run(self, ctx: Any) -> Any:
        raise RuntimeError


def test_a_run_that_never_begins_is_not_left_open():
    agent = Agent(FunctionModel(lambda *_: ModelResponse(parts=[TextPart("Done.")])))

    def work() -> None:
        with pytest.raises(RuntimeError):
            asyncio.run(agent.run("Go", capabilities=[Refuses()]))
        asyncio.run(agent.run("Go"))

    before = set(pydantic_ai_run._open_runs)

    assert len(records_of(work)) == 1
    assert set(pydantic_ai_run._open_runs) == before


@pytest.mark.parametrize(("error", "status"), [(SystemExit(3), "error"), (KeyboardInterrupt(), "cut_off")])
def test_what_a_tool_raises_to_end_the_process_is_what_the_run_ended_with(error: BaseException, status: str):
    agent = Agent(FunctionModel(lambda *_: ModelResponse(parts=[ToolCallPart("leave", {}, "c1")])))

    @agent.tool_plain
    async def leave() -> None:
        raise error

    def work() -> None:
        with pytest.raises(type(error)):
            asyncio.run(agent.run("Go"))

    run = only_run_of(work)
    assert run.error is not None
    assert (run.status, run.error.type) == (status, type(error).__name__)


def test_code_around_the_loop_that_fails_before_the_tools_leaves_them_open():
    agent = Agent(FunctionModel(lambda *_: ModelResponse(parts=[ToolCallPart("look", {}, "c1")])))

    @agent.tool_plain
    def look() -> str:
        raise AssertionError

    async def work() -> None:
        async with agent.iter("Go") as run:
            async for node in run:
                if Agent.is_call_tools_node(node):
                    raise LookupError("no such node")

    def fails() -> None:
        with pytest.raises(LookupError):
            asyncio.run(work())

    verdict = judge(only_run_of(fails))
    assert (verdict.verdict, verdict.step) == ("replayable_to_step", 1)
