"""A model that gives what its stage answers and never makes an answer up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.output import StructuredOutputMode
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from sessions_app.agents.loop.library import load_response
from sessions_app.agents.loop.outcomes import RecordedError
from sessions_app.agents.loop.stage import Stage
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.run import ErrorInfo


class _BrokenStream(CompletedStreamedResponse):
    """A streamed answer that the recorded run did not read to its end: it broke off, or its reader left."""

    def __init__(self, response: ModelResponse, parameters: ModelRequestParameters, error: ErrorInfo | None) -> None:
        whole = replace(response, state="complete")
        super().__init__(whole, model_request_parameters=parameters, replay_events=True)
        self._error = error

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        async for event in super()._get_event_iterator():
            yield event
        if self._error is not None:
            raise RecordedError(self._error)


class ReplayModel(Model[Any]):
    """`cursor` is the number of requests answered so far; the recorded ones are `answers`."""

    def __init__(
        self,
        answers: tuple[PlannedAnswer, ...],
        *,
        name: str,
        system: str,
        has_output_tool: bool,
        stage: Stage,
        cursor: int = 0,
        settings: ModelSettings | None = None,
    ) -> None:
        """`settings` are those of the model in whose place it stands."""
        # What `auto` output was resolved to shows in how the output came.
        mode: StructuredOutputMode = "tool" if has_output_tool else "native"
        profile = ModelProfile(
            default_structured_output_mode=mode, supports_json_schema_output=True, supports_json_object_output=True
        )
        super().__init__(settings=settings, profile=profile)
        self.answers = answers
        self.cursor = cursor
        self._name = name
        self._system = system
        self._stage = stage

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return self._system

    @property
    def base_url(self) -> str | None:
        return None

    @property
    def current(self) -> PlannedAnswer | None:
        """The recorded call that the next request stands for; None past the end."""
        return self.answers[self.cursor] if self.cursor < len(self.answers) else None

    @property
    def nearest(self) -> PlannedAnswer:
        """The recorded call at this place; past the end the last one, whose tools and prompts hold on."""
        return self.answers[min(self.cursor, len(self.answers) - 1)]

    def offered_at(self, run_step: int) -> PlannedAnswer:
        """The recorded call whose tools are there: a fork may begin with the calls of an answer, before any request of
        its own."""
        return self.newest if run_step == 0 and self.cursor > 0 else self.nearest

    @property
    def newest(self) -> PlannedAnswer:
        """The recorded answer in whose place the last one was given; the last of all where a fork goes on behind it."""
        return self.answers[min(self.cursor, len(self.answers)) - 1]

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        return self._next(model_settings)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncIterator[StreamedResponse]:
        planned, response = self.current, self._next(model_settings)
        # As a model does before it sends: a text before a call that carries the output is not the output then.
        parameters = model_request_parameters.with_default_output_mode(self.profile["default_structured_output_mode"])
        if response.state == "interrupted" and planned is not None:
            yield _BrokenStream(response, parameters, planned.error)
        else:
            yield CompletedStreamedResponse(response, model_request_parameters=parameters, replay_events=True)

    def prepare_messages(
        self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        """Nothing is sent, so nothing is prepared: that halves the cost of a long replay."""
        return messages

    def _next(self, settings: ModelSettings | None) -> ModelResponse:
        self._stage.asks(self.current, settings)
        given = self._stage.answer(self.current, self.cursor)
        self.cursor += 1
        if given.response is None:
            assert given.error is not None
            raise RecordedError(given.error)
        return load_response(given.response)
