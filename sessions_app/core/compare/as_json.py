"""A comparison as the API gives it. Absent and not captured values are null; `status` tells which."""

from __future__ import annotations

from sessions_app.core.compare.facts import Fact
from sessions_app.core.compare.json_diff import Difference, Missing
from sessions_app.core.compare.runs import Comparison, Divergence, Ignored, StepPair
from sessions_app.core.compare.sentences import divergence_lines, divergence_sentence
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Step


def to_json(comparison: Comparison) -> JsonObject:
    return {
        "left": comparison.left.run_id,
        "right": comparison.right.run_id,
        "identical": comparison.identical,
        "divergence": comparison.divergence and divergence_json(comparison.divergence),
        "sentence": divergence_sentence(comparison),
        "lines": divergence_lines(comparison),
        "compared_fields": comparison.compared_fields,
        "not_comparable": comparison.not_comparable,
        "approximate": comparison.approximate,
        "facts": [_fact(fact) for fact in comparison.facts],
        "steps": [_pair(pair) for pair in comparison.steps],
        "ignored": [_ignored(ignored) for ignored in comparison.ignored],
    }


def divergence_json(divergence: Divergence) -> JsonObject:
    return {
        "left_step": _index(divergence.left_step),
        "right_step": _index(divergence.right_step),
        "path": divergence.path,
        "left": _value(divergence.left),
        "right": _value(divergence.right),
        "note": divergence.note,
    }


def difference_json(difference: Difference) -> JsonObject:
    return {
        "path": difference.path,
        "left": _value(difference.left),
        "right": _value(difference.right),
        "status": difference.status,
        "note": difference.note,
    }


def _fact(fact: Fact) -> JsonObject:
    return {
        "name": fact.name,
        "left": fact.left,
        "right": fact.right,
        "status": fact.status,
        "captured": fact.is_captured,
        "differences": [difference_json(found) for found in fact.differences],
    }


def _pair(pair: StepPair) -> JsonObject:
    step = pair.left or pair.right
    return {
        "left": _index(pair.left),
        "right": _index(pair.right),
        "status": pair.status,
        "kind": step and step.kind,
        "name": step and step.name,
        "moved_to": pair.moved_to,
        "differences": [difference_json(found) for found in pair.differences],
        "has_more": pair.has_more,
    }


def _ignored(ignored: Ignored) -> JsonObject:
    rule = ignored.rule
    return {"rule": rule.key, "name": rule.name, "why": rule.why, "count": ignored.count}


def _index(step: Step | None) -> int | None:
    return None if step is None else step.index


def _value(value: JsonValue) -> JsonValue:
    return None if isinstance(value, Missing) else value
