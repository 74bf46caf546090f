"""What the library that replays cannot read: messages, of which it refuses a whole list for one, and what else it takes
over of a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from sessions_app.core.judge.message_shapes import MESSAGE, PARAMETERS, PARAMETERS_WITH_TOOLS, PROMPT, TOOL
from sessions_app.core.judge.reading import SeenMessage, main_models, seen_messages, step_name
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.payload import JsonObject, JsonValue, Payload, compact_json
from sessions_app.core.run import ModelCall, Run

UNREADABLE = frozenset({"unknown_message_part", "unreadable_parameters"})
"""Reasons for which the library refuses to load what a replay needs."""


def unreadable_messages(run: Run) -> Iterator[Reason]:
    """The first message that the replaying library would refuse; later ones add nothing."""
    for seen in seen_messages(run):
        problem = refusal(seen)
        if problem:
            message = f"{problem} {_place(run, seen.step)}; the replay cannot load that message."
            yield Reason(code="unknown_message_part", message=message, step=seen.step)
            return


def unreadable_parameters(run: Run) -> Iterator[Reason]:
    """The first request with definitions of tools, an output or instructions that the library would refuse."""
    read: set[int] = set()
    for step, call in main_models(run):
        for name, shape, payload in _taken_over(call):
            problem = None if id(payload) in read else _first_error(shape, payload.value)
            read.add(id(payload))
            if problem:
                where = ".".join([name, *map(str, problem["loc"])])
                message = f"The {where} of {step_name(step)} cannot be read; the replay cannot ask a model with it."
                yield Reason(code="unreadable_parameters", message=message, step=step.index)
                return


def _taken_over(call: ModelCall) -> Iterator[tuple[str, TypeAdapter[Any], Payload]]:
    for tool in call.tools or ():
        yield "tools", TOOL, tool
    if call.parameters is not None:
        yield "parameters", PARAMETERS if call.tools is not None else PARAMETERS_WITH_TOOLS, call.parameters


def unreadable_contents(run: Run) -> Iterator[Reason]:
    """What a tool sent to the model beside its answer is read as a prompt is."""
    for step, call in run.tool_calls:
        if call.content is not None and _first_error(PROMPT, call.content.value):
            message = f"The content of {step_name(step)} is neither a text nor a list of texts and files."
            yield Reason(code="unknown_message_part", message=message, step=step.index)
            return


def is_prompt(payload: Payload) -> bool:
    """A text, or a list of texts and files."""
    return payload.is_text or (payload.is_json and _first_error(PROMPT, payload.value) is None)


def _first_error(shape: TypeAdapter[Any], value: JsonValue) -> ErrorDetails | None:
    try:
        shape.validate_json(compact_json(value))
    except ValidationError as error:
        return error.errors(include_url=False)[0]
    return None


def _place(run: Run, step: int) -> str:
    if step == 0:
        return "in the earlier turns"
    return "at the end" if step > len(run.steps) else f"at step {step}"


def refusal(seen: SeenMessage) -> str | None:
    """What the library would refuse of a message, as a sentence that goes on with where it stands."""
    error = _first_error(MESSAGE, seen.message)
    return None if error is None else _words(error, seen.message)


def _words(error: ErrorDetails, message: JsonObject) -> str:
    """The path goes through the kind of the message and that of the part, by which pydantic chose what to read."""
    path = [str(each) for each in error["loc"]]
    if not path:
        return "A message of an unknown kind stands"
    if path[1] != "parts" or len(path) < 3:
        return f"A message {_fault(error, path[1])} stands"
    part = message["parts"][int(path[2])]
    if not isinstance(part, dict):
        return "A message part that is no object stands"
    kind = str(part.get("part_kind"))
    if len(path) < 4 and error["type"] == "value_error":
        return f"A {kind} part that is none of its tool_kind stands"
    if len(path) < 4:
        return f"A message part of the unknown kind {kind[:60]!r} stands"
    return f"A {kind} part {_fault(error, path[4])} stands"


def _fault(error: ErrorDetails, field: str) -> str:
    is_missing = error["loc"][-1] == field and (error["type"] == "missing" or error["input"] is None)
    return f"without {field}" if is_missing else f"whose {field} cannot be read"
