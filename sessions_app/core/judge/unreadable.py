"""Messages that the library which replays cannot read: it refuses a whole list for one of them."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sessions_app.core.judge.message_shapes import MESSAGE
from sessions_app.core.judge.reading import SeenMessage, seen_messages
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.payload import JsonObject, compact_json
from sessions_app.core.run import Run


def unreadable_messages(run: Run) -> Iterator[Reason]:
    """The first message that the replaying library would refuse; later ones add nothing."""
    for seen in seen_messages(run):
        problem = refusal(seen)
        if problem:
            message = f"{problem} {_place(run, seen.step)}; the replay cannot load that message."
            yield Reason(code="unknown_message_part", message=message, step=seen.step)
            return


def _place(run: Run, step: int) -> str:
    if step == 0:
        return "in the earlier turns"
    return "at the end" if step > len(run.steps) else f"at step {step}"


def refusal(seen: SeenMessage) -> str | None:
    """What the library would refuse of a message, as a sentence that goes on with where it stands."""
    try:
        MESSAGE.validate_json(compact_json(seen.message))
    except ValidationError as error:
        return _words(error.errors(include_url=False)[0], seen.message)
    return None


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
    if len(path) < 4:
        return f"A message part of the unknown kind {kind[:60]!r} stands"
    return f"A {kind} part {_fault(error, path[4])} stands"


def _fault(error: ErrorDetails, field: str) -> str:
    is_missing = error["loc"][-1] == field and (error["type"] == "missing" or error["input"] is None)
    return f"without {field}" if is_missing else f"whose {field} cannot be read"
