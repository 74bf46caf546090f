"""Spans with the plain attributes that people write by hand around their own steps and tools.

| attribute | stands on | holds |
| --- | --- | --- |
| `run_id` | the span of the run | the id of the run, under which it is found |
| `query` | the span of the run | what was asked |
| `step_number` | a step | its number |
| `tool_name`, `args` | a call of a tool | its name, and its arguments as JSON text |
| `success`, `error` | a call of a tool | whether it succeeded, and what went wrong |
| `result` | a call of a tool | what it answered, as JSON text or as it is |

Other attributes, such as `docs_count`, `result_size` and `duration_ms`, say nothing that a replay could use: they are
shown with the span. A span that says `result_size` and no `result` has lost its answer.
"""

from __future__ import annotations

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import Read, error_of
from sessions_app.core.spans.reading import Reading
from sessions_app.core.spans.span import Span

CONVENTION = "plain-steps"


def read(span: Span) -> Reading | None:
    """What the span says, or None when it has none of these attributes."""
    said = Read(span.attributes)
    if said.has("tool_name"):
        reading = _tool(said)
    elif said.has("run_id") or said.has("step_number"):
        reading = Reading(convention=CONVENTION, kind="chain", input=said.raw("query"))
    else:
        return None
    reading.run_id = said.text("run_id")
    reading.session_id, reading.user_id = said.text("session.id", "session_id"), said.text("user.id", "user_id")
    reading.tenant_id = said.text("tenant.id", "tenant_id")
    reading.error = error_of(span) or _error(said)
    reading.used = frozenset(said.used)
    return reading


def _tool(said: Read) -> Reading:
    name = said.text("tool_name")
    arguments, result = said.raw("args"), said.raw("result")
    return Reading(
        convention=CONVENTION,
        kind="tool",
        name=name,
        tool_name=name,
        arguments=parsed(arguments),
        has_arguments=arguments is not None,
        result=_value(result),
        has_result=result is not None,
    )


def _value(result: JsonValue) -> JsonValue:
    """Objects and lists that were written as text; a text or a number in words stays what it is."""
    value = parsed(result)
    return value if isinstance(value, dict | list) else result


def _error(said: Read) -> ErrorInfo | None:
    """`success` and `error` stay attributes that are shown; here they only say that the call failed."""
    success, message = parsed(said.peek("success")), said.peek("error")
    if success is not False and not (isinstance(message, str) and message):
        return None
    return ErrorInfo(type=None, message=message if isinstance(message, str) else None)
