"""What the judge calls unreadable is what Pydantic AI refuses: no more of what people write, and no less."""

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from sessions_app.agents.loop.library import load_messages, load_parameters
from sessions_app.core.judge.message_shapes import PARAMETERS_WITH_TOOLS
from sessions_app.core.judge.reading import seen_message
from sessions_app.core.judge.unreadable import refusal
from sessions_app.core.payload import Payload

RETRY = {"cause": "validation_error", "attempt": 1, "max_retries": 2}
ERROR = {"type": "missing", "loc": ["a", 0], "msg": "Field required", "input": {}}
FILES = [
    "Look.",
    {"kind": "image-url", "url": "https://example.com/a.png", "media_type": "image/png", "vendor_metadata": {"a": 1}},
    {"kind": "document-url", "url": "https://example.com/a.pdf", "force_download": False, "identifier": "x"},
    {"kind": "binary", "data": "aGk=", "media_type": "image/png", "vendor_metadata": None},
    {"kind": "uploaded-file", "file_id": "f", "provider_name": "openai", "media_type": "image/png"},
    {"kind": "text-content", "content": "Hi", "metadata": {"a": 1}},
    {"kind": "cache-point", "ttl": "5m"},
]
COUNTS = {"input_tokens": 3, "output_tokens": 1, "cache_write_1h_tokens": 0, "unmeasured_requests": 0}
USAGE = {**COUNTS, "audio_seconds": 0.5, "cost": "0.002", "details": {"a": 1}}
REQUEST = {
    "kind": "request",
    "parts": [
        {
            "part_kind": "system-prompt",
            "content": "Be kind.",
            "dynamic_ref": "x",
            "scope": "request",
            "metadata": {"a": 1},
        },
        {"part_kind": "user-prompt", "content": "Q?"},
        {"part_kind": "user-prompt", "content": FILES},
        {"part_kind": "tool-return", "tool_name": "t", "content": {"a": 1}, "tool_call_id": "1", "outcome": "success"},
        {
            "part_kind": "tool-return",
            "tool_name": "t",
            "content": 7,
            "tool_call_id": "2",
            "content_file_digests": ["a"],
        },
        {"part_kind": "tool-return", "tool_name": "t", "content": "No", "outcome": "retried", "retry": RETRY},
        {"part_kind": "retry-feedback", "content": "No", "retry": RETRY},
        {"part_kind": "retry-feedback", "content": [ERROR], "retry": RETRY},
        {"part_kind": "retry-prompt", "content": "No", "tool_name": "t", "tool_call_id": "1"},
        {"part_kind": "retry-prompt", "content": [ERROR]},
    ],
    "instructions": "Help.",
    "state": "complete",
    "metadata": {"a": 1},
}
ATTEMPT = {
    "model_name": "m",
    "provider_name": "p",
    "outcome": "error",
    "error": "E: no",
    "timestamp": "2026-01-01T00:00:00Z",
    "duration": "PT1S",
    "usage": None,
}
RESPONSE = {
    "kind": "response",
    "parts": [
        {"part_kind": "text", "content": "A.", "id": "x", "provider_details": {"a": 1}},
        {"part_kind": "thinking", "content": "Hm.", "signature": "s"},
        {"part_kind": "tool-call", "tool_name": "t", "args": {"a": 1}, "tool_call_id": "1"},
        {"part_kind": "builtin-tool-call", "tool_name": "web", "args": "{}", "tool_call_id": "2"},
        {"part_kind": "builtin-tool-return", "tool_name": "web", "content": 7, "content_file_digests": ["a"]},
        {"part_kind": "file", "content": {"kind": "binary", "data": "aGk=", "media_type": "image/png"}},
    ],
    "usage": USAGE,
    "finish_reason": "stop",
    "failed_attempts": [ATTEMPT],
    "workspace_ref": {"provider": "p", "id": "w"},
}
WHOLE: dict[str, Any] = {"request": REQUEST, "response": RESPONSE}
ABSENT = object()
VALUES = (ABSENT, None, "", "other", 7, 0.5, True, {}, {"a": 1}, [], ["a"], [7], [None], [{}])
OPEN = frozenset(
    {
        "parameters_json_schema",
        "return_schema",
        "json_schema",
        "args",
        "content",
        "details",
        "metadata",
        "provider_details",
        "vendor_metadata",
        "input",
        "loc",
    }
)
"""Fields whose inside is anybody's, where they hold an object or a list that is no message's."""


