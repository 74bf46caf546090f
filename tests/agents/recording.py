"""A small recorder for tests: runs a real agent and writes down what a full recording holds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import Agent, capture_run_messages
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.tools import DeferredToolRequests
from pydantic_core import to_json

from sessions_app.agents.library import dump_message, dump_parameters
from sessions_app.core.formats.conversation import _mark_output_calls, _Walk, read_messages
from sessions_app.core.history import extend
from sessions_app.core.payload import Payload
from sessions_app.core.run import AgentInfo, ErrorInfo, ModelCall, Run, Step, ToolCall

STARTED = datetime(2026, 11, 17, 15, 14, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Request:
    messages: list[dict[str, Any]]
    parameters: dict[str, Any]
    response: dict[str, Any] | None
    error: ErrorInfo | None


@dataclass
class Recorder(AbstractCapability[Any]):
    """Canonical history and parameters of each request, arguments and answer of each tool call."""

    requests: list[Request] = field(default_factory=list)
    budgets: dict[str, int] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: Any) -> Recorder:
        return self

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        response, error = None, None
        try:
            response = await handler(request_context)
        except Exception as raised:
            error = ErrorInfo(type=type(raised).__name__, message=str(raised))
            raise
        finally:
            request = Request(
                messages=[dump_message(message) for message in ctx.messages],
                parameters=dump_parameters(request_context.model_request_parameters),
                response=dump_message(response) if response else None,
                error=error,
            )
            self.requests.append(request)
        return response

    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        self.budgets[tool_def.name] = ctx.max_retries
        return await handler(args)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        self.results[call.tool_call_id] = result = await handler(args)
        return result


def record(agent: Agent[Any, Any], prompt: Any, *, stream: bool = False, **arguments: Any) -> Run:
    """Run the agent and return what a recorder would have sent."""
    recorder = Recorder()
    output, error = None, None
    with capture_run_messages() as captured:
        try:
            run = _streamed if stream else _run
            output = asyncio.run(run(agent, prompt, capabilities=[recorder], **arguments))
        except Exception as raised:
            error = ErrorInfo(type=type(raised).__name__, message=str(raised))
    final = [Payload.of_json(dump_message(message)) for message in captured]
    walk = _walk(recorder, final, arguments.get("message_history") or [])
    waiting = isinstance(output, DeferredToolRequests)
    return Run(
        run_id="run",
        session_id="session",
        status="error" if error else "cut_off" if waiting else "ok",
        started_at=STARTED,
        input=_input(prompt),
        output=None if error or waiting else _payload(output),
        error=error,
        agent=AgentInfo(
            name="agent",
            framework="pydantic-ai",
            end_strategy=agent.end_strategy,
            entry_point="run_stream" if stream else "run",
            tool_retries=recorder.budgets or None,
        ),
        prior=extend(None, [m.payload for m in walk.prior]),
        deferred=walk.deferred_results(),
        steps=_mark_output_calls([_finished(step, error, recorder.results) for step in walk.steps]),
        final=extend(None, final),
    )


async def _run(agent: Agent[Any, Any], prompt: Any, **arguments: Any) -> Any:
    return (await agent.run(prompt, **arguments)).output


async def _streamed(agent: Agent[Any, Any], prompt: Any, **arguments: Any) -> Any:
    async with agent.run_stream(prompt, **arguments) as run:
        return await run.get_output()


def _walk(recorder: Recorder, final: list[Payload], history: list[Any]) -> _Walk:
    """The log of what happened, request by request; a rewritten history would have lost some of it."""
    walk = _Walk(read_messages([Payload.of_json(dump_message(message)) for message in history]))
    for request in recorder.requests:
        messages = [Payload.of_json(message) for message in request.messages]
        walk.take(read_messages(messages)[-1])
        before = extend(None, messages)
        if request.response is None:
            call = ModelCall(history=before, response=None)
            walk.steps.append(Step(index=len(walk.steps) + 1, name="model", call=call, error=request.error))
        else:
            walk.take(read_messages([Payload.of_json(request.response)])[0])
        _put_request(walk, before, request.parameters)
    if final and final[-1].value["kind"] == "request" and recorder.requests[-1].response is not None:
        walk.take(read_messages([final[-1]])[0])
    return walk


def _put_request(walk: _Walk, before: Any, parameters: dict[str, Any]) -> None:
    position = max(i for i, step in enumerate(walk.steps) if isinstance(step.call, ModelCall))
    tools = tuple(Payload.of_json(tool) for tool in parameters["function_tools"])
    step = walk.steps[position]
    assert isinstance(step.call, ModelCall)
    call = replace(step.call, history=before, parameters=Payload.of_json(parameters), tools=tools)
    walk.steps[position] = replace(step, call=call, started_at=STARTED, duration_ms=None)


def _finished(step: Step, error: ErrorInfo | None, results: dict[str, Any]) -> Step:
    """A crash with its exception, and answers that came too late for the history."""
    if not isinstance(step.call, ToolCall):
        return step
    if step.call.outcome is None and step.call.call_id in results:
        late = Payload.of_json(results[step.call.call_id])
        return replace(step, call=replace(step.call, result=late, outcome="success"))
    return replace(step, error=error) if step.call.outcome == "crashed" else step


def _input(prompt: Any) -> Payload | None:
    if prompt is None or isinstance(prompt, str):
        return None if prompt is None else Payload.of_text(prompt)
    return Payload(content=to_json(prompt))


def _payload(output: Any) -> Payload:
    return Payload.of_text(output) if isinstance(output, str) else Payload(content=to_json(output))
