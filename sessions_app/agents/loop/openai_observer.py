"""Where the loop of the OpenAI Agents SDK goes another way than Pydantic AI's, though both do what the model asks.

Its recordings are replayed in Pydantic AI's loop. What only the SDK does is put in place here, so that what is left to
differ is what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from sessions_app.agents.loop.library import load_messages, load_parameters
from sessions_app.agents.loop.other_loops import OtherLoopObserver
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.loop.stage import Stage
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.core.history import messages
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.fixture_book import FixtureBook
from sessions_app.core.replay.hand_overs import asks_in_several_ways, handoff_calls, output_modes
from sessions_app.core.replay.matching import ONLY_SENT
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan


class OpenAIObserver(OtherLoopObserver):
    """For recordings of the OpenAI Agents SDK."""

    def __init__(
        self, plan: ReplayPlan, model: ReplayModel, stage: Stage, transcript: Transcript, book: FixtureBook
    ) -> None:
        super().__init__(plan, model, stage, transcript, book)
        self._handoffs = handoff_calls(plan.run)
        self._modes = output_modes(plan.answers) if asks_in_several_ways(plan.run, plan.answers) else {}
        self._merged: tuple[JsonObject, JsonObject, JsonObject] | None = None
        """What the loop made, what was recorded, and both together."""

    async def before_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        planned = self._model.current
        if planned is not None and self._model.cursor == 0:
            self._put_back_answers_without_calls(ctx, planned)
        self._put_handoffs_last(ctx.messages[-1])
        request_context.messages[:] = ctx.messages
        return await super().before_model_request(ctx, request_context)

    def _beside_loop(self, asked_with: JsonObject, nearest: PlannedAnswer) -> JsonObject:
        """Equal ones are one object, as they come: most requests of a run have the same."""
        if self._merged is None or self._merged[0] is not asked_with or self._merged[1] is not nearest.asked_with:
            sent = {name: nearest.asked_with[name] for name in ONLY_SENT if name in nearest.asked_with}
            self._merged = asked_with, nearest.asked_with, {**asked_with, **sent}
        return self._merged[2]

    # --- histories

    def _put_back_answers_without_calls(self, ctx: RunContext[None], planned: PlannedAnswer) -> None:
        """The team handed in answers of tools without the calls; Pydantic AI's loop takes such a history as broken."""
        recorded, newest = load_messages(messages(planned.history)), ctx.messages[-1]
        if _has_answers_without_calls(recorded):
            ctx.messages[:] = [*recorded[:-1], newest]
            _complete(newest, recorded[-1])

    def _put_handoffs_last(self, newest: ModelMessage) -> None:
        if isinstance(newest, ModelRequest):
            newest.parts = sorted(newest.parts, key=lambda part: self._handoffs.get(_call_id_of(part) or "", 0))

    def _is_rewritten(self, planned: PlannedAnswer) -> bool:
        """Also by the SDK, where a call id comes again: it then sends the newer of two equal calls alone."""
        if self._model.cursor == 0 or planned.history is None:
            return False
        before = self._model.newest.history
        return planned.history == before or super()._is_rewritten(planned)

    def _reapply(self, ctx: RunContext[None], planned: PlannedAnswer) -> None:
        super()._reapply(ctx, planned)
        if planned.history is not None:
            _complete(ctx.messages[-1], load_messages([planned.history.message])[0])

    # --- output

    def _put_recorded_schemas(self, planned: PlannedAnswer, request_context: ModelRequestContext) -> None:
        super()._put_recorded_schemas(planned, request_context)
        mode = self._modes.get(planned.agent)
        if mode is not None:
            loaded = load_parameters(mode)
            request_context.model_request_parameters.output_mode = loaded.output_mode
            request_context.model_request_parameters.output_object = loaded.output_object


def _complete(newest: ModelMessage, recorded: ModelMessage) -> None:
    """Takes over the recorded parts, but keeps those that the loop built itself. What only the loop has comes last."""
    if isinstance(newest, ModelRequest) and isinstance(recorded, ModelRequest):
        waiting = list(newest.parts)
        parts = [_take_like(part, waiting) or part for part in recorded.parts]
        newest.parts = [*parts, *waiting]


def _take_like(part: ModelRequestPart, waiting: list[ModelRequestPart]) -> ModelRequestPart | None:
    for own in waiting:
        if (own.part_kind, _call_id_of(own)) == (part.part_kind, _call_id_of(part)):
            waiting.remove(own)
            return own
    return None


def _call_id_of(part: ModelRequestPart) -> str | None:
    return part.tool_call_id if isinstance(part, ToolReturnPart) else None


def _has_answers_without_calls(recorded: Sequence[ModelMessage]) -> bool:
    asked: set[str] = set()
    for message in recorded:
        if isinstance(message, ModelResponse):
            asked.update(part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart))
        elif any(isinstance(part, ToolReturnPart) and part.tool_call_id not in asked for part in message.parts):
            return True
    return False
