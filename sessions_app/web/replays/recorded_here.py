"""Where a replay waits: what was recorded at that step, to be given again or edited, and what the request ends with."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from sessions_app.core.clipping import shortened
from sessions_app.core.judge.reading import TIMES
from sessions_app.core.payload import JsonValue
from sessions_app.models import Replay, Run
from sessions_app.queries import steps
from sessions_app.web.forks.recorded import Request, recorded_at
from sessions_app.web.forks.values import Value
from sessions_app.web.steps.messages import Message
from sessions_app.web.steps.sections import read_message

_LONGEST = 160


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedHere:
    """The recorded answer of the step."""

    words: str
    fields: dict[str, str]
    """Of the form in which an answer is typed."""


def recorded_here(replay: Replay, kind: str, step: int) -> RecordedHere | None:
    """None where the recording has no such step there, or no answer that a form can hold whole."""
    run = replay.run_as_asked
    row = run.step(step)
    if row is None or row.kind != kind:
        return None
    found = recorded_at(run, row, message_index=None, tool_step=None)
    return _of_model(found.request) if kind == "model" else _of_tool(found.tool.value)


def _of_tool(value: Value) -> RecordedHere | None:
    if not value.editable:
        return None
    if value.form == "error":
        return RecordedHere(words=shortened(value.editable, _LONGEST), fields={"way": "error", "error": value.editable})
    typed = json.dumps(value.editable, ensure_ascii=False) if value.form == "text" else value.editable
    return RecordedHere(words=shortened(value.editable, _LONGEST), fields={"way": "value", "value": typed})


def _of_model(request: Request) -> RecordedHere | None:
    text, calls = request.answer_text.editable, request.answer_calls.editable
    said = [shortened(text, _LONGEST)] if text else []
    asked = [shortened(f"→ {', '.join(_counted(calls))}", _LONGEST)] if calls else []
    words = " ".join([*said, *asked])
    return RecordedHere(words=words, fields={"text": text, "tool_calls": calls}) if words else None


def _counted(calls: str) -> list[str]:
    made = Counter(f"{call['name']}({_compact(call.get('arguments'))})" for call in json.loads(calls))
    return [f"{call} {TIMES}{number}" if number > 1 else call for call, number in made.items()]


def _compact(arguments: JsonValue) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def last_message(made: Run | None) -> Message | None:
    """Of the request to the model that waits, as its step shows it; None where there is none."""
    row = made.steps[-1] if made and made.steps else None
    if made is None or row is None or row.kind != "model":
        return None
    references = steps.chain_of(made, row.input_node).messages[-1:]
    sent = steps.read_messages(made, references)
    return read_message(sent[0]) if sent else None
