"""Two runs compared: their facts, their steps side by side, and where they part.

Payloads with equal digests are taken as the same without reading them; their fields are counted
from the bytes, so that "no difference in 7 steps, 41 fields" counts what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from sessions_app.core.compare.align import Alignment, Row, align_steps, widened
from sessions_app.core.compare.call_ids import CallIds, with_call_ids
from sessions_app.core.compare.facts import MAX_DIFFERENCES, Fact, compare_facts
from sessions_app.core.compare.json_diff import MISSING, Difference, Tally
from sessions_app.core.compare.keys import KeyMaker, spelled_key
from sessions_app.core.compare.payload_fields import FieldComparer
from sessions_app.core.compare.provider_http import with_places_in_http
from sessions_app.core.compare.requests import messages_of
from sessions_app.core.compare.sequence import equal_ends
from sessions_app.core.compare.status import PairStatus, status_of
from sessions_app.core.compare.step_fields import RunStates, StepComparer
from sessions_app.core.compare.unplayed import NOT_PLAYED, unplayed_between
from sessions_app.core.compare.volatile import (
    TOOL_CALL_ID,
    VOLATILE_RULES,
    VolatileRule,
    VolatileRules,
)
from sessions_app.core.history import History
from sessions_app.core.payload import JsonValue
from sessions_app.core.ran_with import is_told
from sessions_app.core.run import ModelCall, Run, Step, agents_in_tools, asked, is_counted


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPair:
    """Two steps that stand beside each other, or one that has no partner."""

    left: Step | None
    right: Step | None
    status: PairStatus
    differences: tuple[Difference, ...] = ()
    has_more: bool = False
    """There are more differences than are kept here."""
    moved_to: int | None = None
    """For a step without a partner: index of the same call out of order on the other side."""

    @property
    def is_counted(self) -> bool:
        """Whether one of the two is a step to those who count."""
        return any(step is not None and is_counted(step) for step in (self.left, self.right))

    @property
    def is_unplayed(self) -> bool:
        return self.differences == (NOT_PLAYED,)

    @property
    def alone(self) -> tuple[Step, ...]:
        """The step that has no partner."""
        step = self.left if self.right is None else self.right if self.left is None else None
        return () if step is None else (step,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """Where two runs stop agreeing. Without steps it is a fact of the runs as a whole."""

    left_step: Step | None
    right_step: Step | None
    path: str
    left: JsonValue
    right: JsonValue
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ignored:
    """Differences that a rule hid."""

    rule: VolatileRule
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """All that was found between two runs."""

    left: Run
    right: Run
    facts: tuple[Fact, ...]
    steps: tuple[StepPair, ...]
    divergence: Divergence | None
    """None also when the only differences are fields that cannot be compared."""
    compared_fields: int
    ignored: tuple[Ignored, ...]
    rules: VolatileRules
    approximate: bool = False
    """The steps were too many and too different for the best alignment."""

    @property
    def identical(self) -> bool | None:
        """False where the runs differ, and `divergence` says where. None where nothing is known to differ and something
        could not be compared."""
        if self.divergence is not None:
            return False
        return True if all(status == "same" for status in self._statuses()) else None

    def is_changed(self, fact: str) -> bool:
        return any(each.name == fact and each.status == "changed" for each in self.facts)

    @property
    def not_comparable(self) -> int:
        """Fields of which nothing can be said."""
        found = [part.differences for part in self.facts] + [part.differences for part in self.steps]
        return sum(difference.status == "not_comparable" for each in found for difference in each) - self.not_played

    @property
    def counted(self) -> tuple[StepPair, ...]:
        """The steps that lists count too."""
        return tuple(pair for pair in self.steps if pair.is_counted)

    @property
    def not_played(self) -> int:
        """Steps that the replay of the two only read."""
        return sum(pair.is_unplayed for pair in self.steps)

    def _statuses(self) -> Iterator[PairStatus]:
        yield from (fact.status for fact in self.facts)
        yield from (pair.status for pair in self.steps)

    @property
    def ignored_count(self) -> int:
        return sum(ignored.count for ignored in self.ignored)


def rules_for(left: Run, right: Run) -> VolatileRules:
    """A replay or fork must give the recorded tool call ids; unrelated runs never share them."""
    return VOLATILE_RULES if _are_related(left, right) else (*VOLATILE_RULES, TOOL_CALL_ID)


def compare_runs(left: Run, right: Run, rules: VolatileRules | None = None) -> Comparison:
    """`rules` are `rules_for` the two runs unless given."""
    rules = rules_for(left, right) if rules is None else rules
    alignment = _align(left, right, rules)
    comparer = _comparer(left, right, rules, alignment)
    tally = comparer.fields.tally
    facts = tuple(compare_facts(left, right, comparer))
    steps = tuple(_pairs(alignment, left, right, comparer))
    return Comparison(
        left=left,
        right=right,
        facts=facts,
        steps=steps,
        divergence=_divergence(steps) or _divergence_of_facts(facts),
        compared_fields=tally.compared,
        ignored=_ignored(rules, tally),
        rules=rules,
        approximate=alignment.approximate,
    )


def first_divergence(left: Run, right: Run, rules: VolatileRules | None = None) -> Divergence | None:
    """As `compare_runs` gives it, without comparing what comes after."""
    rules = rules_for(left, right) if rules is None else rules
    alignment = _align(left, right, rules)
    comparer = _comparer(left, right, rules, alignment)
    pairs = _pairs(alignment, left, right, comparer)
    return _divergence(pairs) or _divergence_of_facts(compare_facts(left, right, comparer))


def first_changed_step(left: Run, right: Run, *, counts_alone: bool) -> Divergence | None:
    """The first field in which two steps differ that stand beside each other, or what the runs came to; and a step that
    one side alone has, where such steps count."""
    rules = rules_for(left, right)
    alignment = _align(left, right, rules)
    comparer = _comparer(left, right, rules, alignment)
    pairs = _pairs(alignment, left, right, comparer)
    kept = (pair for pair in pairs if counts_alone or not pair.alone)
    found = _divergence(kept)
    return found or _divergence_of_facts(fact for fact in compare_facts(left, right, comparer) if fact.name in _ENDS)


_ENDS = frozenset({"status", "output", "error", "final", "guardrails"})
"""Facts of what a run came to, not of where it ran."""


def _are_related(left: Run, right: Run) -> bool:
    origins = [{run.run_id, run.parent.run_id if run.parent else run.run_id} for run in (left, right)]
    return bool(origins[0] & origins[1])


def _are_of_one_recorder(left: Run, right: Run) -> bool:
    are_recordings = all(run.origin == "recorded" and run.source_format == "native" for run in (left, right))
    return are_recordings and left.agent.framework == right.agent.framework is not None


def _comparer(left: Run, right: Run, rules: VolatileRules, alignment: Alignment) -> StepComparer:
    partners = {
        left.steps[row.left].index: right.steps[row.right].index
        for row in alignment.rows
        if row.left is not None and row.right is not None
    }
    tally, rules = Tally(), with_call_ids(rules, CallIds(left, right, partners))
    return StepComparer(
        fields=FieldComparer(rules, tally),
        provider_http=FieldComparer(with_places_in_http(rules), tally),
        runs=(left, right),
        left=messages_of(left),
        right=messages_of(right),
        left_states=RunStates(left),
        right_states=RunStates(right),
        are_of_one_recorder=_are_of_one_recorder(left, right),
        are_recordings=all(run.origin == "recorded" for run in (left, right)),
        are_told_whole=is_told(left) and is_told(right),
        agents=(agents_in_tools(left), agents_in_tools(right)),
        partners=partners,
    )


def _align(left: Run, right: Run, rules: VolatileRules) -> Alignment:
    """Steps at both ends that are spelled alike pair without being read. Where the runs part at a request, and it is
    the same, it is one step, whatever the model answered."""
    head, tail = equal_ends(*([spelled_key(step) for step in run.steps] for run in (left, right)))
    one, other = (_answered_request(run.steps[head : len(run.steps) - tail]) for run in (left, right))
    head += _is_one_request(one, other, rules)
    maker = KeyMaker()
    inner = [maker.keys(run.steps[head : len(run.steps) - tail]) for run in (left, right)]
    return widened(align_steps(*inner), head, tail)


def _answered_request(steps: tuple[Step, ...]) -> History | None:
    """What the first of these steps sent to a model that answered."""
    call = steps[0].call if steps else None
    return call.history if isinstance(call, ModelCall) and call.response is not None else None


def _is_one_request(left: History | None, right: History | None, rules: VolatileRules) -> bool:
    """After steps that are alike the newest message says it."""
    if left is None or right is None or left.length != right.length:
        return False
    fields = FieldComparer(rules, Tally())
    return next(fields.lists("messages", [left.message], [right.message], (0, 0)), None) is None


def _pairs(alignment: Alignment, left: Run, right: Run, comparer: StepComparer) -> Iterator[StepPair]:
    """Of a run and its replay, what was not played is not held against what it was copied from."""
    is_unplayed = unplayed_between(left, right)
    for row in alignment.rows:
        pair = _pair(row, left, right, comparer)
        is_read = pair.status in ("same", "only_left", "only_right") and is_unplayed(pair.left, pair.right)
        yield replace(pair, status="not_comparable", differences=(NOT_PLAYED,)) if is_read else pair


def _pair(row: Row, left: Run, right: Run, comparer: StepComparer) -> StepPair:
    one = None if row.left is None else left.steps[row.left]
    other = None if row.right is None else right.steps[row.right]
    if one is None or other is None:
        return _lonely(one, other, row)
    found = tuple(islice(comparer.differences(one, other), MAX_DIFFERENCES + 1))
    return StepPair(
        left=one,
        right=other,
        status=status_of(found),
        differences=found[:MAX_DIFFERENCES],
        has_more=len(found) > MAX_DIFFERENCES,
    )


def _lonely(left: Step | None, right: Step | None, row: Row) -> StepPair:
    moved_to = None if row.moved_to is None else row.moved_to + 1
    status: PairStatus = "only_left" if right is None else "only_right"
    return StepPair(left=left, right=right, status=status, moved_to=moved_to)


def _ignored(rules: VolatileRules, tally: Tally) -> tuple[Ignored, ...]:
    counts = tally.ignored
    return tuple(Ignored(rule=rule, count=counts[rule.key]) for rule in rules if counts[rule.key])


# --- divergence --------------------------------------------------------------------------------


def _divergence(pairs: Iterator[StepPair] | tuple[StepPair, ...]) -> Divergence | None:
    """What only one side has stops agreeing there; beside it stands what the other did instead."""
    rest = iter(pairs)
    for pair in rest:
        if pair.status == "changed":
            return _at_field(pair)
        if pair.status in ("only_left", "only_right"):
            return _at_step(pair, rest)
    return None


def _at_field(pair: StepPair) -> Divergence:
    found = next(d for d in pair.differences if d.status != "not_comparable")
    return Divergence(
        left_step=pair.left,
        right_step=pair.right,
        path=found.path,
        left=found.left,
        right=found.right,
        note=found.note,
    )


def _at_step(pair: StepPair, rest: Iterator[StepPair]) -> Divergence:
    left, right = pair.left, pair.right or _instead(rest)
    return Divergence(
        left_step=left,
        right_step=right,
        path=_step_path(left, right),
        left=MISSING if left is None else call_value(left),
        right=MISSING if right is None else call_value(right),
    )


def _instead(rest: Iterator[StepPair]) -> Step | None:
    """The first step that only the right has, before the runs agree again."""
    for pair in rest:
        if pair.status != "only_left" and not pair.is_unplayed:
            return pair.right if pair.status == "only_right" else None
    return None


def _step_path(left: Step | None, right: Step | None) -> str:
    """The position in the list of steps, from 0 as in every JSON path."""
    step = left or right
    assert step is not None
    return f"steps[{step.index - 1}]"


def call_value(step: Step) -> JsonValue:
    """A step in short: what was called with what."""
    arguments = asked(step)
    value = {"kind": step.kind, "name": step.name}
    return value if arguments is None else {**value, "arguments": arguments.parsed}


def _divergence_of_facts(facts: Iterator[Fact] | tuple[Fact, ...]) -> Divergence | None:
    for fact in facts:
        for found in fact.differences:
            if found.status != "not_comparable":
                return Divergence(
                    left_step=None,
                    right_step=None,
                    path=found.path,
                    left=found.left,
                    right=found.right,
                    note=found.note,
                )
    return None
