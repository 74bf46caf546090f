"""One key for a request to a model, equal for requests that ask for the same (see `request_form`).

A run of N requests costs O(N): what was said up to a node of the history is digested once, on top of its parent.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.request_form import (
    Calls,
    instructions_in,
    is_answer,
    message_form,
    numbered_calls,
    parameters_form,
    parts_of,
    settings_form,
)
from sessions_app.core.run import ModelCall

KEY_BYTES = 16
"""Of a SHA-256: enough to tell the requests of a project apart, and each step of each run has a key."""

# Escapes keep half a surrogate pair apart from anything else; as UTF-8 it could not be written.
_in_any_order = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
_in_order = json.JSONEncoder(separators=(",", ":")).encode
"""What tools and models say is text to a model: there the order of keys counts (decision 012)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Said:
    """A conversation up to a message."""

    digest: bytes = b""
    calls: Calls = field(default_factory=dict)
    instructions: JsonValue = None
    """Those of the newest request: older ones do not reach the model again."""

    def then(self, message: JsonValue) -> _Said:
        is_reply, parts = is_answer(message), parts_of(message)
        calls = numbered_calls(parts or ()) if is_reply else self.calls
        form = _spelled(message_form(message, calls), _in_order)
        is_request = parts is not None and not is_reply
        return _Said(
            digest=hashlib.sha256(self.digest + form).digest(),
            calls=calls,
            instructions=message.get("instructions") if is_request else self.instructions,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parameters:
    digest: bytes
    instructions: str | None

    @classmethod
    def read(cls, value: JsonValue) -> _Parameters:
        form = _spelled(parameters_form(value))
        return cls(digest=hashlib.sha256(form).digest(), instructions=instructions_in(value))


class RequestKeys:
    """The keys of one run's requests; it remembers what the histories of its requests share."""

    def __init__(self) -> None:
        self._said: dict[str, _Said] = {}
        self._parameters: dict[str, _Parameters] = {}

    def of(self, call: ModelCall, default_model: str | None) -> bytes:
        """The first `KEY_BYTES` of a SHA-256. `default_model` is the run's, for calls that do not name one."""
        parameters = self._parameters_in(call.parameters)
        return _key(self._said_in(call.history), parameters, call.model or default_model, _value(call.settings))

    def _said_in(self, history: History | None) -> _Said:
        """Extends the nearest known node, without recursion: histories are long."""
        new: list[History] = []
        while history is not None and history.digest not in self._said:
            new.append(history)
            history = history.parent
        said = self._said[history.digest] if history else _Said()
        for node in reversed(new):
            said = self._said[node.digest] = said.then(_value(node.message))
        return said

    def _parameters_in(self, payload: Payload | None) -> _Parameters:
        digest = payload.digest if payload else ""
        if digest not in self._parameters:
            self._parameters[digest] = _Parameters.read(_value(payload))
        return self._parameters[digest]


def request_key(
    messages: Sequence[JsonObject], parameters: JsonObject | None, *, model: str | None, settings: JsonObject | None
) -> bytes:
    """What `RequestKeys.of` gives for the same request, from plain values. Reads all messages each time."""
    said = _Said()
    for message in messages:
        said = said.then(message)
    return _key(said, _Parameters.read(parameters), model, settings)


def _key(said: _Said, parameters: _Parameters, model: str | None, settings: JsonValue) -> bytes:
    asked = {
        "conversation": said.digest.hex(),
        "instructions": parameters.instructions or said.instructions or None,
        "parameters": parameters.digest.hex(),
        "model": model or None,
        "settings": settings_form(settings),
    }
    return hashlib.sha256(_spelled(asked)).digest()[:KEY_BYTES]


def _value(payload: Payload | None) -> JsonValue:
    """The value, or the name of bytes that are none."""
    if payload is None:
        return None
    try:
        return payload.value if payload.is_json or payload.is_text else payload.digest
    except (ValueError, RecursionError):
        return payload.digest


def _spelled(form: JsonValue, spell: Callable[[JsonValue], str] = _in_any_order) -> bytes:
    """As JSON. What has none, such as nesting beyond measure, is equal to nothing."""
    try:
        return spell(form).encode()
    except (TypeError, ValueError, RecursionError):
        return secrets.token_bytes(32)
