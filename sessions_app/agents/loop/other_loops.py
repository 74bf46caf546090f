"""Recordings of other loops than Pydantic AI's, replayed in Pydantic AI's."""

from __future__ import annotations

from pydantic_ai.messages import ModelRequest, ToolAvailabilityDeltaPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from sessions_app.agents.loop.observer import Observer


class OtherLoopObserver(Observer):
    """Takes out what Pydantic AI alone writes into a request; what is left to differ is what was recorded."""

    async def prepare_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The offered tools are compared as they are; only Pydantic AI also tells the model which of them are new, as
        when another agent took over."""
        for message in (ctx.messages[-1], request_context.messages[-1]):
            if isinstance(message, ModelRequest):
                message.parts = [part for part in message.parts if not isinstance(part, ToolAvailabilityDeltaPart)]
        return request_context
