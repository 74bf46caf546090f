"""What is known of two runs as a whole, field by field, causes before effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from sessions_app.core.compare.json_diff import MISSING, Difference, Missing, Tally
from sessions_app.core.compare.payload_fields import FieldComparer
from sessions_app.core.compare.status import PairStatus, status_of
from sessions_app.core.compare.step_fields import StepComparer
from sessions_app.core.compare.volatile import SPELLED_AS_TEXT
from sessions_app.core.guardrails import guardrails_of
from sessions_app.core.history import messages
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import ModelCall, Run
from sessions_app.core.told_otherwise import told_of_run

MAX_DIFFERENCES = 500
"""Shown for one step or fact; who differs in more is different, and nobody reads on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One fact of both runs. None stands for not captured."""

    name: str
    left: JsonValue
    right: JsonValue
    status: PairStatus
    differences: tuple[Difference, ...] = ()
    is_captured: bool = True
    """False where neither run has it, so that nothing was compared."""


Read = Callable[[Run], JsonValue]

_BEFORE: tuple[tuple[str, Read], ...] = (
    ("input", lambda run: run.input),
    ("instructions", lambda run: run.instructions),
    ("model", lambda run: run.model),
    ("provider", lambda run: run.provider),
    ("region", lambda run: run.region),
    ("user_id", lambda run: run.user_id),
    ("tenant_id", lambda run: run.tenant_id),
    ("flags", lambda run: run.flags),
    ("agent.name", lambda run: run.agent.name),
    ("agent.version", lambda run: run.agent.version),
    ("agent.framework", lambda run: run.agent.framework),
    ("agent.framework_version", lambda run: run.agent.framework_version),
    ("agent.entry_point", lambda run: run.agent.entry_point),
    ("agent.end_strategy", lambda run: run.agent.end_strategy),
    ("agent.tool_retries", lambda run: run.agent.tool_retries),
    ("agent.output_retries", lambda run: run.agent.output_retries),
    ("agent.output_function", lambda run: run.agent.output_function),
    ("agent.output_changed", lambda run: run.agent.output_changed),
    ("agent.output_unchecked", lambda run: run.agent.output_unchecked),
    ("agent.usage_limits", lambda run: run.agent.usage_limits),
    ("code.commit", lambda run: run.code.commit),
    ("code.dirty", lambda run: run.code.dirty),
    ("code.versions", lambda run: run.code.versions),
    ("deferred", lambda run: run.deferred),
    ("initial_state", lambda run: run.initial_state),
)

_OF_STEPS: tuple[tuple[str, Read], ...] = (
    ("answered_models", lambda run: _answered_models(run)),
    ("parameters", lambda run: _first(run, lambda call: call.parameters)),
    ("tools", lambda run: _first(run, lambda call: call.tools)),
)
"""Repeated from the steps, of the first model step that has them, and therefore not counted."""

_AFTER: tuple[tuple[str, Read], ...] = (("status", lambda run: run.status),)


def compare_facts(left: Run, right: Run, steps: StepComparer) -> Iterator[Fact]:
    fields = steps.fields
    aside = FieldComparer(fields.rules, Tally())
    yield from _plain(_BEFORE, left, right, fields)
    yield _prior(left, right, fields)
    one, other = (_first(run, lambda call: call.settings) for run in (left, right))
    yield fact("settings", one, other, aside.payloads("settings", one, other))
    yield from _plain(_OF_STEPS, left, right, aside)
    yield from _plain(_AFTER, left, right, fields)
    yield _output(left, right, fields)
    yield _error(left, right, steps)
    yield _final(left, right, steps)
    yield from _guardrails(left, right, fields)
    yield from _told_otherwise(left, right, steps)
    yield from _other_fields(left, right, steps)


def _told_otherwise(left: Run, right: Run, steps: StepComparer) -> Iterator[Fact]:
    """Nothing is to be said where both tell the same."""
    one, other = told_of_run(left), told_of_run(right)
    found = fact("told_otherwise", one, other, steps.told_otherwise(one, other))
    if found.differences:
        yield found


def _other_fields(left: Run, right: Run, steps: StepComparer) -> Iterator[Fact]:
    """What a rule leaves out, which thereby is counted; shown where that rule is switched off."""
    one, other = ({"source_format": run.source_format, **run.extra} for run in (left, right))
    found = fact("other_fields", None, None, steps.other_fields(one, other))
    if found.differences:
        yield replace(found, is_captured=True)


def _plain(readers: tuple[tuple[str, Read], ...], left: Run, right: Run, fields: FieldComparer) -> Iterator[Fact]:
    for name, read in readers:
        one, other = read(left), read(right)
        yield fact(name, one, other, _compare(name, one, other, fields))


def _compare(name: str, left: JsonValue, right: JsonValue, fields: FieldComparer) -> Iterator[Difference]:
    if isinstance(left, Payload) or isinstance(right, Payload):
        return fields.payloads(name, left, right)
    if isinstance(left, tuple) or isinstance(right, tuple):
        return fields.optional_lists(name, left, right)
    return fields.values(name, left, right)


def fact(name: str, left: JsonValue, right: JsonValue, found: Iterator[Difference]) -> Fact:
    kept = tuple(islice(found, MAX_DIFFERENCES))
    is_captured = left is not None or right is not None
    one, other = _shown(left), _shown(right)
    return Fact(name=name, left=one, right=other, status=status_of(kept), differences=kept, is_captured=is_captured)


def _shown(value: JsonValue) -> JsonValue:
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    return value.parsed if isinstance(value, Payload) else value


def _output(left: Run, right: Run, fields: FieldComparer) -> Fact:
    """A run that ended badly has no output; one that ended well without it was not captured."""
    one, other = (None if run.status == "ok" else MISSING for run in (left, right))
    ends = (left.output or one, right.output or other)
    found = fact("output", left.output, right.output, _differences_of_outputs(*ends, fields))
    return replace(found, is_captured=ends != (None, None))


def _differences_of_outputs(
    left: Payload | Missing | None, right: Payload | Missing | None, fields: FieldComparer
) -> Iterator[Difference]:
    if isinstance(left, Payload) and isinstance(right, Payload) and is_spelled_as_text(left, right):
        return fields.payloads("output", left, right, as_fields=True, spelling=SPELLED_AS_TEXT)
    return fields.payloads("output", left, right)


def is_spelled_as_text(left: Payload, right: Payload) -> bool:
    """Whether one is JSON and the other a text, which may spell it."""
    return (left.is_text and right.is_json) or (left.is_json and right.is_text)


def _error(left: Run, right: Run, steps: StepComparer) -> Fact:
    """That there was none is known of every run that has ended."""
    found = steps.error("error", left.error, right.error)
    return replace(
        fact("error", left.error and left.error.value, right.error and right.error.value, found), is_captured=True
    )


def _prior(left: Run, right: Run, fields: FieldComparer) -> Fact:
    """No earlier messages is a fact: the run began a conversation."""
    one, other = messages(left.prior), messages(right.prior)
    found = fields.lists("prior", one, other, (0, 0))
    return fact("prior", len(one), len(other), found)


def _final(left: Run, right: Run, steps: StepComparer) -> Fact:
    one, other = steps.left.final, steps.right.final
    found = steps.new_messages("final", one, other)
    return fact("final", one and one.history.length, other and other.history.length, found)


def _guardrails(left: Run, right: Run, fields: FieldComparer) -> Iterator[Fact]:
    """Nothing is to be said where no run had any. A run whose code did not run does not tell."""
    one, other = guardrails_of(left), guardrails_of(right)
    if any(names for told in (one, other) for names in (told or {}).values()):
        yield fact("guardrails", one, other, fields.values("guardrails", one, other))


def _first(run: Run, read: Callable[[ModelCall], JsonValue]) -> JsonValue:
    found = (read(call) for _, call in run.model_calls)
    return next((value for value in found if value is not None), None)


def _answered_models(run: Run) -> JsonValue:
    """Each once, in the order in which they first answered."""
    names = [call.answered_model for _, call in run.model_calls if call.answered_model]
    return list(dict.fromkeys(names)) or None
