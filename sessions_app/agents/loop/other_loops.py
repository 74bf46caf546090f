"""Recordings of other loops than Pydantic AI's, replayed in Pydantic AI's."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ModelRequest, ToolAvailabilityDeltaPart, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext, ToolDefinition

from sessions_app.agents.loop.frozen_tools import RawArguments, said_in
from sessions_app.agents.loop.observer import Observer


class UntoldToolsObserver(Observer):
    """Of loops that offer a model new tools and tell it of them in no message."""

    async def prepare_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The offered tools are compared as they are; only Pydantic AI also tells the model which of them are new, as
        when another agent took over."""
        for message in (ctx.messages[-1], request_context.messages[-1]):
            if isinstance(message, ModelRequest):
                message.parts = [part for part in message.parts if not isinstance(part, ToolAvailabilityDeltaPart)]
        return request_context


class OtherLoopObserver(UntoldToolsObserver):
    """Takes out what Pydantic AI alone writes into a request; what is left to differ is what was recorded."""

    async def wrap_tool_validate(
        self, ctx: RunContext[None], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """Others hand on whatever the model sent, or refuse it in words of their own; what came of it was recorded.
        The reader of JSON that Pydantic AI has refuses what lies deeper than 200 levels."""
        said = said_in(call.args)
        if said not in (None, "") and not isinstance(said, dict):
            return RawArguments(said)
        read = said if isinstance(said, dict) else args
        return await super().wrap_tool_validate(ctx, call=call, tool_def=tool_def, args=read, handler=handler)
