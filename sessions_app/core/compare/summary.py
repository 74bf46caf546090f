"""What a diff leads with: where two runs part, what each did there, and what they came to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sessions_app.core.call_words import call_words
from sessions_app.core.clipping import clipped, one_line, shortened
from sessions_app.core.compare.field_words import field_words, message_text, signature, tool_names, tool_names_of
from sessions_app.core.compare.json_diff import MISSING, Difference
from sessions_app.core.compare.renaming import ASKED_FOR, Renaming, renaming
from sessions_app.core.compare.runs import Comparison, StepPair
from sessions_app.core.compare.sentences import agreement_sentence, call_text, value_text
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run, Step, answered, asked

_ENDS = ("status", "output", "error", "final", "guardrails", "answered_models", "initial_state", "prior")
"""Facts that say nothing about how the runs were set up."""
_SET_UP = {"agent.version": "version", "model": "model", "instructions": "instructions", "tools": "tools"}
_MEASURED = ("input_tokens", "output_tokens", "response.usage", "finish_reason", "answered_model")
_VALUE = 60
_CALL = 110
_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A difference in words, and where it is."""

    words: str
    step: int
    """Of the left run, or of the right one where only it has the step."""
    row: int
    """Number of its pair among the steps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """A comparison in a few lines."""

    context: str
    """How the runs were asked and set up."""
    places: tuple[Place, ...]
    """At most two: the first different call, and the first different field. The more telling one leads."""
    ending: str | None
    """None where the lead says it already."""
    lead: str
    more: tuple[str, ...] = ()
    """Further lines below the lead, but for the ending."""


def summary(comparison: Comparison, other: str = "B") -> Summary:
    """`other` is the letter of the right run."""
    names = renaming(comparison)
    are_asked_alike = not comparison.is_changed("input")
    places = _places(comparison, names, are_asked_alike, other)
    ending = _ending(comparison, names, other)
    set_up = _set_up(comparison, other)
    if comparison.divergence is None or (places and _is_answer(comparison, places[0])):
        ending = None
    if not are_asked_alike and _are_unrelated(comparison):
        told = tuple(place.words for place in sorted(places, key=lambda place: place.row))
        return Summary(
            context=set_up, places=places, ending=ending, lead=_questions(comparison, names).rstrip("."), more=told
        )
    return Summary(
        context=set_up if are_asked_alike else f"{_questions(comparison, names)} {set_up}",
        places=places,
        ending=ending,
        lead=places[0].words if places else _without_places(comparison, are_asked_alike),
        more=tuple(place.words for place in places[1:]),
    )


def _are_unrelated(comparison: Comparison) -> bool:
    """Whether they called tools, and none that both did."""
    left, right = (
        {step.name for step in run.steps if step.kind == "tool"} for run in (comparison.left, comparison.right)
    )
    return bool(left and right) and left.isdisjoint(right)


def _is_answer(comparison: Comparison, place: Place) -> bool:
    """Whether what differs there first is what both runs answered in the end."""
    ends = [run.output.parsed if run.output else None for run in (comparison.left, comparison.right)]
    return None not in ends and any(
        [found.left, found.right] == ends for found in comparison.steps[place.row].differences
    )


def _places(comparison: Comparison, names: Renaming, are_asked_alike: bool, other: str) -> tuple[Place, ...]:
    """Where the questions differ a call says most: what a tool answers to another question is other data. What a model
    decided stands in the call that it made."""
    call = _first_call(comparison, names, other)
    skipped = (*_MEASURED, "response") if call else _MEASURED
    field = next(_fields(comparison, names, other, skipped), None)
    if call is None:
        found = [field or next(_fields(comparison, names, other), None) or _first_alone(comparison, other)]
    elif field is None or field.row > call.row:
        found = [call]
    elif field.row == call.row:
        found = [field]
    else:
        found = [field, call] if are_asked_alike else [call, field]
    return tuple(place for place in found if place is not None)


def _without_places(comparison: Comparison, are_asked_alike: bool) -> str:
    if comparison.divergence is None:
        return agreement_sentence(comparison)
    return "The steps agree" if are_asked_alike else "All that differs follows from the questions"


def ticket_lines(comparison: Comparison, told: Summary, *, letter: str = "B") -> list[str]:
    """For a ticket: what was compared, where it diverges, and what it came to; `letter` names the right run."""
    counted = comparison.counted
    differ = sum(pair.status != "same" for pair in counted)
    steps = f"{len(counted):,} step{'' if len(counted) == 1 else 's'}"
    runs = f"{comparison.left.run_id} (A) against {comparison.right.run_id} ({letter}): {differ:,} of {steps} differ"
    return [runs, told.lead, *told.more, *([told.ending] if told.ending else []), told.context]


# --- questions and set-up ----------------------------------------------------------------------


def _questions(comparison: Comparison, names: Renaming) -> str:
    if _are_renamed(comparison, names):
        return f"The questions differ: {', '.join(f'{one} → {other}' for one, other in names.words.items())}."
    left, right = (clipped(question, _CALL) for question in _asked(comparison))
    return f"The questions differ: {left} → {right}."


def _are_renamed(comparison: Comparison, names: Renaming) -> bool:
    """Whether the questions are the same but for a few names, such as that of an order."""
    left, right = _asked(comparison)
    return 0 < len(names.words) <= _NAMED and names.applied(left) == right


def _asked(comparison: Comparison) -> tuple[str, str]:
    fact = next(fact for fact in comparison.facts if fact.name == "input")
    return value_text(fact.left, 10_000), value_text(fact.right, 10_000)


def _set_up(comparison: Comparison, other: str) -> str:
    """`Set-up differs: agent version v14 → v15, tool track_parcel.`"""
    names = tool_names_of(comparison.left), tool_names_of(comparison.right)
    found = [
        words
        for fact in comparison.facts
        if fact.status == "changed" and fact.name not in (*ASKED_FOR, *_ENDS)
        for words in dict.fromkeys(_set_up_words(each, names, other) for each in fact.differences)
    ]
    if found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        return f"Set-up differs: {', '.join(found[:5])}{more}."
    same = [word for name, word in _SET_UP.items() if _is_same(comparison, name)]
    return f"Same {', '.join(same[:-1])} and {same[-1]}." if len(same) > 1 else ""


def _is_same(comparison: Comparison, name: str) -> bool:
    return any(fact.name == name and fact.status == "same" and fact.is_captured for fact in comparison.facts)


def _set_up_words(found: Difference, names: tuple[Sequence[str], Sequence[str]], other: str) -> str:
    place = field_words(found.path, names[found.left is MISSING])
    if found.path.startswith(("tools", "agent.tool_retries")):
        only = other if found.left is MISSING else "A" if found.right is MISSING else ""
        return f"{place} only in {only}" if only else place
    short = all(isinstance(value, str | int | float) and len(str(value)) <= 40 for value in (found.left, found.right))
    return f"{place} {found.left} → {found.right}" if short else place


# --- where they part ---------------------------------------------------------------------------


def _fields(comparison: Comparison, names: Renaming, other: str, skipped: tuple[str, ...] = ()) -> Iterator[Place]:
    """Differences of steps that both have, but for those that follow from what was asked."""
    for row, pair in enumerate(comparison.steps):
        if not pair.is_counted or pair.left is None or pair.right is None:
            continue
        for found in pair.differences:
            is_told = found.status != "not_comparable" and not found.path.startswith(skipped)
            if is_told and not names.explains(found):
                yield Place(words=_field(pair, pair.left, pair.right, found, other), step=pair.left.index, row=row)


def _field(pair: StepPair, left: Step, right: Step, found: Difference, other: str) -> str:
    is_new = found.left is MISSING
    place = field_words(found.path, tool_names(right if is_new else left))
    at = f"Step {left.index}"
    if signature(found.right if is_new else found.left) and MISSING in (found.left, found.right):
        return f"{at}: only {other if is_new else 'A'} offers the {place} to {left.name}"
    if found.path.startswith("tools["):
        return f"{at}: {_definition(pair, found, tool_names(left))}"
    if counts := _counts_of_results(left, right, found):
        return f"{at}: {left.name} returned {counts[0]} in A, {counts[1]} in {other}"
    note = f" ({found.note})" if found.note else ""
    return f"{at}, {left.name}: {place} {_value(found.left)} → {_value(found.right)}{note}"


def _counts_of_results(left: Step, right: Step, found: Difference) -> tuple[str, str] | None:
    """Where a tool returned more on one side."""
    if MISSING not in (found.left, found.right) or not re.fullmatch(r"result\[\d+\]", found.path):
        return None
    lists = [payload.parsed if (payload := answered(step)) else None for step in (left, right)]
    one, other = (_results(len(each)) if isinstance(each, list) else "" for each in lists)
    return (one, other) if one and other else None


def _results(count: int) -> str:
    return f"{count:,} result{'' if count == 1 else 's'}" if count else "none"


def _definition(pair: StepPair, found: Difference, names: Sequence[str]) -> str:
    """All that differs in the definition of this tool."""
    position = found.path[: found.path.index("]") + 1]
    tool = field_words(position, names)
    parts = (field_words(each.path, names) for each in pair.differences if each.path.startswith(position))
    return f"the {tool} is defined differently: {', '.join(part.removesuffix(f' of {tool}') for part in parts)}"


def _value(value: JsonValue) -> str:
    return shortened(one_line(said), _VALUE) if (said := message_text(value)) else value_text(value, _VALUE)


def _first_call(comparison: Comparison, names: Renaming, other: str) -> Place | None:
    """The first call of a tool that the other run did not make, or made with other arguments."""
    rows = list(enumerate(comparison.steps))
    for row, pair in rows:
        step = pair.left or pair.right
        if step is None or step.kind != "tool" or not pair.is_counted or pair.is_unplayed:
            continue
        if pair.alone or _is_other_call(pair, names):
            left = pair.left or _beside(rows[row:], "left")
            right = pair.right or _beside(rows[row:], "right")
            first = left or right
            words = _both_calls(comparison, left, right, other)
            return Place(words=f"Step {step.index}: {words}", step=(first or step).index, row=row)
    return None


def _first_alone(comparison: Comparison, other: str) -> Place | None:
    for row, pair in enumerate(comparison.steps):
        for step in pair.alone if pair.is_counted and not pair.is_unplayed else ():
            words = f"Step {step.index}: only {'A' if pair.left else other} has {call_text(step)}"
            return Place(words=words, step=step.index, row=row)
    return None


def _is_other_call(pair: StepPair, names: Renaming) -> bool:
    return any(
        found.path.startswith(("args", "tool_name")) and found.status != "not_comparable" and not names.explains(found)
        for found in pair.differences
    )


def _beside(rows: Iterable[tuple[int, StepPair]], side: str) -> Step | None:
    """The call that a run made instead: its next one without a partner, before the two agree again."""
    for _, pair in rows:
        if not pair.alone:
            return None
        step: Step | None = getattr(pair, side)
        if step is not None and step.kind == "tool":
            return step
    return None


def _both_calls(comparison: Comparison, left: Step | None, right: Step | None, other: str) -> str:
    stops = [stop_words(run) for run in (comparison.left, comparison.right)]
    if left and right:
        return f"A {_calls(left)}; {other} {_calls(right)}"
    if left:
        return f"A {_calls(left)}; {other} {stops[1]}" if stops[1] else f"only A {_calls(left)}"
    assert right is not None
    return f"{other} {_calls(right)}; A {stops[0]}" if stops[0] else f"only {other} {_calls(right)}"


def _calls(step: Step) -> str:
    arguments = asked(step)
    given = "" if arguments is None else call_words(value_text(arguments.parsed, 1000))
    unknown = ", and stops there" if step.source == "unknown" else ""
    return f"calls {step.name}({clipped(given, _CALL)}){unknown}"


def stop_words(run: Run) -> str | None:
    """Of a run that ends where nothing knew an answer, or that goes on."""
    last = run.steps[-1] if run.steps else None
    if run.status == "running":
        return "is still running"
    return f"stopped at step {last.index}" if last is not None and last.source == "unknown" else None


# --- what they came to -------------------------------------------------------------------------


def _ending(comparison: Comparison, names: Renaming, other: str) -> str | None:
    left, right = comparison.left, comparison.right
    if left.output is None or right.output is None:
        ends = _end(left), _end(right)
        return None if ends == (None, None) else f"A {ends[0] or 'did not end'}; {other} {ends[1] or 'did not end'}"
    if not comparison.is_changed("output"):
        return "Both end with the same answer."
    texts = [value_text(run.output.parsed, 10_000) for run in (left, right) if run.output]
    if names.applied(texts[0]) == texts[1]:
        return "Both end with the same answer, each about its own question."
    return f"The final answers differ: {clipped(texts[0], _CALL)} → {clipped(texts[1], _CALL)}"


def _end(run: Run) -> str | None:
    if stop := stop_words(run):
        return f"{stop}, without an answer" if "stopped" in stop else stop
    if run.error is not None:
        told = ": ".join(text for text in (run.error.type, run.error.message) if text)
        return f"failed: {clipped(told, _CALL).rstrip('.')}"
    if run.output is not None:
        return f"answered {clipped(value_text(run.output.parsed, 1000), _CALL)}"
    return {"error": "failed", "cut_off": "was cut off"}.get(run.status)
