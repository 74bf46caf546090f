"""What the pages of a session and of its steps share: which run is meant, and their addresses."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse

from sessions_app.models import Project, Run, Session
from sessions_app.queries.turns import in_turn
from sessions_app.services.trace_runs import first_or_made

RUNS = 200
"""Turns of a session that the switcher offers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlace:
    """A run and its place among the turns of its session.

    Turns are the runs that were sent here. What a replay produced is no turn: it is found at the run that it replays.
    """

    run: Run
    number: int
    """From 1; 0 when the run was produced by a replay."""
    siblings: tuple[Run, ...]
    """The turns of the session, in the order of their start, without their large columns."""
    token: str = ""
    """Of the share link that the page was reached by; its addresses lead to this run alone."""

    @property
    def is_turn(self) -> bool:
        return self.number > 0

    @property
    def is_one_of_many(self) -> bool:
        """Whether the session holds several recorded runs, which are replayed together."""
        return sum(turn.origin == "recorded" for turn in self.siblings) > 1

    @property
    def is_named(self) -> bool:
        """Whether an address has to say which run of the session is meant."""
        return not self.token and (len(self.siblings) > 1 or not self.is_turn)

    @property
    def before(self) -> Run | None:
        return self.siblings[self.number - 2] if self.number > 1 else None

    @property
    def after(self) -> Run | None:
        return self.siblings[self.number] if 0 < self.number < len(self.siblings) else None

    @property
    def caller(self) -> Run | None:
        """The run of the session that called this one, as a sub-agent."""
        if self.run.origin != "recorded" or self.token:
            return None
        return next((turn for turn in self.siblings if turn.run_id == self.run.parent_run_id), None)

    @property
    def called(self) -> list[Run]:
        """The sub-agents that this run called."""
        turns = [] if self.token else self.siblings
        return [turn for turn in turns if turn.origin == "recorded" and turn.parent_run_id == self.run.run_id]

    @property
    def query(self) -> str:
        """The beginning of a query that keeps the run: `?` or `?run=…&`."""
        return f"?{urlencode({'run': self.run.run_id})}&" if self.is_named else "?"

    def session_address(self, project: Project) -> str:
        """Ready for more of a query to be added."""
        if self.token:
            return reverse("shared", args=[self.token]) + self.query
        return reverse("session", args=[project.slug, self.run.session.session_id]) + self.query

    def step_address(self, project: Project, index: int) -> str:
        if self.token:
            return reverse("shared_step", args=[self.token, index])
        address = reverse("step", args=[project.slug, self.run.session.session_id, index])
        return (address + self.query).rstrip("?&")

    def panel_address(self, project: Project) -> str:
        """Of no step: session.js puts the number in place of the 0, and adds the run."""
        if self.token:
            return reverse("shared_step", args=[self.token, 0])
        return reverse("step", args=[project.slug, self.run.session.session_id, 0])


def session_of(project: Project, session_id: str) -> Session:
    """Also of a trace that came a moment ago and named no session of its own."""
    if "\x00" in session_id:  # which PostgreSQL's text cannot hold
        raise Http404
    session = first_or_made(Session.objects.filter(project=project, session_id=session_id), project, session_id)
    if session is None:
        raise Http404
    return session


def place_of(session: Session, asked: str) -> RunPlace:
    """`asked` is `?run=`: the id of a run, or the number of a turn; without it, of those that no other run
    called the first that went wrong, else the first."""
    sent = session.runs.filter(produced_by=None).select_related("cold_case").only(*_OF_A_TURN)
    turns = tuple(sent.order_by(*in_turn())[:RUNS])
    numbers = {turn.pk: number for number, turn in enumerate(turns, start=1)}
    run = _whole(session).filter(**_meant(asked, turns)).order_by("pk").first()
    if run is None:
        raise Http404
    return RunPlace(run=run, number=numbers.get(run.pk, 0), siblings=turns)


_OF_A_TURN = (
    "pk", "run_id", "origin", "status", "session_id", "parent_run_id", "parent_step", "agent_name", "step_count",
    "started_at", "duration_ms", "verdict", "cold_case__run_id", "input_preview", "failure_group",
)  # fmt: skip


def _meant(asked: str, turns: tuple[Run, ...]) -> dict[str, object]:
    if not asked:
        return {"pk": _foremost(turns).pk} if turns else {}
    if any(turn.run_id == asked for turn in turns) or not asked.isdecimal() or len(asked) > 5:
        return {"run_id": asked}
    number = int(asked)
    return {"pk": turns[number - 1].pk} if 1 <= number <= len(turns) else {"run_id": asked}


def _foremost(turns: tuple[Run, ...]) -> Run:
    """A sub-agent's run may arrive before that of the orchestrator which called it."""
    ids = {turn.run_id for turn in turns}
    asked = [turn for turn in turns if turn.parent_run_id not in ids] or list(turns)
    return next((turn for turn in asked if turn.failure_group), asked[0])


def _whole(session: Session) -> QuerySet[Run]:
    return session.runs.select_related("session", "content", "cold_case", "trace", "produced_by__run__session")


def run_address(run: Run, project: Project, **query: object) -> str:
    """The session's page with this run shown; `run.session` must have been selected."""
    address = reverse("session", args=[project.slug, run.session.session_id])
    return f"{address}?{urlencode({'run': run.run_id, **query})}"


def whole_number(text: str | None, default: int) -> int:
    """A number from an address; anything else is the default. Longer than any step is no number."""
    return int(text) if text and text.isdecimal() and text.isascii() and len(text) < 10 else default
