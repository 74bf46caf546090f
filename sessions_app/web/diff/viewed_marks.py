"""Which pairs of a diff a person has looked at: kept in that person's session, for nobody else."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.sessions.backends.base import SessionBase

from sessions_app.core.compare.runs import StepPair
from sessions_app.models import Run

KEY = "diff_viewed"
DIFFS = 30
"""The diffs that are remembered, the newest ones."""
PAIRS = 2000


def mark_of(left: Run, right: Run, pair: StepPair) -> str:
    """Names a pair by its steps, the same when the sides are swapped."""
    one, other = (pair.left, pair.right) if left.pk <= right.pk else (pair.right, pair.left)
    return f"{one.index if one else ''}-{other.index if other else ''}"


def viewed(session: SessionBase, left: Run, right: Run) -> frozenset[str]:
    return frozenset(session.get(KEY, {}).get(_name(left, right), ()))


def set_viewed(session: SessionBase, left: Run, right: Run, marks: Iterable[str], *, is_viewed: bool) -> None:
    kept = dict(session.get(KEY, {}))
    name = _name(left, right)
    here = dict.fromkeys(kept.pop(name, ()))
    for mark in marks:
        here.pop(mark, None)
        if is_viewed:
            here[mark] = None
    kept[name] = list(here)[-PAIRS:]
    session[KEY] = dict(list(kept.items())[-DIFFS:])


def _name(left: Run, right: Run) -> str:
    """Other content is another diff: what was seen of a run does not count for what came in later."""
    runs = sorted((left, right), key=lambda run: run.pk)
    return ":".join(f"{run.pk}.{bytes(run.content_digest).hex()[:12]}" for run in runs)
