"""What a replay's child process asks while it runs: the database answers, and where the order says so a live model."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.agents.live_model.client import LiveModelClient
from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.core.fork.order import read_order
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import ErrorInfo, ToolCall
from sessions_app.models import Replay
from sessions_app.queries import borrowing
from sessions_app.services.live_models import ENVIRONMENT, live_model, spend


class Questions:
    """Of one replay. What is not asked for by its mode or its order is refused."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._live: LiveModelClient | None = None
        self.asked: JsonObject | None = None
        """Which live model was asked, with which settings, and which one answered; the last time that it was."""
        self._replies: dict[str, Callable[[JsonObject], JsonValue]] = {
            "model": self._model,
            "tool": self._tool,
            "live": self._live_model,
        }

    @property
    def live_requests(self) -> int:
        """Sent to the live model so far; repeated ones, and those that came to nothing, included."""
        return 0 if self._live is None else self._live.requests

    def reply(self, question: JsonObject) -> JsonValue:
        """None when nothing is known."""
        answer = self._replies.get(str(question.get("what")))
        return None if answer is None else answer(question)

    def _model(self, question: JsonObject) -> JsonValue:
        key = bytes.fromhex(question["key"])
        found = borrowing.model_answer(self._replay.project_id, key, not_in=self._own_runs())
        if found is None:
            return None
        return {"response": Payload(content=found.response.encode()).value, "run_id": found.run_id, "step": found.step}

    def _tool(self, question: JsonObject) -> JsonValue:
        name, arguments = question["name"], question["arguments"]
        found = borrowing.tool_answer(self._replay.project_id, name, arguments, not_in=self._own_runs())
        if found is None:
            return None
        return {"call": _call_body(found.call, found.error), "run_id": found.run_id, "step": found.step}

    def _own_runs(self) -> list[int]:
        """What this replay made so far is no answer to it."""
        made = self._replay.produced_run_id
        return [] if made is None else [made]

    # --- a live model

    def _live_model(self, question: JsonObject) -> JsonValue:
        if not self._replay.asks_live_model:
            return {"error": "The order does not say that a live model may be asked."}
        try:
            return {"response": self._ask_live(question)}
        except ModelUnavailable as error:
            return {"error": error.reason}

    def _ask_live(self, question: JsonObject) -> JsonObject:
        if self._live is None:
            self._live = self._client()
        answer = self._live.answer(
            question["messages"], question["parameters"], model=question["model"], settings=question["settings"]
        )
        settings_sent = question["settings"] or {}
        sent = {name: settings_sent[name] for name in _TOLD if settings_sent.get(name) is not None}
        asked = self._chosen.model or question["model"]
        self.asked = {"model": asked, "settings": sent, "answered": answer.get("model_name")}
        return answer

    def _client(self) -> LiveModelClient:
        """Of the model that was chosen when the replay was asked for, and of no other."""
        name = read_order(self._replay.order).live_model
        self._chosen = live_model(self._replay.project, name or ENVIRONMENT)
        row = self._chosen.row
        if row is None:
            return LiveModelClient(self._chosen.endpoint())
        return LiveModelClient(self._chosen.endpoint(), spend=lambda: spend(row))


_TOLD = ("temperature", "top_p", "seed")


def _call_body(call: ToolCall, error: ErrorInfo | None) -> JsonObject:
    """As `core.fork.answering.tool_call_of` reads it."""
    payloads = {"result": call.result, "metadata": call.metadata, "content": call.content}
    values = {name: payload.value for name, payload in payloads.items() if payload is not None}
    told = None if error is None else {"type": error.type, "message": error.message}
    return {**values, "outcome": call.outcome, "retry": call.retry, "error": told}
