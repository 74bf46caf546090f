"""What a tool of the OpenAI Agents SDK returned, and what its guardrails decided, beside what the model was told."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice

from sessions_app.core.compare.strict import same_json
from sessions_app.core.errors import RecordError
from sessions_app.core.formats.values import read_value
from sessions_app.core.guardrails import GUARDED
from sessions_app.core.judge.openai_words import words_of
from sessions_app.core.judge.reading import as_object, objects_in, step_name, value_of
from sessions_app.core.judge.reasons import Reason, reason_at, reason_at_end
from sessions_app.core.payload import JsonObject, JsonValue, Payload, compact_json
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.run import OtherCall, Run, main_steps


def return_gaps(run: Run) -> Iterator[Reason]:
    if run.source_format == "native" and is_openai_agents(run):
        yield from islice(_other_returns(run), 1)
        yield from islice(chain(_other_guardrails(run), _other_looks(run)), 1)
        yield from islice(_other_shells(run), 1)


def _other_guardrails(run: Run) -> Iterator[Reason]:
    """The words with which a guardrail refuses a call, or what it gave, are the answer that the model is told."""
    told = {call.result.as_text() for _, call in run.tool_calls if call.result is not None}
    for place, behavior in _behaviors(run) if run.status == "ok" else ():
        said = behavior.get("message")
        if isinstance(said, str) and (said not in told or behavior.get("type") != "reject_content"):
            message = f"The run's {place} says something else than the model was told."
            yield reason_at_end(run, "items_contradicted", message)


def _behaviors(run: Run) -> Iterator[tuple[str, JsonObject]]:
    """What each guardrail of a tool decided, and where that stands."""
    for field in ("tool_input_guardrails", "tool_output_guardrails"):
        rows = run.extra.get(field)
        for position, row in enumerate(rows if isinstance(rows, list) else ()):
            behavior = row.get("behavior") if isinstance(row, dict) else None
            if isinstance(behavior, dict):
                yield f"{field}[{position}]", behavior


def _other_looks(run: Run) -> Iterator[Reason]:
    """Each guardrail of the run has a step too. A run that goes on tells of those of the run before it as well."""
    told = Counter(_looks(run))
    steps = (step for step in main_steps(run) if step.extra.get("span") == "guardrail")
    seen = Counter((step.name, value_of(step.call.result)) for step in steps if isinstance(step.call, OtherCall))
    if run.deferred is None and (told - seen or (run.status == "ok" and seen - told)):
        message = "The run's guardrails are not those of its steps, or decided something else."
        yield reason_at_end(run, "items_contradicted", message)


def _looks(run: Run) -> Iterator[tuple[str, JsonValue]]:
    for field in ("input_guardrails", "output_guardrails"):
        for row in objects_in(run.extra.get(field)):
            if "triggered" in row:
                yield str(row.get("name")), GUARDED[row["triggered"] is True]


def _other_returns(run: Run) -> Iterator[Reason]:
    for step, call in run.tool_calls:
        returned = _as_recorded(step.extra.get("returned"))
        if returned is not None and call.result is not None and _is_other(returned, call.result):
            message = f"What {step_name(step)} returned is not what the model was told of it."
            yield reason_at(run, "answer_contradicted", message, step)


def _is_other(returned: JsonValue, told: Payload) -> bool:
    """The SDK tells the model what Python prints for a value that a tool returned, and the texts and files that it
    returned as they are."""
    if not told.is_text:
        return bool(list(words_of(returned))) and [*words_of(returned)] != [*words_of(value_of(told))]
    if isinstance(returned, dict | list):
        printed = _printed(told.value)
        return printed is not None and not same_json(printed, returned)
    return isinstance(returned, bool | int | float) and str(returned) != told.as_text()


def _other_shells(run: Run) -> Iterator[Reason]:
    """An item holds what a shell gave twice: as the model was told of it, and with more beside it."""
    for position, item in enumerate(objects_in(run.extra.get("items"))):
        raw = as_object(item.get("raw"))
        told, kept = objects_in(raw.get("output")), objects_in(raw.get("shell_output"))
        if kept and (len(told) != len(kept) or not all(map(_is_same_shell, told, kept))):
            message = f"The run's items[{position}] holds one thing as output, and another as shell_output."
            yield reason_at_end(run, "items_contradicted", message)


def _is_same_shell(told: JsonObject, kept: JsonObject) -> bool:
    """Of a result the SDK keeps the code once more, and of a text how it ended in a word."""
    ended = as_object(told.get("outcome"))
    code = {"exit_code": ended["exit_code"]} if ended.get("exit_code") is not None else {}
    result = {"status": "timeout" if ended.get("type") == "timeout" else "completed", "outcome": ended, **code}
    facts = {name: kept[name] for name in ("status", "outcome", "exit_code") if name in kept}
    ends = [result, _ENDS_OF_TEXTS.get(str(code.get("exit_code")))]
    streams = (same_json(value, kept.get(name)) for name, value in told.items() if name != "outcome")
    return all(streams) and any(same_json(facts, each) for each in ends)


_ENDS_OF_TEXTS: dict[str, JsonObject] = {
    "0": {"status": "completed", "outcome": "success"},
    "1": {"status": "failed", "outcome": "failure"},
}


def _as_recorded(returned: JsonValue) -> JsonValue:
    """The field is of the type *value*: what looks like bytes stands wrapped in it."""
    try:
        kept = read_value(compact_json(returned), "returned")
    except RecordError:
        return returned
    return kept.value if kept.is_json else None


def _printed(text: JsonValue) -> JsonObject | list[JsonValue] | None:
    """The object or list that a text is in Python's own spelling; None where that holds more than JSON has."""
    if not isinstance(text, str) or not text.startswith(("{", "[")):
        return None
    try:
        value = _as_json(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict | list) else None


def _as_json(value: object) -> JsonValue:
    match value:
        case list() | tuple():
            return [_as_json(each) for each in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _as_json(each) for key, each in value.items()}
        case str() | bool() | int() | float() | None:
            return value
    raise ValueError("no JSON value")
