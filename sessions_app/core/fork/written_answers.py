"""Answers of a model that a person or a rule wrote, as messages."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.compare.strict import same_json
from sessions_app.core.fork.changes import Answer, AskedCall
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.replay.fixture_book import recorded_arguments


def response_of(answer: Answer, at: int, recorded: Payload | None) -> Payload:
    """The answer as a message of the model. Calls that the answer `recorded` for this request asks for too keep their
    ids; those of others follow from the stop, so that they stay the same."""
    text = [] if answer.text is None else [{"content": answer.text, "part_kind": "text"}]
    asked = list(_parts(recorded, "tool-call"))
    calls = [_call(call, f"call_{at}_{place}", asked) for place, call in enumerate(answer.tool_calls, start=1)]
    return Payload.of_json({"parts": [*text, *calls], "kind": "response"})


def says(recorded: Payload, answer: Answer) -> bool:
    """Whether this is what the model said then."""
    texts = [part.get("content") or "" for part in _parts(recorded, "text")]
    calls = list(_parts(recorded, "tool-call"))
    asks_the_same = len(calls) == len(answer.tool_calls) and all(map(_asks, calls, answer.tool_calls))
    return asks_the_same and (answer.text or "") in ("".join(texts), "\n".join(texts))


def _asks(part: JsonObject, call: AskedCall) -> bool:
    asked = recorded_arguments(Payload.of(part.get("args")))
    return part.get("tool_name") == call.name and same_json(asked, call.arguments)


def _call(call: AskedCall, call_id: str, recorded: list[JsonObject]) -> JsonObject:
    """A call that was asked for then is that call again, each once."""
    again = next((at for at, part in enumerate(recorded) if _asks(part, call)), None)
    if again is not None:
        return recorded.pop(again)
    return {"tool_name": call.name, "args": call.arguments, "tool_call_id": call_id, "part_kind": "tool-call"}


def _parts(response: Payload | None, kind: str) -> Iterator[JsonObject]:
    parts = response.value.get("parts") if response is not None else None
    return (part for part in parts or [] if part.get("part_kind") == kind)
