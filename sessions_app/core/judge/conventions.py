"""How to capture next time what is missing, by where a run came from."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.embedded_json import parsed
from sessions_app.core.judge.convention_fixes import BY_ORIGIN, CONTENTS, CUT_OFF, SPAN_FIXES, Fixes
from sessions_app.core.judge.fixes import FIXES, WITHOUT_OWN_CODE, Fix
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import OPENAI_AGENTS, PYDANTIC_AI, SPANS, Run
from sessions_app.core.shared_values import once_each


def fix_for(run: Run, key: str) -> Fix:
    """`key` is one of the kit, or the code of a verdict's reason.

    For a run that came as spans it is a setting of the instrumentation that made them, where one is known.
    """
    if key in WITHOUT_OWN_CODE and not _can_be_registered(run):
        return WITHOUT_OWN_CODE[key]
    if run.source_format != SPANS:
        return FIXES[key]
    if key in CONTENTS and is_cut_off(run):
        return CUT_OFF
    return _of_origin(run, key) or SPAN_FIXES.get(key) or FIXES[key]


_REGISTERED = (OPENAI_AGENTS, PYDANTIC_AI)


def _can_be_registered(run: Run) -> bool:
    """Whether its agent may be of a framework whose agents the server runs. A record that somebody wrote may be any."""
    names = (run.agent.framework or "", *_origins(run))
    return not run.is_told_by_others or any(each in name.replace("_", "-") for name in names for each in _REGISTERED)


def _of_origin(run: Run, key: str) -> Fix | None:
    """Where contents are there, nobody left them out."""
    fitting = (fixes[key] for fixes in _fitting(run) if key in fixes and not _is_of_contents(fixes, key, run))
    return next(fitting, None)


def _is_of_contents(fixes: Fixes, key: str, run: Run) -> bool:
    return key in CONTENTS and fixes[key] is fixes.get("input_missing") and _has_contents(run)


@once_each
def _has_contents(run: Run) -> bool:
    return any(call.history is not None and call.response is not None for _, call in run.model_calls)


@once_each
def _fitting(run: Run) -> list[Fixes]:
    names = list(_origins(run))
    return [fixes for prefix, fixes in BY_ORIGIN if any(name.startswith(prefix) for name in names)]


def _origins(run: Run) -> Iterator[str]:
    """Names of the libraries that made the spans, with their versions, and the conventions that were found."""
    trace = run.extra.get("trace")
    for held in (trace.get("scopes"), trace.get("conventions")) if isinstance(trace, dict) else ():
        if isinstance(held, list | dict):
            yield from (name for name in held if isinstance(name, str))


@once_each
def is_cut_off(run: Run) -> bool:
    """Whether a value begins as JSON and ends in the middle of it; such values are kept as not understood."""
    return any(_ends_in_the_middle(value) for value in _not_understood(run))


def _not_understood(run: Run) -> Iterator[JsonValue]:
    trace = run.extra.get("trace")
    root = trace.get("root") if isinstance(trace, dict) else None
    for span in (root, *(step.extra.get("span") for step in run.steps)):
        yield from _attributes(span)


def _attributes(span: JsonValue) -> Iterator[JsonValue]:
    held: JsonObject = span if isinstance(span, dict) else {}
    attributes = held.get("attributes")
    if isinstance(attributes, dict):
        yield from attributes.values()


def _ends_in_the_middle(value: JsonValue) -> bool:
    if not isinstance(value, str) or not value.startswith(('{"', '[{"', '["')):
        return False
    return not value.rstrip().endswith(("}", "]")) and isinstance(parsed(value), str)
