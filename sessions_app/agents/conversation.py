"""Whether a conversation is the recorded one, leaving its prompt aside."""

from __future__ import annotations

from pydantic_ai.messages import ModelMessage

from sessions_app.agents.library import dump_message, load_messages
from sessions_app.core.history import History, nodes
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch

_PROMPT_PARTS = frozenset(
    {
        *("system-prompt", "instruction-baseline", "instruction-delta"),
        *("tool-availability-delta", "capability-load-delta", "model-settings-delta"),
    }
)
"""Parts that the agent's definition makes, not its conversation."""


class Conversation:
    """Compares one request after the other; what was seen to agree is not looked at again."""

    def __init__(self) -> None:
        self._agreed: History | None = None
        self._seen: list[ModelMessage] = []

    def first_difference(self, recorded: History | None, rebuilt: list[ModelMessage]) -> Mismatch | None:
        """A history that was not captured agrees with any."""
        if recorded is None:
            return None
        start = self._start(recorded, rebuilt)
        expected = [node.message for node in nodes(recorded)][::-1][start:]
        for position in range(max(len(expected), len(rebuilt) - start)):
            found = _compare(expected[position:][:1], rebuilt[start + position :][:1], start + position)
            if found is not None:
                return found
        self._agreed, self._seen = recorded, list(rebuilt)
        return None

    def _start(self, recorded: History, rebuilt: list[ModelMessage]) -> int:
        """The number of messages that both share with what was compared before."""
        agreed = self._agreed.length if self._agreed else 0
        same_objects = all(old is new for old, new in zip(self._seen, rebuilt, strict=False))
        goes_on = any(node == self._agreed for node in _newest(recorded, recorded.length - agreed + 1))
        return agreed if agreed and goes_on and same_objects and len(rebuilt) >= agreed else 0


def _newest(history: History, count: int) -> list[History]:
    return [node for node, _ in zip(nodes(history), range(max(count, 0)), strict=False)]


def _compare(expected: list[Payload], actual: list[ModelMessage], position: int) -> Mismatch | None:
    path = f"messages[{position}]"
    if not expected or not actual:
        left = expected[0].value if expected else None
        return Mismatch(path=path, recorded=left, rebuilt=dump_message(actual[0]) if actual else None)
    recorded = dump_message(load_messages([expected[0]])[0])
    raw, rebuilt = _said(expected[0].value), _said(dump_message(actual[0]))
    return first_mismatch(_said(recorded), rebuilt, raw=raw, path=path, tally=Tally())


def _said(message: JsonValue) -> JsonValue:
    """What was said: neither the prompt around it, nor who answered and at what cost."""
    parts = [part for part in message.get("parts") or [] if part.get("part_kind") not in _PROMPT_PARTS]
    if message.get("kind") == "response":
        return {"kind": "response", "parts": parts}
    return {**message, "instructions": None, "parts": parts}
