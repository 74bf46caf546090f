"""Comparing two stored runs."""

from __future__ import annotations

from sessions_app.core.compare.runs import Comparison, compare_runs, rules_for
from sessions_app.core.compare.volatile import without
from sessions_app.mapping.load import load_run
from sessions_app.models import Run


def compare(left: Run, right: Run, *, switched_off: frozenset[str] = frozenset()) -> Comparison:
    """Both runs from the store, field by field. `switched_off` are keys of volatile-field rules."""
    a, b = load_run(left), load_run(right)
    return compare_runs(a, b, without(switched_off, rules_for(a, b)))
