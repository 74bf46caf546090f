"""Messages alone, as Pydantic AI dumps them: they hold neither what was offered with a request nor its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelRequest, ModelRequestPart, RetryFeedbackPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from sessions_app.agents.loop.library import load_request
from sessions_app.agents.loop.observer import Observer
from sessions_app.core.replay.changes_told import CHANGES, asks_for_output


class SavedMessagesObserver(Observer):
    """What the loop tells the model of such things, it has from the messages."""

    async def prepare_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        planned = self._model.current
        if planned is not None and planned.history is not None:
            recorded = load_request(planned.history.message).parts
            for message in (ctx.messages[-1], request_context.messages[-1]):
                if isinstance(message, ModelRequest):
                    message.parts = self._as_recorded(message.parts, recorded)
        return request_context

    def _as_recorded(
        self, parts: Sequence[ModelRequestPart], recorded: Sequence[ModelRequestPart]
    ) -> list[ModelRequestPart]:
        told = [part for part in parts if part.part_kind not in CHANGES]
        for place, part in enumerate(recorded):
            if part.part_kind in CHANGES:
                told.insert(place, part)
        return [self._asking_as(part, recorded) for part in told]

    def _asking_as(self, part: ModelRequestPart, recorded: Sequence[ModelRequestPart]) -> ModelRequestPart:
        """Which kinds of output the loop asks for, where an answer was none."""
        said = next((each.content for each in recorded if isinstance(each, RetryFeedbackPart)), None)
        if not isinstance(part, RetryFeedbackPart) or said is None or said == part.content:
            return part
        if not (asks_for_output(part.content) and asks_for_output(said)):
            return part
        self._transcript.has_taken_feedback = True
        return replace(part, content=said)
