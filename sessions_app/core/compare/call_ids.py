"""Which call of one run an id of the other stands for, where two runs have ids of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from sessions_app.core.compare.volatile import TOOL_CALL_ID, VolatileRules
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run


class CallIds:
    """Ids are of one call where its steps stand beside each other; of ids without steps nothing else is known."""

    def __init__(self, left: Run, right: Run, partners: Mapping[int, int]) -> None:
        self._left, self._right = _steps_by_id(left), _steps_by_id(right)
        self._partners = partners

    def are_of_one_call(self, left: JsonValue, right: JsonValue) -> bool:
        if not isinstance(left, str) or not isinstance(right, str):
            return False  # an id that was not captured is no new one
        beside = {self._partners[step] for step in self._left.get(left, ()) if step in self._partners}
        others = self._right.get(right, frozenset())
        return not beside or not others or bool(beside & others)


def _steps_by_id(run: Run) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for step, call in run.tool_calls:
        if call.call_id is not None:
            found[call.call_id].add(step.index)
    return {call_id: frozenset(steps) for call_id, steps in found.items()}


def with_call_ids(rules: VolatileRules, ids: CallIds) -> VolatileRules:
    """The rule for ids hides new ids, and not those of another call."""
    return tuple(
        replace(rule, are_alike=ids.are_of_one_call) if rule.key == TOOL_CALL_ID.key else rule for rule in rules
    )
