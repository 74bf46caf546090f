"""Equal requests have equal keys, whenever and wherever they were made; whatever the model would see changes them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from sessions_app.agents.loop.library import dump_message, dump_parameters, load_messages, load_parameters
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.history import History, extend, messages
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.request_key import KEY_BYTES, RequestKeys, request_key
from sessions_app.core.run import ModelCall, Run
from tests.builders import each_sample
from tests.recorder.playing import last_record
from tests.recorder.replaying import replayed
from tests.recorder.scenarios import Scenario, parallel_tools, repeated_ids_in_one_run


def keys_of(run: Run) -> list[bytes]:
    keys = RequestKeys()
    return [keys.of(call, run.model) for _, call in run.model_calls if call.history is not None]


# --- recordings and their replays --------------------------------------------------------------


@each_sample
def test_a_recording_and_its_replay_have_equal_keys(sample):
    run = parse_document(sample.read_bytes())
    _, produced = replayed(encode_native(run))

    assert produced is not None
    assert keys_of(run)
    assert keys_of(produced) == keys_of(run)
    assert len(set(keys_of(run))) == len(keys_of(run))


@each_sample
def test_messages_as_the_library_dumps_them_have_the_keys_of_their_recording(sample):
    run = parse_document(sample.read_bytes())

    assert [_key_of_dump(call, run) for _, call in run.model_calls] == keys_of(run)


def _key_of_dump(call: ModelCall, run: Run) -> bytes:
    said = [dump_message(message) for message in load_messages(messages(call.history))]
    parameters = dump_parameters(load_parameters(call.parameters.value)) if call.parameters else None
    settings = call.settings.value if call.settings else None
    return request_key(said, parameters, model=call.model or run.model, settings=settings)


@pytest.mark.parametrize("scenario", [parallel_tools, repeated_ids_in_one_run], ids=lambda each: each.__name__)
def test_two_recordings_of_the_same_have_equal_keys(scenario):
    first, second = (parse_document(last_record(Scenario(scenario), "run")) for _ in range(2))

    assert first.run_id != second.run_id
    assert keys_of(first) == keys_of(second)


# --- one request, changed here and there -------------------------------------------------------

Request = dict[str, Any]
_OPTIONAL = ("parameters", "settings")


def tool(name: str, **fields: Any) -> JsonObject:
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
    said = {"name": name, "description": f"Use {name}.", "parameters_json_schema": schema, "strict": None}
    return said | {"toolset_id": "<agent>", "capability_id": "<toolset:1f2e3d>", "metadata": None} | fields


def request() -> Request:
    """A conversation with two calls, both answered, as the library dumps it."""
    stamps: JsonObject = {
        "timestamp": "2026-11-21T06:34:30Z",
        "run_id": "run_1",
        "conversation_id": "chat_1",
        "metadata": None,
    }
    prompt = {"part_kind": "user-prompt", "content": "Where are they?", "timestamp": "2026-11-21T06:34:30Z"}
    calls = [
        {"part_kind": "tool-call", "tool_name": "lookup", "args": {"order_id": order, "n": 1}, "tool_call_id": call_id}
        for order, call_id in (("ORD-1", "call_a"), ("ORD-2", "call_b"))
    ]
    thought = {"part_kind": "thinking", "content": "Two orders.", "id": "rs_1", "signature": "c2ln"}
    returned: JsonObject = {"part_kind": "tool-return", "tool_name": "lookup", "content": "shipped", "retry": None}
    returned |= {"outcome": "success", "metadata": {"rows": 1}, "timestamp": "2026-11-21T06:34:31Z"}
    returns = [returned | {"tool_call_id": call_id} for call_id in ("call_a", "call_b")]
    answer = {"kind": "response", "parts": [thought, *calls], "usage": {"input_tokens": 4}, **stamps}
    return {
        "messages": [
            {"kind": "request", "parts": [prompt], "instructions": "Be brief.", **stamps},
            answer | {"model_name": "gpt-4o", "provider_response_id": "resp_1", "provider_details": {"seed": 1}},
            {"kind": "request", "parts": returns, "instructions": "Be brief.", **stamps},
        ],
        "parameters": {
            "function_tools": [tool("lookup"), tool("cancel")],
            "output_mode": "tool",
            "output_tools": [tool("final", kind="output")],
            "output_object": {"name": "Order", "description": None, "json_schema": {"type": "object"}},
            "allow_text_output": False,
        },
        "model": "gpt-4o",
        "settings": {"temperature": 0.7, "seed": None},
    }


def key(asked: Request) -> bytes:
    """Asked both ways, which must agree."""
    parameters, settings = (None if asked[each] is None else Payload.of_json(asked[each]) for each in _OPTIONAL)
    history = extend(None, map(Payload.of_json, asked["messages"]))
    call = ModelCall(history=history, response=None, model=asked["model"], parameters=parameters, settings=settings)
    found = request_key(**asked)
    assert RequestKeys().of(call, None) == found
    assert len(found) == KEY_BYTES
    return found


def changed(path: str, value: JsonValue) -> Request:
    """The request with one field set; `path` has the keys and positions on the way to it."""
    asked = request()
    *above, last = path.split("/")
    place: Any = asked
    for name in above:
        place = place[int(name)] if isinstance(place, list) else place[name]
    place[int(last) if isinstance(place, list) else last] = value
    return asked


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("messages/0/parts/0/content", "Where is it?"),
        ("messages/0/parts/0/part_kind", "system-prompt"),
        ("messages/0/kind", "response"),
        ("messages/1/parts/0/content", "Three orders."),
        ("messages/1/parts/1/tool_name", "search"),
        ("messages/1/parts/1/args", {"order_id": "ORD-9", "n": 1}),
        ("messages/1/parts/1/args", {"order_id": "ORD-1", "n": 1.0}),
        ("messages/1/parts/1/args", {"n": 1, "order_id": "ORD-1"}),
        ("messages/1/parts/1/args", '{"order_id": "ORD-1"'),
        ("messages/1/parts/1/args", None),
        ("messages/2/parts/0/content", "lost"),
        ("messages/2/parts/0/content", None),
        ("messages/2/parts/0/content", []),
        ("messages/2/parts/0/outcome", "failed"),
        ("messages/2/parts/0/a_field_of_tomorrow", "it may say something"),
        ("messages/2/instructions", "Be kind."),
        ("messages/2/instructions", None),
        ("parameters/function_tools/0/name", "find"),
        ("parameters/function_tools/0/description", "Find one order."),
        ("parameters/function_tools/0/parameters_json_schema", {"type": "object"}),
        ("parameters/function_tools/0/strict", False),
        ("parameters/function_tools", []),
        ("parameters/output_mode", "native"),
        ("parameters/output_object/json_schema", {"type": "array"}),
        ("parameters/output_tools/0/description", "Answer."),
        ("parameters/allow_text_output", True),
        ("parameters/a_field_of_tomorrow", 1),
        ("parameters", None),
        ("model", "gpt-5"),
        ("model", None),
        ("settings/temperature", 0.8),
        ("settings/top_p", 0.1),
        ("settings", None),
    ],
)
def test_what_the_model_would_see_changes_the_key(path, value):
    assert key(changed(path, value)) != key(request())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("messages/0/timestamp", "2027-01-01T00:00:00Z"),
        ("messages/0/run_id", "run_2"),
        ("messages/0/conversation_id", "chat_2"),
        ("messages/0/metadata", {"team": "blue"}),
        ("messages/0/instructions", "What was asked for earlier."),
        ("messages/0/parts/0/timestamp", "2027-01-01T00:00:00Z"),
        ("messages/1/usage", {"input_tokens": 5}),
        ("messages/1/provider_details", None),
        ("messages/1/provider_response_id", "resp_2"),
        ("messages/1/model_name", "gpt-4o-2024-08-06"),
        ("messages/1/parts/0/id", "rs_2"),
        ("messages/1/parts/0/signature", "b3RoZXI="),
        ("messages/1/parts/1/args", '{"order_id":  "ORD-1", "n": 1}'),
        ("messages/2/parts/0/metadata", None),
        ("messages/2/parts/0/timestamp", None),
        ("parameters/function_tools/0/capability_id", "<toolset:99aa88>"),
        ("parameters/function_tools/0/toolset_id", None),
        ("parameters/function_tools", [tool("cancel"), tool("lookup")]),
        ("parameters/native_tools", []),
        ("settings/seed", None),
        ("settings/top_p", None),
    ],
)
def test_what_the_model_would_not_see_does_not_change_the_key(path, value):
    assert key(changed(path, value)) == key(request())


def test_calls_are_known_by_their_place_and_not_by_their_ids():
    renamed = json.loads(json.dumps(request()).replace("call_a", "toolu_7").replace("call_b", "call_a"))
    crossed = changed("messages/2/parts/0/tool_call_id", "call_b")
    crossed["messages"][2]["parts"][1]["tool_call_id"] = "call_a"

    assert key(renamed) == key(request())
    assert key(crossed) != key(request())


def test_an_answer_counts_for_the_newest_call_of_its_id():
    """Some providers begin to count anew with each answer."""
    asked = request()
    again = copy.deepcopy(asked["messages"][1:])
    again[0]["parts"].reverse()
    asked["messages"] += again
    renamed = copy.deepcopy(asked)
    renamed["messages"][3:] = json.loads(json.dumps(again).replace("call_a", "call_c"))

    assert key(renamed) == key(asked)


def test_no_settings_and_empty_settings_are_the_same():
    found = {key(changed("settings", settings)) for settings in (None, {}, {"seed": None})}

    assert len(found) == 1


def test_instructions_count_wherever_they_stand():
    """The library writes them twice; not every recording holds both."""
    part = {"content": "Be brief.", "dynamic": False, "part_kind": "instruction"}
    both, parts_alone = (changed("parameters/instruction_parts", [part]) for _ in range(2))
    parts_alone["messages"][2]["instructions"] = None

    assert key(both) == key(parts_alone) == key(request())
    assert key(changed("parameters/instruction_parts", [part, part])) != key(request())


def test_the_runs_model_stands_in_for_a_call_that_names_none():
    call = ModelCall(history=extend(None, [Payload.of_json({})]), response=None)

    assert RequestKeys().of(call, "gpt-4o") == request_key([{}], None, model="gpt-4o", settings=None)
    assert RequestKeys().of(call, "gpt-4o") != RequestKeys().of(call, None)


def test_files_count_by_what_they_are():
    def asking(**fields: Any) -> bytes:
        image = {"kind": "image-url", "url": "https://example.com/box.jpg"} | fields
        return key(changed("messages/0/parts/0/content", ["What is it?", image]))

    assert asking(force_download=False, vendor_metadata=None) == asking()
    assert asking(url="https://example.com/other.jpg") != asking()


# --- whatever comes ----------------------------------------------------------------------------

_STRANGE: list[JsonValue] = [
    None,
    7,
    "text",
    [],
    {},
    {"parts": 3},
    {"kind": "response", "parts": "text"},
    {"kind": ["response"], "parts": [None, 1, [], {}, {"part_kind": ["tool-call"], "tool_call_id": {}}]},
    {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_call_id": [], "args": "[" * 5000}]},
    {"kind": "response", "parts": [{"part_kind": "tool-call", "args": '{"a": 1e999}'}]},
    {"kind": "request", "parts": [{"part_kind": "retry-prompt"}], "instructions": {"not": "a text"}},
    {"role": "user", "content": "another format"},
]


def test_strange_messages_have_keys_of_their_own():
    found = [request_key([message], None, model=None, settings=None) for message in _STRANGE]

    assert len(set(found)) == len(_STRANGE)
    assert found == [RequestKeys().of(_call(Payload.of_json(message)), None) for message in _STRANGE]


def test_half_a_surrogate_pair_is_no_other_text():
    found = [request_key([{"content": text}], None, model=None, settings=None) for text in ("\ud800", "\udfff", "?")]

    assert len(set(found)) == 3


@pytest.mark.parametrize(
    "strange", [[], "text", 7, {"function_tools": "none"}, {"function_tools": [None, {"name": 3}]}]
)
def test_strange_parameters_and_settings_are_taken_as_they_are(strange):
    found = key(request() | {"parameters": strange, "settings": strange})

    assert found != key(request())


def test_bytes_that_are_no_message_are_known_by_their_digest():
    broken, other = Payload(content=b"{broken"), Payload(content=b"{other")

    assert RequestKeys().of(_call(broken), None) == RequestKeys().of(_call(broken), None)
    assert RequestKeys().of(_call(broken), None) != RequestKeys().of(_call(other), None)


def test_what_has_no_canonical_form_is_equal_to_nothing():
    endless: list[Any] = []
    endless.append(endless)
    message = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": endless}]}

    first, second = (request_key([message], None, model=None, settings=None) for _ in range(2))

    assert first != second


def _call(*said: Payload) -> ModelCall:
    return ModelCall(history=extend(None, said), response=None)


# --- cost --------------------------------------------------------------------------------------


class CountedPayload(Payload):
    """Counts how often a message is read."""

    reads = 0

    @property
    def value(self) -> JsonValue:
        CountedPayload.reads += 1
        return json.loads(self.content)


def _reads(turns: int, ask: Callable[[list[ModelCall]], object]) -> int:
    """A run in which each request goes on from the one before it."""
    history: History | None = None
    calls = []
    for turn in range(turns):
        for kind in ("request", "response"):
            part = {"part_kind": "text", "content": f"{kind} {turn}"}
            history = History(history, CountedPayload(content=json.dumps({"kind": kind, "parts": [part]}).encode()))
        calls.append(ModelCall(history=history, response=None))
    CountedPayload.reads = 0
    ask(calls)
    return CountedPayload.reads


def _with_one_memory(calls: list[ModelCall]) -> set[bytes]:
    keys = RequestKeys()
    return {keys.of(call, None) for call in calls}


def _each_anew(calls: list[ModelCall]) -> set[bytes]:
    return {RequestKeys().of(call, None) for call in calls}


def test_each_message_of_a_run_is_read_once():
    assert [_reads(turns, _with_one_memory) for turns in (10, 100)] == [20, 200]
    assert _reads(100, _each_anew) == 10_100


def test_the_keys_do_not_depend_on_what_is_remembered():
    found: list[set[bytes]] = []

    _reads(20, lambda calls: found.extend([_with_one_memory(calls), _each_anew(calls)]))

    assert found[0] == found[1]
    assert len(found[0]) == 20


def test_a_history_of_thousands_of_messages_needs_no_recursion():
    assert _reads(5000, lambda calls: RequestKeys().of(calls[-1], None)) == 10_000
