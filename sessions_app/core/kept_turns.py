"""Turns of a conversation that stayed with the provider: a request names them and does not carry them."""

from __future__ import annotations

from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ModelCall, Run, Step, main_model_calls


def kept_turns(run: Run) -> str | None:
    """What the first request goes on from, in words; None where it carried all that the model was given."""
    for step, call in main_model_calls(run)[:1]:
        named = _named(step, call)
        if named is not None:
            return f"{named} stayed with the provider, and no request carried it"
    return None


def _named(step: Step, call: ModelCall) -> str | None:
    settings = call.settings.value if call.settings is not None else None
    given = settings if isinstance(settings, dict) else {}
    response = _id(step.extra.get("previous_response_id")) or _id(given.get("openai_previous_response_id"))
    if response is not None:
        return f"what was said up to the answer {response}"
    conversation = _id(step.extra.get("conversation_id")) or _id(given.get("openai_conversation_id"))
    return None if conversation is None else f"what was said before in the conversation {conversation}"


def _id(value: JsonValue) -> str | None:
    """`auto`, as Pydantic AI takes it, stands for turns that the run holds itself."""
    return value if isinstance(value, str) and value not in ("", "auto") else None
