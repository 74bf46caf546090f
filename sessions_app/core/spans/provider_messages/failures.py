"""What an answer says of itself: that the request failed, or that it is not finished."""

from __future__ import annotations

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.provider_messages.fields import entries, entry, text
from sessions_app.core.spans.provider_messages.streams import ENDS

_UNFINISHED = frozenset({"failed", "cancelled", "queued", "in_progress"})


def failure_of(value: JsonValue) -> JsonValue:
    """An error as it stands in an answer, or in the events of a stream; None where there is none.

    OpenAI Responses may also say by the status alone that there is no answer, or not the whole one. Of one that was cut
    short it gives the reason, and that is an answer.
    """
    if isinstance(value, list):
        return next((found for event in value if (found := _of_event(parsed(event)))), None)
    said = parsed(value)
    return _of_body(said) if isinstance(said, dict) else None


def _of_event(event: JsonValue) -> JsonValue:
    if not isinstance(event, dict):
        return None
    kind = text(event, "type")
    flat = event if kind == "error" else None
    return _in_words(event.get("error")) or flat or (_of_body(entry(event, "response")) if kind in ENDS else None)


def _of_body(said: JsonObject) -> JsonValue:
    choice = next(iter(entries(said, "choices")), None)
    error = said.get("error") or (choice.get("error") if isinstance(choice, dict) else None)
    return _in_words(error) or _of_status(said)


def _in_words(error: JsonValue) -> JsonValue:
    """Some servers give a sentence and no object."""
    return {"message": error} if isinstance(error, str) and error else error


def _of_status(said: JsonObject) -> JsonValue:
    status = text(said, "status") if isinstance(said.get("output"), list) else None
    is_cut = status == "incomplete" and text(entry(said, "incomplete_details"), "reason") is None
    return {"message": f"The response has the status {status}."} if status in _UNFINISHED or is_cut else None
