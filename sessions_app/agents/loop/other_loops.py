"""Recordings of other loops than Pydantic AI's, replayed in Pydantic AI's."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext, ToolDefinition

from sessions_app.agents.loop.frozen_tools import RawArguments, said_in
from sessions_app.agents.loop.library import load_messages
from sessions_app.agents.loop.observer import Observer
from sessions_app.core.history import messages
from sessions_app.core.replay.awaited import told_as
from sessions_app.core.replay.new_tools import found_by_search


class UntoldToolsObserver(Observer):
    """Of loops that offer a model new tools and tell it of them in no message."""

    async def prepare_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The offered tools are compared as they are; only Pydantic AI also tells the model which of them are new, as
        when another agent took over."""
        for message in (ctx.messages[-1], request_context.messages[-1]):
            if isinstance(message, ModelRequest):
                message.parts = [told for part in message.parts if (told := self._as_told(part)) is not None]
        return request_context

    def _as_told(self, part: ModelRequestPart) -> ModelRequestPart | None:
        return None if isinstance(part, ToolAvailabilityDeltaPart) else part


class FoundToolsObserver(UntoldToolsObserver):
    """Of spans of Pydantic AI's loop, which do not say that a tool was hidden until a search found it: the search's
    answer tells the model of it, and no message does."""

    def _as_told(self, part: ModelRequestPart) -> ModelRequestPart | None:
        if not isinstance(part, ToolAvailabilityDeltaPart):
            return part
        added = [name for name in part.tools_added if name not in self._found]
        return replace(part, tools_added=added) if added else None

    @cached_property
    def _found(self) -> frozenset[str]:
        return found_by_search(self._run)


class OtherLoopObserver(UntoldToolsObserver):
    """Takes out what Pydantic AI alone writes into a request; what is left to differ is what was recorded."""

    _is_told = False
    _prior = None

    async def before_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        _part_answers(ctx.messages, self._answers_in_a_row)
        _put_in_order(ctx.messages[-1], self._places)
        request_context.messages[:] = ctx.messages
        return await super().before_model_request(ctx, request_context)

    @cached_property
    def _places(self) -> dict[str | None, int]:
        """Where the model was told of calls, by their ids, where that was not in the order in which it asked."""
        calls = self._run.tool_calls
        return {call.call_id: place for step, call in calls if (place := told_as(step)) is not None}

    @cached_property
    def _answers_in_a_row(self) -> list[ModelMessage]:
        """Earlier turns in which one answer follows another."""
        prior = load_messages(messages(self._run.prior))
        kinds = [message.kind for message in prior]
        return prior if ("response", "response") in pairwise(kinds) else []

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


def _put_in_order(newest: ModelMessage, places: dict[str | None, int]) -> None:
    """Pydantic AI tells of calls in the order in which the model asked for them."""
    if isinstance(newest, ModelRequest) and places:
        told = [part for part in newest.parts if isinstance(part, ToolReturnPart)]
        told.sort(key=lambda part: places.get(part.tool_call_id, 0))
        newest.parts = [*told, *(part for part in newest.parts if not isinstance(part, ToolReturnPart))]


def _part_answers(seen: list[ModelMessage], prior: list[ModelMessage]) -> None:
    """Pydantic AI joins answers that follow each other."""
    for at, (said, after) in enumerate(pairwise(prior)):
        joined = seen[at] if at < len(seen) else None
        if not isinstance(said, ModelResponse) or not isinstance(after, ModelResponse):
            continue
        if isinstance(joined, ModelResponse) and joined.parts[: len(said.parts)] == said.parts != joined.parts:
            seen[at : at + 1] = [
                replace(joined, parts=said.parts),
                replace(after, parts=joined.parts[len(said.parts) :]),
            ]
