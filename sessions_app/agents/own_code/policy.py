"""What keeps the tools of the team's agent from running, while its own checks do run.

The capability stands outermost in the loop. Hooks and checks of the team's run as they are up to the place where the
tool itself would begin; there the recorded answer is given.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import CallDeferred, SkipModelRequest, SkipToolExecution, SkipToolValidation
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from replay_recorder.hooks.pydantic_ai_sent import sent_otherwise
from sessions_app.agents.loop.decisions import Decisions, decided_by_hand
from sessions_app.agents.loop.frozen_tools import give_recorded
from sessions_app.agents.loop.library import dump_parameters
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.own_code import provider_request
from sessions_app.agents.own_code.calls import OwnCalls
from sessions_app.agents.own_code.frozen_leaves import Bodies, Leaves
from sessions_app.agents.own_code.gate import Body, BodyReached, Gate, as_sent, calling, raw_arguments
from sessions_app.agents.own_code.hooks_behind import hooks_behind_tools
from sessions_app.agents.own_code.outputs import OwnOutputs
from sessions_app.agents.own_code.stage import OwnStage
from sessions_app.agents.own_code.turns import Turns
from sessions_app.core.payload import JsonObject, JsonValue


class FrozenPolicy(AbstractCapability[Any]):
    """One for each replay."""

    def __init__(
        self,
        model: ReplayModel,
        stage: OwnStage,
        gate: Gate,
        leaves: Leaves,
        calls: OwnCalls,
        outputs: OwnOutputs,
        turns: Turns,
        decisions: Decisions,
        *,
        is_of_spans: bool,
    ) -> None:
        self._model = model
        self._stage = stage
        self._gate = gate
        self._leaves = leaves
        self._calls = calls
        self._outputs = outputs
        self._turns = turns
        self._decisions = decisions
        self._is_of_spans = is_of_spans
        self.output: Any = None
        """What the run came to behind the team's hooks; a stream that is read does not tell."""

    def get_ordering(self) -> CapabilityOrdering | None:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: RunContext[Any]) -> FrozenPolicy:
        return self

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        result = await handler()
        self.output = result.output
        return result

    # --- the model

    def get_wrapper_model(self, model: Model[Any]) -> Model[Any] | None:
        """Whatever chose another model: here there is only this one."""
        self._stage.chose(model.model_name or None)
        return None if model is self._model else self._model

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        planned, asked, response = self._model.current, self._model.cursor, None

        def look() -> tuple[list[ModelMessage], JsonObject]:
            seen, parameters = list(ctx.messages), request_context.model_request_parameters
            if self._is_of_spans:
                return provider_request.as_sent(seen, parameters, planned)
            return seen, dump_parameters(parameters)

        self._stage.watch(look, lambda: sent_otherwise(request_context.messages, ctx.messages))
        try:
            response = cast(ModelResponse, await handler(request_context))
        except SkipModelRequest as skipped:
            response = skipped.response
            raise
        finally:
            self._stage.requested(planned, *look(), response)
            if response is not None and self._model.cursor == asked:
                self._model.cursor += 1  # the team's code answered in the place of this recorded request
        return response

    # --- tools

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return Bodies(self._leaves.closed(toolset), self._gate, self._leaves)

    async def wrap_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        call = as_sent(call, ctx)
        try:
            return await handler(args)
        except SkipToolValidation:
            raise  # a hook has its own arguments for the tool
        except Exception as refusal:
            with calling(call):
                self._calls.refused(call, refusal)
            raise

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        call = as_sent(call, ctx)
        with calling(call):
            return await self._execute(ctx, call, lambda: handler(args))

    async def _execute(self, ctx: RunContext[Any], call: ToolCallPart, run: Body) -> Any:
        then = self._turns.of(call)
        try:
            value = await run()
        except BodyReached:
            pass
        except SkipToolExecution as skipped:
            self._calls.answered(call, skipped.result)
            raise
        except Exception as refusal:
            await self._turns.before_error(then)
            self._calls.refused(call, refusal)
            raise
        else:
            await self._turns.before_answer(then)
            self._calls.answered(call, value)
            await self._turns.behind_answer(then)
            return value
        self._calls.hooks_not_run |= hooks_behind_tools(ctx, self)
        if self._put_off(call):
            raise CallDeferred
        self._calls.hold_back(ctx, call)
        # A skipped execution counts as a call of the tool; that is what limits count.
        name, call_id, arguments = call.tool_name, call.tool_call_id, raw_arguments(call)
        refused = self._calls.ended_before_tool
        raise SkipToolExecution(await give_recorded(self._stage, name, call_id, arguments, is_refused=refused))

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """What came from outside while the run went on comes as then, behind the calls beside it. What a fork decides
        otherwise is not asked of the team's code."""
        results = decided_by_hand(requests, self._decisions)
        for call in (as_sent(each, ctx) for each in requests.calls):
            if not self._gate.may_run(call) and self._put_off(call):
                answer = await give_recorded(self._stage, call.tool_name, call.tool_call_id, raw_arguments(call))
                results.calls[call.tool_call_id] = answer
        return results if results.calls or results.approvals else None

    def _put_off(self, call: ToolCallPart) -> bool:
        recorded = self._calls.recorded(call)
        return recorded is not None and recorded.was_put_off

    # --- output

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any
    ) -> JsonValue:
        """A function that makes the output is the team's tool in all but name."""
        if not output_context.has_function:
            return await handler(output)
        if self._gate.policy.run:
            return await self._outputs.made_now(ctx, output_context, lambda: handler(output))
        return output if ctx.partial_output else self._outputs.recorded(output_context)
