"""Runs with a call of a tool that holds what is searched for. No index has that: little of few runs is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sessions_app.core.search.query import Query
from sessions_app.core.search.snippets import Place, Snippet, pattern_of, snippet
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project, Run
from sessions_app.queries.sessions import ALWAYS
from sessions_app.queries.steps_of_runs import recorded_runs, with_steps

RUNS, STEPS = 500, 20_000
"""The newest ones, until there are as many steps; of arguments and answers the first words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InCall:
    run: Run
    snippet: Snippet


@dataclass(frozen=True, kw_only=True, slots=True)
class InCalls:
    found: list[InCall]
    """One of each run, the newest first."""
    looked_at: int
    """Runs."""
    is_cut: bool
    """Whether there are older ones."""


def find_in_calls(project: Project, phrases: Sequence[str]) -> InCalls:
    """Three queries. All phrases have to be in the same arguments, or in the same answer."""
    patterns = [pattern for phrase in phrases if (pattern := pattern_of([phrase]))]
    runs = recorded_runs(project, ALWAYS, most=RUNS) if patterns else []
    found, looked_at, left = [], 0, STEPS
    for run, steps in with_steps(runs[:RUNS]):
        if left <= 0:
            break
        looked_at, left = looked_at + 1, left - len(steps)
        texts = (step for step in _texts(steps) if all(each.search(step.text or "") for each in patterns))
        if told := snippet(texts, phrases):
            found.append(InCall(run=run, snippet=told))
    return InCalls(found=found, looked_at=looked_at, is_cut=looked_at < len(runs))


def count_in_calls(project: Project, query: Query) -> int:
    """Of a query for words alone."""
    return 0 if query.terms else len(find_in_calls(project, query.phrases).found)


def _texts(steps: Sequence[StepSummary]) -> Iterator[Place]:
    for step in steps:
        if step.kind != "model":
            yield Place(where=f"{step.name[:60]} was asked", text=step.arguments_preview, step=step.index)
            yield Place(where=f"{step.name[:60]} answered", text=step.result_preview, step=step.index)
