"""What the pages of a session and of its steps share: which run is meant, and their addresses."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404
from django.urls import reverse

from sessions_app.models import Project, Run, Session

RUNS = 200
"""Runs of a session that the switcher offers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlace:
    """A run and its place among the runs of its session."""

    run: Run
    number: int
    siblings: tuple[Run, ...]
    """All runs of the session, in the order of their arrival, without their large columns."""

    @property
    def before(self) -> Run | None:
        return self.siblings[self.number - 2] if self.number > 1 else None

    @property
    def after(self) -> Run | None:
        return self.siblings[self.number] if self.number < len(self.siblings) else None

    @property
    def query(self) -> str:
        """The beginning of a query that keeps the run: `?` or `?run=…&`."""
        return f"?{urlencode({'run': self.run.run_id})}&" if len(self.siblings) > 1 else "?"

    def session_address(self, project: Project) -> str:
        """Ready for more of a query to be added."""
        return reverse("session", args=[project.slug, self.run.session.session_id]) + self.query

    def step_address(self, project: Project, index: int) -> str:
        address = reverse("step", args=[project.slug, self.run.session.session_id, index])
        return (address + self.query).rstrip("?&")


def session_of(project: Project, session_id: str) -> Session:
    session = Session.objects.filter(project=project, session_id=session_id).first()
    if session is None:
        raise Http404
    return session


def place_of(session: Session, asked: str) -> RunPlace:
    """`asked` is `?run=`: the id of a run, or its number in the session; without it, the first one."""
    light = session.runs.only("pk", "run_id", "origin", "status", "session_id", "parent_run_id", "step_count")
    siblings = tuple(light.order_by("pk")[:RUNS])
    by_id = {run.run_id: i for i, run in enumerate(siblings, start=1)}
    number = by_id.get(asked) or (int(asked) if asked.isdecimal() and len(asked) < 6 else 1)
    if not 1 <= number <= len(siblings) or (asked and asked not in by_id and not asked.isdecimal()):
        raise Http404
    run = Run.objects.select_related("session", "cold_case", "produced_by").get(pk=siblings[number - 1].pk)
    return RunPlace(run=run, number=number, siblings=siblings)


def run_address(run: Run, project: Project, **query: object) -> str:
    """The session's page with this run shown; `run.session` must have been selected."""
    address = reverse("session", args=[project.slug, run.session.session_id])
    return f"{address}?{urlencode({'run': run.run_id, **query})}"


def whole_number(text: str | None, default: int) -> int:
    """A number from an address; anything else is the default. Longer than any step is no number."""
    return int(text) if text and text.isdecimal() and text.isascii() and len(text) < 10 else default