def places(value, path=()):
    """Each field of the messages, and each item of a prompt or of a list of errors."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        is_open = key in OPEN and not isinstance(item, list) and "kind" not in (item if isinstance(item, dict) else {})
        if isinstance(item, dict | list) and not is_open and key != "loc":
            yield from places(item, (*path, key))


CASES = [(kind, place, value) for kind in WHOLE for place in places(WHOLE[kind]) for value in VALUES]


def changed(whole, place, value):
    message: Any = copy.deepcopy(whole)
    holder = message
    for key in place[:-1]:
        holder = holder[key]
    if value is not ABSENT:
        holder[place[-1]] = value
    else:
        del holder[place[-1]]
    return Payload.of_json(message)


def is_read(payload):
    return _loads(load_messages, [payload])


TOOL = {
    "name": "t",
    "parameters_json_schema": {"type": "object"},
    "description": "Does.",
    "strict": True,
    "sequential": False,
    "kind": "function",
    "metadata": {"a": 1},
    "timeout": 0.5,
    "defer_loading": False,
    "return_schema": {"type": "string"},
    "include_return_schema": None,
    "toolset_id": "x",
}
PARAMETERS: dict[str, Any] = {
    "function_tools": [TOOL],
    "output_tools": [TOOL],
    "output_object": {"json_schema": {"type": "object"}, "name": "O", "description": "Out.", "strict": True},
    "instruction_parts": [
        {"content": "Help.", "dynamic": False, "on_change": "rewrite", "name": "x", "part_kind": "instruction"}
    ],
}


@pytest.mark.parametrize("kind", WHOLE)
def test_messages_of_all_kinds_are_read(kind):
    payload = Payload.of_json(WHOLE[kind])

    assert is_read(payload)
    assert refusal(seen_message(payload, step=1)) is None


@pytest.mark.parametrize("kind", WHOLE)
def test_what_is_refused_is_what_the_library_refuses(kind):
    others = [(place, value) for of, place, value in CASES if of == kind if _parted(changed(WHOLE[kind], place, value))]

    assert others == []


FOUND = {"discovered_tools": [{"name": "t"}], "message": "One."}
OWN_PARTS = [
    ("response", {"part_kind": "tool-call", "tool_name": "search_tools", "args": {"queries": ["a"]}}, "tool-search"),
    ("request", {"part_kind": "tool-return", "tool_name": "search_tools", "content": FOUND}, "tool-search"),
    ("response", {"part_kind": "builtin-tool-call", "tool_name": "tool_search", "args": "{}"}, "tool-search"),
    ("response", {"part_kind": "builtin-tool-return", "tool_name": "tool_search", "content": FOUND}, "tool-search"),
    ("response", {"part_kind": "tool-call", "tool_name": "load_capability", "args": {"id": "a"}}, "capability-load"),
    ("request", {"part_kind": "tool-return", "tool_name": "load_capability", "content": {}}, "capability-load"),
]


@pytest.mark.parametrize(("kind", "part", "tool_kind"), OWN_PARTS)
def test_what_is_refused_of_the_librarys_own_tools_is_what_it_refuses(kind, part, tool_kind):
    whole = {"kind": kind, "parts": [{**part, "tool_kind": tool_kind, "tool_call_id": "1", "outcome": "success"}]}
    if kind == "response":
        del whole["parts"][0]["outcome"]
    assert is_read(Payload.of_json(whole))

    changes = [changed(whole, place, value) for place in places(whole) if place[0] == "parts" for value in VALUES]

    assert [each.value for each in changes if _parted(each)] == []


def _parted(payload):
    return is_read(payload) != (refusal(seen_message(payload, step=1)) is None)


def test_parameters_that_are_refused_are_those_that_the_library_refuses():
    cases = [(place, value) for place in places(PARAMETERS) if len(place) > 1 for value in VALUES]

    others = [(place, value) for place, value in cases if _load_otherwise(changed(PARAMETERS, place, value))]

    assert others == []


def _load_otherwise(payload):
    return _loads(load_parameters, payload.value) != _loads(PARAMETERS_WITH_TOOLS.validate_python, payload.value)


def _loads(load, value):
    try:
        load(value)
    except ValidationError:
        return False
    return True
