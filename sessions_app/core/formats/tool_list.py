"""Lists of tool calls that people save on their own.

    [{"tool_name": "search_docs", "args": {…}, "result": {…}}, …]          recordings of tools
    [{"name": "search_docs", "args": […], "kwargs": {…}, "result": …}, …]  calls as Python made them
    [{"step": 1, "tool": "lookup_order", "args": {…}, "result": …}, …]     results that an agent keeps

Recordings may have `error`, `call_id` and `captured` too, as the recorder's own `ToolRecorder` writes them, and may
come as `{"run_id": …, "recordings": […]}`. Nobody says what the model said between the calls.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.fields import Fields, as_array
from sessions_app.core.formats.native import foreign_extra
from sessions_app.core.formats.native_steps import read_error
from sessions_app.core.formats.values import message_value
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject, JsonValue, sha256_hex
from sessions_app.core.run import Run, Step, ToolCall

SOURCE = "tool-recordings"
NAMES = ("tool_name", "tool", "name")
"""Of the field that names the tool."""


def matches(value: JsonValue) -> bool:
    """Whether this is parsed JSON of such a list, alone or with the id of its run."""
    if isinstance(value, dict):
        value = value.get("recordings") if "run_id" in value else None
    return isinstance(value, list) and bool(value) and all(map(is_call, value))


def is_call(value: JsonValue) -> bool:
    return isinstance(value, dict) and "args" in value and "result" in value and bool({*NAMES} & value.keys())


def parse_tool_list(content: bytes, limits: Limits = Limits()) -> Run:
    run_id = f"run-{sha256_hex(content)[:16]}"
    extra: JsonObject = {}
    if content.lstrip()[:1] == b"{":
        fields = Fields(content)
        run_id = fields.required("run_id", fields.identifier)
        calls = fields.items("recordings") or []
        extra = foreign_extra(fields.rest(), SOURCE)
    else:
        calls = as_array(content, "the document")
    if len(calls) > limits.max_steps:
        raise RecordTooLarge(f"There are {len(calls)} calls; the limit is {limits.max_steps}.")
    steps = tuple(read_call(Fields(raw, f"[{i}]"), i + 1) for i, raw in enumerate(calls))
    return Run(run_id=run_id, session_id=run_id, status="cut_off", source_format=SOURCE, steps=steps, extra=extra)


def read_call(fields: Fields, index: int) -> Step:
    """One call of the list as a step."""
    name = next((found for name in NAMES if (found := fields.name(name)) is not None), None)
    name = name or fields.required(NAMES[0], fields.name)
    arguments, result = _arguments(fields), fields.written("result")
    error = read_error(fields, "error")
    is_answered = error is None and result is not None and fields.boolean("captured") is not False
    call = ToolCall(
        tool_name=name,
        call_id=fields.name("call_id"),
        arguments=None if arguments is None else message_value(arguments),
        result=message_value(result) if result is not None and is_answered else None,
        outcome="failed" if error is not None else None,
    )
    return replace(
        Step(index=index, name=name, call=call, error=error, duration_ms=_duration(fields)), extra=_rest(fields)
    )


def _arguments(fields: Fields) -> bytes | None:
    """Arguments with names, or those that Python took by their place; which parameters the latter are, nobody says."""
    by_place, by_name = fields.written("args"), fields.written("kwargs")
    if by_name in (None, b"{}"):
        return by_place
    if by_place in (None, b"[]", b"{}"):
        return by_name
    raise fields.error(
        "args",
        "holds arguments without names beside kwargs. Send all of them as one object, by the names of the tool's "
        "parameters: inspect.signature(tool).bind(*args, **kwargs).arguments",
    )


def _duration(fields: Fields) -> float | None:
    return next((found for name in ("duration_ms", "duration") if (found := fields.number(name)) is not None), None)


def _rest(fields: Fields) -> dict[str, JsonValue]:
    return {f"{SOURCE}.{name}": value for name, value in fields.rest().items()}
