"""The reproduction workflow of a run: seven steps, each with its state, its evidence and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from sessions_app.core.factors import Factor, external_factors
from sessions_app.core.factors.checks import Check
from sessions_app.core.workflow.attempts import Attempt, outcome_words
from sessions_app.core.workflow.steps import Evidence, Facts, Workflow, WorkflowStep, workflow
from sessions_app.models import Project, Run
from sessions_app.queries.access import has_role
from sessions_app.queries.goldens import unjudged_runs
from sessions_app.queries.workflow import STEPS, workflow_facts
from sessions_app.services.golden_runs import settle
from sessions_app.web.access import project_page
from sessions_app.web.badges import UNKNOWN, State
from sessions_app.web.replays.stops import run_page
from sessions_app.web.run_pages import RunPlace, place_of, run_address, session_of

STEP_STATES = {
    "open": State(word="open", icon="circle", css="queued"),
    "done": State(word="done", icon="check", css="reproduced"),
    "not_possible": State(word="not possible", icon="ban", css="stopped"),
    "not_needed": State(word="not needed", icon="minus", css="stopped"),
}
SIGHTS = {
    "seen": State(word="seen", icon="eye", css="partial"),
    "not_seen": State(word="not seen", icon="check", css="ok"),
    "not_captured": State(word="not captured", icon=UNKNOWN.icon, css=UNKNOWN.css),
}
CHECK_STEPS = 6
"""Steps that a check leads to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownEvidence:
    """What shows that something was done, and where it stands."""

    words: str
    address: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownAction:
    """What can be done now; `replay` is posted, all others are links."""

    name: str
    words: str
    icon: str
    address: str
    is_change: bool
    """Whether it needs the role of a member."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownStep:
    """One of the seven as the page shows it."""

    step: WorkflowStep
    state: State
    evidence: tuple[ShownEvidence, ...]
    action: ShownAction | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownCheck:
    """One sign, with links to the first steps that show it."""

    check: Check
    state: State
    steps: tuple[tuple[int, str], ...]
    more: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownFactor:
    """A question about the world, and what the recording knows of it."""

    factor: Factor
    state: State
    checks: tuple[ShownCheck, ...]


@require_GET
@project_page()
def workflow_page(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    settle(unjudged_runs(place.run))
    facts = workflow_facts(place.run)
    context = _context(project, place, facts) | {"may_change": has_role(request.user, project, "member")}
    return render(request, "workflow/workflow.html", context)


def _context(project: Project, place: RunPlace, facts: Facts) -> dict[str, Any]:
    found = workflow(facts)
    steps = [_step(project, place, step, found) for step in found.steps]
    return {
        "project": project,
        "section": "sessions",
        "run": place.run,
        "session_id": place.run.session.session_id,
        "run_link": run_address(place.run, project),
        "forks_link": run_page("forks", project, place.run),
        "flow": found,
        "answer": _answer(found.reproduces, found.decided_by),
        "steps": steps,
        "next": next((shown for shown in steps if shown.step.is_next), None),
        "factors": [_factor(project, place, factor) for factor in external_factors(facts.run)],
        "new_attempt": None if facts.verdict == "cold" else _action("replay", project, place.run, found),
        "looked_at": STEPS if facts.is_part else None,
    }


def _answer(reproduces: bool | None, decided_by: Attempt | None) -> str:
    if reproduces is None or decided_by is None:
        return "Not reproduced yet."
    told = outcome_words(decided_by)
    return f"{told[:1].upper()}{told[1:]}." if reproduces else f"It does not reproduce: {told}."


def _step(project: Project, place: RunPlace, step: WorkflowStep, found: Workflow) -> ShownStep:
    return ShownStep(
        step=step,
        state=STEP_STATES[step.state],
        evidence=tuple(_evidence(project, place, each) for each in step.evidence),
        action=_action(step.action, project, place.run, found) if step.action else None,
    )


def _evidence(project: Project, place: RunPlace, evidence: Evidence) -> ShownEvidence:
    if evidence.golden_run_id is not None:
        address = reverse("golden_run", args=[project.slug, evidence.golden_run_id])
    elif evidence.golden_id is not None:
        address = reverse("golden", args=[project.slug, evidence.golden_id])
    elif evidence.replay_id is not None:
        address = reverse("replay", args=[project.slug, evidence.replay_id])
    else:
        address = place.step_address(project, evidence.step or 1)
    return ShownEvidence(words=evidence.words, address=address)


def _action(name: str, project: Project, run: Run, found: Workflow) -> ShownAction:
    words, icon, route, is_change = _ACTIONS[name]
    address = run_page(route, project, run)
    if name == "replay":  # posted: the form names the run
        words = words if found.decided_by is None else "New attempt"
        address = reverse(route, args=[project.slug, run.session.session_id])
    return ShownAction(name=name, words=words, icon=icon, address=address, is_change=is_change)


_ACTIONS = {
    "session": ("Open the session", "list", "session", False),
    "record": ("Download the record", "download", "record", True),
    "replay": ("Replay", "play", "replay_session", True),
    "breakpoints": ("Replay with breakpoints", "pause", "replay_options", True),
    "fork": ("Fork from a step", "git-fork", "fork", True),
    "golden": ("Keep as a golden", "lock", "new_golden", True),
}
"""Words, icon, route, and whether only members may."""


def _factor(project: Project, place: RunPlace, factor: Factor) -> ShownFactor:
    checks = tuple(_check(project, place, check) for check in factor.checks)
    return ShownFactor(factor=factor, state=SIGHTS[factor.sight], checks=checks)


def _check(project: Project, place: RunPlace, check: Check) -> ShownCheck:
    return ShownCheck(
        check=check,
        state=SIGHTS[check.sight],
        steps=tuple((index, place.step_address(project, index)) for index in check.steps[:CHECK_STEPS]),
        more=max(0, len(check.steps) - CHECK_STEPS),
    )
