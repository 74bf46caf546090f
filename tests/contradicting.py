"""Two turns of a conversation, of which the second begins with another answer than the first one gave."""

from __future__ import annotations

from typing import Any


def turns_that_contradict(session_id: str = "chat") -> list[dict[str, Any]]:
    asked = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Where is it?"}]}
    prior = [asked, _answer("It was lost.")]
    again = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "And now?"}]}
    first = _turn("turn_1", {"messages": [asked]}, "It was sent.", session_id=session_id, input="Where is it?")
    second = _turn("turn_2", {"after": 0, "messages": [again]}, "Here.", session_id=session_id, input="And now?")
    return [first, second | {"prior": prior, "started_at": "2026-11-17T10:05:00Z"}]


def _answer(words: str) -> dict[str, Any]:
    return {"kind": "response", "parts": [{"part_kind": "text", "content": words}]}


def _turn(run_id: str, request: dict[str, Any], words: str, **fields: Any) -> dict[str, Any]:
    step = {"kind": "model", "request": request, "response": _answer(words)}
    base = {"format": "agent-replay.run", "version": 1, "run_id": run_id, "started_at": "2026-11-17T10:00:00Z"}
    return {**base, "status": "ok", "output": words, "steps": [step], **fields}
