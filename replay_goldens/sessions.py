"""A recorded run as a session file, and the `FunctionModel` that answers from one.

session = session_beside(__file__, "cancel_5521")

def test_the_order_is_not_cancelled():
    with agent.override(model=create_replay_model(session)):
        result = agent.run_sync(session["user_input"])
    assert "not eligible" in result.output
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from replay_goldens.playing import golden_of
from replay_goldens.records import Record
from replay_recorder.replaying.recording import Recording, plain_value, read_arguments, read_recording
from replay_recorder.tools.tool_files import RecordingExhausted

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo, FunctionModel

Session = dict[str, Any]
_TYPES = {"request": "ModelRequest", "response": "ModelResponse"}


def session_beside(file: str | Path, run_id: str) -> Session:
    """Of a run in the exported goldens in the folder of this file. Raises `LookupError` where none has it."""
    return session_of(read_recording(golden_of(run_id, file).recording).record)


def session_of(record: Record) -> Session:
    """`session_id`, `user_input`, `final_output`, `messages` with their parts, `tool_calls` and what was known of the
    model, as docs/record-format.md has it. Raises `ValueError` for a run of another framework than Pydantic AI."""
    recording = read_recording(record)
    messages = [_message(message) for message in _messages(recording)]
    return {
        "session_id": recording.run_id,
        "timestamp": record.get("started_at"),
        "user_input": recording.input,
        "final_output": recording.output,
        "model": record.get("model"),
        "instructions": record.get("instructions"),
        "messages": messages,
        "tool_calls": [{"tool": call.name, "args": call.arguments} for call in recording.calls],
        "duration_ms": record.get("duration_ms"),
    }


def _messages(recording: Recording) -> list[Any]:
    """What the last request that was captured held, and its answer."""
    last = next((each for each in reversed(recording.answers) if each.messages is not None), None)
    if last is None:
        return []
    return [*(last.messages or ()), *([] if last.response is None else [last.response])]


def _message(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict) or message.get("kind") not in _TYPES:
        raise ValueError("Only runs of Pydantic AI have messages that a session file can hold.")
    return {"type": _TYPES[message["kind"]], "parts": [_part(part) for part in message.get("parts") or ()]}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    told = {name: plain_value(value) for name, value in part.items() if value is not None and name != "part_kind"}
    if "args" in told:
        told["args"] = read_arguments(told["args"])
    return {"kind": part["part_kind"], **told}


def create_replay_model(session: Session) -> FunctionModel:
    """Gives the recorded responses in order. One request more than was recorded raises `RecordingExhausted`: nothing
    is made up. Whether the requests are the recorded ones is not looked at; `replay_recorder.replay_model` does."""
    from pydantic_ai.models.function import FunctionModel

    recorded = [_response(message) for message in session["messages"] if message["type"] == "ModelResponse"]
    left = iter(recorded)

    def replay(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        response = next(left, None)
        if response is None:
            raise RecordingExhausted(f"The session holds {len(recorded)} responses and none is left.")
        return response

    return FunctionModel(replay)


def _response(message: dict[str, Any]) -> ModelResponse:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    parts = [{"part_kind": part["kind"], **part} for part in message["parts"]]
    (response,) = ModelMessagesTypeAdapter.validate_python([{"kind": "response", "parts": parts}])
    return response  # type: ignore[return-value]  # of this kind
