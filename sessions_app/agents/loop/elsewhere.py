"""What a fork asks its parent process for, since it has neither a database nor a network."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.core.fork.answering import LiveModelFailed, ModelAsk
from sessions_app.core.payload import JsonObject, JsonValue


class AskParent:
    """`Elsewhere` over the pipe; `services/replay_questions.py` answers."""

    def __init__(self, ask: Callable[[JsonObject], JsonValue]) -> None:
        self._ask = ask

    def model_answer(self, key: str) -> JsonObject | None:
        return _object(self._ask({"what": "model", "key": key}))

    def tool_answer(self, name: str, arguments: JsonValue) -> JsonObject | None:
        return _object(self._ask({"what": "tool", "name": name, "arguments": arguments}))

    def live_answer(self, ask: ModelAsk) -> JsonObject:
        reply = self._ask(
            {
                "what": "live",
                "messages": ask.messages(),
                "parameters": ask.parameters,
                "model": ask.model,
                "settings": ask.settings,
            }
        )
        found = _object(reply) or {}
        if "response" not in found:
            raise LiveModelFailed(str(found.get("error") or "The live model gave no answer."))
        return dict(found["response"])


def _object(reply: JsonValue) -> JsonObject | None:
    return reply if isinstance(reply, dict) else None
