"""A comparison in words."""

from __future__ import annotations

import json

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.compare.keys import as_fields, decision_of
from sessions_app.core.compare.runs import Comparison, Divergence, StepPair
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ModelCall, Step, answered, asked

_VALUE_LENGTH = 80
_CALL_LENGTH = 300


def divergence_sentence(comparison: Comparison) -> str:
    """Where the runs part, such as `lookup_order: args.user_id  absent  →  "u_7710"`."""
    found = comparison.divergence
    if found is None:
        return agreement_sentence(comparison)
    left, right = (
        _side(found.left_step, found.left, found),
        _side(found.right_step, found.right, found),
    )
    note = f"  ({found.note})" if found.note else ""
    return f"{_place(found)}  {left}  →  {right}{note}"


def agreement_sentence(comparison: Comparison) -> str:
    """How much was compared and found the same, and what could not be."""
    steps = _count(sum(not pair.is_unplayed for pair in comparison.counted), "step")
    text = f"No difference in {steps}, {_count(comparison.compared_fields, 'field')}"
    if comparison.not_comparable:
        text += f"; {_count(comparison.not_comparable, 'field')} cannot be compared"
    if comparison.not_played:
        text += f"; {_count(comparison.not_played, 'step')} not played"
    if comparison.ignored_count:
        text += f"; {_count(comparison.ignored_count, 'volatile field')} ignored"
    return text


def divergence_lines(comparison: Comparison) -> list[str]:
    """`Runs diverged at step N`, and what each run did there, or what was different where both did the same."""
    found = comparison.divergence
    if found is None:
        return ["Runs are identical" if comparison.identical else agreement_sentence(comparison)]
    step = found.left_step or found.right_step
    if step is None:
        return _value_lines(found, found.path)
    left, right = _done(comparison, found, "left"), _done(comparison, found, "right")
    if left == right:
        return _value_lines(found, f"step {step.index}, {found.path}")
    return [f"Runs diverged at step {step.index}", f"Run 1: {left}", f"Run 2: {right}"]


def _value_lines(found: Divergence, place: str) -> list[str]:
    return [f"Runs diverged at {place}", f"Run 1: {value_text(found.left)}", f"Run 2: {value_text(found.right)}"]


def value_text(value: JsonValue, length: int = _VALUE_LENGTH) -> str:
    """A value on one line, cut where it is long."""
    if value is MISSING:
        return "absent"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= length else text[: length - 1] + "…"


def call_text(step: Step) -> str:
    """`name(arguments)`; of a model step what it answered."""
    if isinstance(step.call, ModelCall):
        return f"{step.name} → {_answer_text(step)}"
    arguments = asked(step)
    inner = "" if arguments is None else value_text(arguments.parsed, _CALL_LENGTH)
    return f"{step.name}({inner})"


def _answer_text(step: Step) -> str:
    payload = answered(step)
    if payload is None:
        return "no answer"
    decision = decision_of(payload)
    if decision is None:
        return value_text(payload.parsed, _CALL_LENGTH)
    return ", ".join(map(_part_text, decision)) or "nothing"


def _part_text(part: JsonObject) -> str:
    if "tool_name" in part:
        return f"{part['tool_name']}({value_text(as_fields(part['args']), _CALL_LENGTH)})"
    return value_text(part["content"], _CALL_LENGTH)


def _place(found: Divergence) -> str:
    step = found.left_step or found.right_step
    if step is None:
        return found.path
    return f"step {step.index}" if _is_whole_step(found) else f"{step.name}: {found.path}"


def _is_whole_step(found: Divergence | None) -> bool:
    return found is not None and found.path.startswith("steps[")


def _side(step: Step | None, value: JsonValue, found: Divergence) -> str:
    if _is_whole_step(found):
        return "absent" if step is None else call_text(step)
    return value_text(value)


def _done(comparison: Comparison, found: Divergence, side: str) -> str:
    step: Step | None = getattr(found, f"{side}_step")
    if step is not None:
        return call_text(step)
    later = _next_step(comparison, found, side)
    return "no more steps" if later is None else f"no such step; next is {call_text(later)}"


def _next_step(comparison: Comparison, found: Divergence, side: str) -> Step | None:
    """What the run that lacks a step did after the place where the other one has it."""
    rows = iter(comparison.steps)
    for pair in rows:
        if _is_at(pair, found):
            break
    return next((step for pair in rows if (step := getattr(pair, side)) is not None), None)


def _is_at(pair: StepPair, found: Divergence) -> bool:
    """The row of a step that only one side has."""
    return pair.left is found.left_step and pair.right is found.right_step


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
