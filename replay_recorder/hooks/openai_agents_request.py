"""One request to a model in a run of the OpenAI Agents SDK, as a step of its recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replay_recorder.guard import guard
from replay_recorder.hooks.openai_agents_items import FAKE_ID, Conversation, Json
from replay_recorder.hooks.openai_agents_reading import (
    address_of,
    answer_id,
    answered_model,
    finish_reason,
    model_name,
    output_function,
    output_rows,
    parameters_value,
    provider_of,
    settings_value,
    usage_value,
)
from replay_recorder.raw_http.tee import http_fields
from replay_recorder.tools.calls import error_of
from replay_recorder.writing.json_text import JsonText, dumps
from replay_recorder.writing.regions import region_in
from replay_recorder.writing.run_writer import RunWriter, now


class ModelRequest:
    """The step of a request, and the attempts that it took; see `Attempts`, whose methods these are."""

    def __init__(
        self,
        run: RunWriter,
        step: int,
        conversation: Conversation,
        on_answer: Callable[[int, list[Json], list[str]], None],
        *,
        agents_own: Any = None,
    ) -> None:
        """`agents_own` is the model that the agent names.

        `on_answer` gets the step, the parts of the answer when it is there, and the names of the handoffs."""
        self.step = step
        self.is_busy = False
        self.model: str | None = None
        self.provider: str | None = None
        self.handoffs: dict[str, Any] = {}
        """The SDK's `Handoff` objects by the name of their tool."""
        self.output_function: str | None = None
        """What makes the output of the answer, where it is more than validation."""
        self._run = run
        self._conversation = conversation
        self._on_answer = on_answer
        self._agents_own = agents_own
        self._address: str | None = None
        self._answered_model: str | None = None
        self._finish_reason: str | None = None
        self._failures: list[Json] = []
        self._has_token = False
        self._output: list[Json] | None = None

    # --- attempts

    def began(self, model: Any, given: Json) -> None:
        in_place_of = getattr(model, "in_place_of", None)
        self.model = model_name(in_place_of(self._agents_own) if in_place_of else model)
        self.provider, self._address = provider_of(model), address_of(model)
        facts = {
            "name": self.model or "model",
            "model": self.model,
            "provider": self.provider,
            "region": region_in(self._address),
        }
        if self._failures:
            self._run.amend(self.step, **facts)
        else:
            self._run.started(self.step, **facts)
        with guard("model_input"):
            self._put_input(given)
        with guard("model_settings"):
            self._run.amend(self.step, settings=settings_value(given["model_settings"]))
        with guard("model_tools"):
            self._put_tools(given)
        self._run.amend(
            self.step,
            previous_response_id=given.get("previous_response_id"),
            conversation_id=given.get("conversation_id"),
        )

    def _put_input(self, given: Json) -> None:
        """Hooks of the team are called after ours, and may have changed the items in place."""
        sent = self._conversation.sent(given.get("input"), given.get("system_instructions"))
        if sent is not None:
            self._run.amend(self.step, request=sent.history)

    def _put_tools(self, given: Json) -> None:
        self.handoffs = {handoff.tool_name: handoff for handoff in given.get("handoffs") or []}
        self.output_function = output_function(given.get("output_schema"))
        parameters = parameters_value(given)
        self._run.amend(
            self.step,
            tools=[self._run.row("tools", JsonText(dumps(function))) for function in parameters["function_tools"]],
            parameters=self._run.row("parameters", JsonText(dumps(parameters))),
        )

    def streamed(self, event: Any) -> None:
        kind = getattr(event, "type", "")
        if not self._has_token and kind.endswith(".delta"):
            self._has_token = True
            self._run.amend(self.step, first_token_at=now())
        if kind == "response.completed":
            if event.response.id != FAKE_ID:
                # Of a stream that the SDK put together itself it knows no more than what was asked.
                self.noted(event.response)
            self.answered(event.response)

    def noted(self, answer: Any) -> None:
        self._answered_model = answered_model(answer) or self._answered_model
        self._finish_reason = finish_reason(answer) or self._finish_reason

    def answered(self, response: Any) -> None:
        rows = self._output = output_rows(response)
        parts = self._conversation.answered(self.step, rows)
        self._on_answer(self.step, parts, list(self.handoffs))
        usage = usage_value(response.usage)
        fields = {
            "response": self._message(parts, usage, answer_id(response)),
            "answered_model": self._answered_model,
            "finish_reason": self._finish_reason,
            "input_tokens": usage and usage["input_tokens"],
            "output_tokens": usage and usage["output_tokens"],
        }
        self._run.end(self.step, **fields, **http_fields(self._run, self.step))

    def _message(self, parts: list[Json], usage: Json | None, response_id: str | None) -> Json:
        said = {
            "usage": usage,
            "model_name": self._answered_model,
            "timestamp": now(),
            "provider_name": self.provider,
            "provider_url": self._address,
            "provider_response_id": response_id,
            "finish_reason": self._finish_reason,
        }
        return {"parts": parts, **{key: value for key, value in said.items() if value is not None}, "kind": "response"}

    def failed(self, error: BaseException) -> None:
        """The SDK may try again."""
        self._failures.append({**error_of(error), "ended_at": now()})
        self._run.amend(self.step, failed_attempts=self._failures)

    # --- what became of it

    def settled(self, response: Any) -> None:
        """What the loop took as the answer; mostly it is written already."""
        if self._output is None or (not self._output and response.output):
            self.answered(response)

    def given_up(self, error: Json | None) -> None:
        """The run is over; without an answer the last failure says why there is none."""
        if self._run.is_open(self.step):
            last = self._failures[-1] if self._failures else error
            why = last and {"type": last["type"], "message": last["message"]}
            self._run.end(self.step, error=why, **http_fields(self._run, self.step))
