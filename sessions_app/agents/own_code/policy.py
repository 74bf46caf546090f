"""What keeps the tools of the team's agent from running, while its own checks do run.

The capability stands outermost in the loop. Hooks and checks of the team's run as they are up to the place where the
tool itself would begin; there the recorded answer is given.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import SkipModelRequest, SkipToolExecution
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from sessions_app.agents.loop.frozen_tools import give_recorded
from sessions_app.agents.loop.library import dump_parameters
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.own_code.calls import OwnCalls
from sessions_app.agents.own_code.frozen_leaves import Bodies, Leaves
from sessions_app.agents.own_code.gate import BodyReached, Gate, calling, raw_arguments
from sessions_app.agents.own_code.outputs import OwnOutputs
from sessions_app.agents.own_code.stage import OwnStage
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
    ) -> None:
        self._model = model
        self._stage = stage
        self._gate = gate
        self._leaves = leaves
        self._calls = calls
        self._outputs = outputs

    def get_ordering(self) -> CapabilityOrdering | None:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: RunContext[Any]) -> FrozenPolicy:
        return self

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
            return list(ctx.messages), dump_parameters(request_context.model_request_parameters)

        self._stage.watch(look)
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
        try:
            return await handler(args)
        except Exception as refusal:
            self._calls.refused(call, refusal)
            raise

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        try:
            with calling(call):
                value = await handler(args)
        except BodyReached:
            pass
        except SkipToolExecution as skipped:
            self._calls.answered(call, skipped.result)
            raise
        except Exception as refusal:
            self._calls.refused(call, refusal)
            raise
        else:
            self._calls.answered(call, value)
            return value
        # A skipped execution counts as a call of the tool; that is what limits count.
        name, call_id, arguments = call.tool_name, call.tool_call_id, raw_arguments(call)
        refused = self._calls.was_refused_then
        raise SkipToolExecution(await give_recorded(self._stage, name, call_id, arguments, is_refused=refused))

    # --- output

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any
    ) -> JsonValue:
        """A function that makes the output is the team's tool in all but name."""
        if not output_context.has_function or self._gate.policy.run:
            return await handler(output)
        return output if ctx.partial_output else self._outputs.recorded(output_context)
