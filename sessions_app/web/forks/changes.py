"""The changes of a fork's form: each card read into changes of the order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sessions_app.core.payload import JsonObject
from sessions_app.web.forks.inputs import Refused, Typed, Written, json_of, number_of, text_of
from sessions_app.web.forks.recorded import Recorded

RULES = (1, 2)


def _instructions(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    change = {"kind": "instructions", "value": text_of(typed, "instructions")}
    yield Written(value=change, inputs={"": "instructions"})


def _message(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    if recorded.start.row.kind == "tool":
        raise Refused("message", "A message can only be changed in the first model request: fork from that step.")
    value = json_of(typed, "message") if typed.get("message_as") == "json" else text_of(typed, "message")
    index = number_of(typed.get("message_index", ""))
    change = {"kind": "message", "step": _request_step(recorded, "message"), "index": index, "value": value}
    yield Written(value=change, inputs={"": "message", "index": "message_index"})


def _model(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    """What is as it was recorded is not said again: later steps may have had another model."""
    model, settings = text_of(typed, "model").strip(), text_of(typed, "settings").strip()
    value: JsonObject = {}
    if model and model != recorded.request.model:
        value["model"] = model
    if settings and settings != recorded.request.settings.editable:
        value["settings"] = json_of(typed, "settings")
    if not value:
        raise Refused("model", "Neither the model nor its settings differ from what was recorded.")
    yield Written(value={"kind": "model", "value": value}, inputs={"": "settings", "value.model": "model"})


def _result(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    if recorded.tool.row is None:
        raise Refused("result", "No tool is called at this step or after it.")
    answer = _preset(typed["preset"], recorded) if typed.get("preset") else _typed_result(typed)
    change = {"kind": "tool_result", "step": recorded.tool.row.index, **answer}
    yield Written(value=change, inputs={"": "result", "step": "result_step", "error.type": "result_type"})


def ticked_presets(typed: Typed) -> list[str]:
    """Their keys, in the order of the page."""
    return list(dict.fromkeys(typed.get("preset", "").split()))


def _preset(key: str, recorded: Recorded) -> JsonObject:
    found = next((preset for preset in recorded.tool.presets if preset.key == key), None)
    if found is None:
        raise Refused("preset", f"This answer has no preset {key!r}.")
    return found.change


def _typed_result(typed: Typed) -> JsonObject:
    if typed.get("result_as") == "json":
        return {"value": json_of(typed, "result")}
    if typed.get("result_as") != "error":
        return {"value": text_of(typed, "result")}
    error: JsonObject = {"message": text_of(typed, "result")}
    if name := text_of(typed, "result_type").strip():
        error["type"] = name
    if typed.get("result_crashes"):
        error["crashes"] = True
    return {"error": error}


def _answer(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    value: JsonObject = {}
    if text := text_of(typed, "answer_text"):
        value["text"] = text
    if text_of(typed, "answer_calls").strip():
        value["tool_calls"] = json_of(typed, "answer_calls")
    change = {"kind": "model_answer", "step": _request_step(recorded, "answer_text"), "value": value}
    yield Written(value=change, inputs={"": "answer_text", "value.tool_calls": "answer_calls"})


def _state(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    change = {"kind": "state", "step": recorded.start.row.index, "patch": json_of(typed, "patch")}
    yield Written(value=change, inputs={"": "patch"})


def _clock(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    text = text_of(typed, "clock").strip()
    yield Written(value={"kind": "clock", "value": number_of(text)}, inputs={"": "clock"})


def _rules(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    rows = [(row, text_of(typed, f"rule_when_{row}"), text_of(typed, f"rule_text_{row}")) for row in RULES]
    written = [(row, when, text) for row, when, text in rows if when.strip() or text.strip()]
    if not written:
        raise Refused("rule_when_1", "Write when the rule holds, and what the model then answers.")
    for row, when, text in written:
        change = {"kind": "rule", "when": when.strip(), "answer": {"text": text}}
        yield Written(value=change, inputs={"": f"rule_when_{row}", "answer": f"rule_text_{row}"})


def _agent(typed: Typed, recorded: Recorded) -> Iterator[Written]:
    if not typed.get("agent"):
        raise Refused("agent", "Choose one of the registered agents.")
    yield Written(value={"kind": "agent", "value": typed["agent"]}, inputs={"": "agent"})


CARDS: dict[str, Callable[[Typed, Recorded], Iterator[Written]]] = {
    "instructions": _instructions,
    "message": _message,
    "model": _model,
    "result": _result,
    "answer": _answer,
    "state": _state,
    "clock": _clock,
    "rule": _rules,
    "agent": _agent,
}
"""In the order of the page."""


def _request_step(recorded: Recorded, name: str) -> int:
    if recorded.request.row is None:
        raise Refused(name, "The model is not called at this step or later.")
    return recorded.request.row.index
