"""The forks of a run as a tree and as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.urls import reverse
from django.utils.http import urlencode

from sessions_app.core.fork.expected_words import why_unproven
from sessions_app.core.fork.words import describe
from sessions_app.models import Project, Replay
from sessions_app.models.replays import FORK_MODES, ReplayMode
from sessions_app.queries.forks import ForkRow
from sessions_app.services.fork_facts import samples_of
from sessions_app.web.badges import expectation_of
from sessions_app.web.replays.words import short_title_of
from sessions_app.web.run_pages import run_address


@dataclass(kw_only=True, slots=True)
class ShownFork:
    """One fork, and those that were made of it."""

    row: ForkRow
    changes: tuple[str, ...]
    what: str
    """`fork at step 3 of`, before the id of its parent."""
    diff_address: str | None
    """With its parent, at the step where it took another course."""
    run_address: str | None
    expectation: str | None
    """Key of the state; None where nothing is expected, or it has not ended."""
    sources: tuple[tuple[str, int], ...]
    children: list[ShownFork] = field(default_factory=list)

    @property
    def replay(self) -> Replay:
        return self.row.replay

    @property
    def number(self) -> str:
        """`#2`, and `replay #2` of a code replay, which is counted by itself."""
        return f"#{self.replay.number}" if self.replay.mode in FORK_MODES else f"replay #{self.replay.number}"

    @property
    def go_on(self) -> str:
        """What lets it continue; empty where it does not wait."""
        if self.replay.waits_for_answer:
            return "Answer and continue"
        return "Continue" if self.replay.state == "paused" else ""

    @property
    def outcome(self) -> str:
        samples = samples_of(self.replay)
        return samples.words if samples else self.row.outcome

    @property
    def needs(self) -> str:
        """What it waits for; empty where it does not."""
        stopped = self.replay.stopped_at
        if not stopped or not self.replay.waits_for_answer:
            return ""
        answer = "the model's answer" if stopped["kind"] == "model" else f"the answer of {stopped['name']}"
        return f"needs {answer} (step {stopped['step']})"

    @property
    def why_unproven(self) -> str:
        """Of one that was judged; empty where its outcome follows from the change."""
        source = self.replay.unproven_source
        return why_unproven(source) if source and self.expectation else ""

    @property
    def words(self) -> str:
        """The change in one line."""
        return "; ".join(self.changes) or (self.row.hypothesis if self.row.replay.mode != ReplayMode.CODE else "")


def shown_forks(project: Project, rows: Sequence[ForkRow]) -> list[ShownFork]:
    """In the order of the rows."""
    return [_shown(project, row) for row in rows]


def as_tree(forks: Sequence[ShownFork]) -> list[ShownFork]:
    """The topmost ones, with the others as their children; each row stands after its parent."""
    path: list[ShownFork] = []
    top: list[ShownFork] = []
    for fork in forks:
        del path[fork.row.depth - 1 :]
        (path[-1].children if path else top).append(fork)
        path.append(fork)
    return top


def _shown(project: Project, row: ForkRow) -> ShownFork:
    made = row.run
    return ShownFork(
        row=row,
        changes=tuple(describe(change) for change in row.changes),
        what=short_title_of(row.replay),
        diff_address=_diff(project, row),
        run_address=run_address(made, project) if made else None,
        expectation=_expectation(row),
        sources=tuple(row.sources.items()),
    )


def _expectation(row: ForkRow) -> str | None:
    shown = expectation_of(row.met, row.replay.unproven_source)
    has_ended = row.replay.verdict in ("diverged", "reproduced") or shown == "not_judged"
    return shown if row.expectation and has_ended and not row.replay.is_sampled else None


def _diff(project: Project, row: ForkRow) -> str | None:
    if row.run is None:
        return None
    address = reverse("diff", args=[project.slug, row.parent_run_id, row.run.run_id])
    step = (row.divergence or {}).get("step")
    return f"{address}?step={step}" if step else address


def three_columns(project: Project, left: str, right: str, third: str) -> str:
    """The address of three runs side by side."""
    return f"{reverse('diff', args=[project.slug, left, right])}?{urlencode({'third': third})}"
