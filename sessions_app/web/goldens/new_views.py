"""Keeping a run as a golden: the form, and what its checks say of the run and its relatives before it is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from replay_goldens.checks import read_checks
from replay_goldens.judged import Check
from replay_goldens.reading import CheckError
from sessions_app.core.clipping import shortened
from sessions_app.core.errors import NotReplayable
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.goldens.proposals import Proposal, proposals, proposals_of_fix
from sessions_app.core.goldens.traces import trace_of
from sessions_app.core.payload import JsonValue
from sessions_app.core.redaction import RedactionFailed
from sessions_app.mapping.load import load_run
from sessions_app.models import Golden, Project, Replay, Run
from sessions_app.models.replays import ReplayQueue
from sessions_app.queries.goldens import relatives_of
from sessions_app.services.goldens import create_golden
from sessions_app.services.replays import registered_agents
from sessions_app.web.access import project_page
from sessions_app.web.forks.sampling import offered_models
from sessions_app.web.goldens.evidence import Column, by_check, columns_of
from sessions_app.web.goldens.form import MODES, ON_DIFFERENCE, GoldenForm, Row, rows_of, ticked
from sessions_app.web.run_pages import RunPlace, place_of, session_of

MOST_COLUMNS = 4
"""Runs that are shown side by side before a golden is kept."""
_CHECK = re.compile(r"checks\[(\d+)\]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fix:
    """A run that went wrong, and one that shows how it goes right."""

    bad: Run
    good: Run
    name: str


@dataclass(kw_only=True, slots=True)
class Draft:
    """The form as it stands, with all that is wrong about it."""

    form: GoldenForm
    rows: list[Row]
    fix: Fix | None = None
    problem: str = ""
    columns: list[Column] | None = None

    @property
    def checks(self) -> list[JsonValue]:
        typed = self.form.cleaned_data.get("more_checks") or []
        return [*(row.check for row in ticked(self.rows)), *typed]


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("member")
def new_golden(request: HttpRequest, project: Project, session_id: str) -> HttpResponseBase:
    """`try` judges the run and its relatives by what is ticked; otherwise the golden is kept."""
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    draft = _draft(request, place.run)
    if request.method == "POST" and draft.form.is_valid() and (checks := _checks(draft)):
        if "try" in request.POST:
            draft.columns = _side_by_side(place.run, checks)
        elif (golden := _kept(request, place.run, draft)) is not None:
            return redirect("golden", project.slug, golden.golden_id)
    is_wrong = request.method == "POST" and draft.columns is None
    return _page(request, project, place, draft, 422 if is_wrong else 200)


def _side_by_side(run: Run, checks: tuple[Check, ...]) -> list[Column]:
    """The run itself, and beside it those that pass."""
    first, *others = columns_of([run, *relatives_of(run)], checks, run)
    return [first, *sorted(others, key=lambda column: column.outcome != "pass")][:MOST_COLUMNS]


def _draft(request: HttpRequest, run: Run) -> Draft:
    replay = run.replays.filter(replay_id=request.GET.get("replay", "").replace("\x00", "")).first()
    fix = _fix(run, replay)
    found, telling = _proposals(run, fix)
    if request.method == "POST":
        return Draft(form=GoldenForm(request.POST), rows=rows_of(found, request.POST), fix=fix)
    first = _first(run, replay) | {"name": fix.name if fix else shortened(run.input_preview or "", 80)}
    return Draft(form=GoldenForm(initial=first), rows=rows_of(found, ticked_at_first=telling), fix=fix)


def _fix(run: Run, replay: Replay | None) -> Fix | None:
    """A replay of the repaired code is the fix of its run, and a fork that of its parent."""
    if replay is not None and replay.produced_run is not None:
        return Fix(bad=run, good=replay.produced_run, name=f"Repair of {run.run_id}"[:200])
    parents = Run.objects.filter(project=run.project_id, run_id=run.parent_run_id).select_related("project")
    parent = parents.exclude(pk=run.pk).first() if run.origin == "fork" else None
    if parent is None:
        return None
    fork = Replay.objects.filter(produced_run=run).first()
    hypothesis = fork.order.get("hypothesis") if fork else None
    return Fix(bad=parent, good=run, name=str(hypothesis or f"Repair of {parent.run_id}")[:200])


def _proposals(run: Run, fix: Fix | None) -> tuple[list[Proposal], set[int]]:
    if fix is None:
        recorded = load_run(run)
        return proposals(recorded, trace_of(recorded)), set()
    good, scene = load_run(fix.good), load_run(run)
    bad = trace_of(load_run(fix.bad), scene=scene)
    return proposals_of_fix(good, trace_of(good, scene=scene), bad=bad)


def _first(run: Run, replay: Replay | None) -> dict[str, str | None]:
    """The parts of the replay that it is made of; else what can fail by code."""
    if replay is not None:
        named = {"agent": replay.order.get("agent") if replay.queue == ReplayQueue.CODE else None}
        return {"mode": replay.mode, "on_difference": "play_on", **named}
    agents = registered_agents()
    agent = run.agent_name if run.agent_name in agents else None
    return {"mode": "code_and_tools" if agents else "recording", "on_difference": "play_on", "agent": agent}


def _checks(draft: Draft) -> tuple[Check, ...]:
    """None where one of them is wrong; it is told at its row."""
    try:
        return read_checks(draft.checks)
    except CheckError as error:
        _tell(draft, error.field, str(error))
        return ()


def _tell(draft: Draft, field: str, words: str) -> None:
    """At the row that the field is in, else above the form."""
    found = _CHECK.match(field)
    of_rows = list(ticked(draft.rows))
    if found and int(found[1]) < len(of_rows):
        wrong = of_rows[int(found[1])]
        draft.rows[wrong.number] = replace(wrong, error=words.removeprefix(found[0]).removeprefix("."))
    elif found:
        draft.form.add_error("more_checks", words)
    else:
        draft.problem = "Tick at least one check." if field == "checks" else words


def _kept(request: HttpRequest, run: Run, draft: Draft) -> Golden | None:
    kept = draft.form.cleaned_data
    wanted = {name: kept[name] for name in ("name", "description", "expected_outcome")}
    try:
        return create_golden(
            run=run,
            wanted={**wanted, "checks": draft.checks, "replay": draft.form.replay()},
            user=request.user,  # type: ignore[arg-type]  # signed in: project_page
        )
    except ForkError as error:
        field = error.field.rpartition(".")[2]
        draft.form.add_error(field if field in draft.form.fields else None, error.message)
    except (NotReplayable, RedactionFailed) as error:
        draft.problem = str(error) or "What you typed could not be searched for secrets, so nothing of it was stored."
    return None


def _asked(request: HttpRequest, run: Run) -> dict[str, str]:
    """Of which run and which replay the form is, so that what is sent back has the same rows."""
    replay = request.GET.get("replay")
    return {"run": run.run_id} | ({"replay": replay} if replay else {})


def _page(request: HttpRequest, project: Project, place: RunPlace, draft: Draft, status: int) -> HttpResponse:
    context: dict[str, Any] = {
        "project": project,
        "section": "goldens",
        "place": place,
        "run": place.run,
        "session_address": place.session_address(project),
        "action": f"?{urlencode(_asked(request, place.run))}",
        "fix": draft.fix,
        "form": draft.form,
        "rows": draft.rows,
        "problem": draft.problem,
        "columns": draft.columns,
        "checks": by_check(_checks(draft), draft.columns) if draft.columns else [],
        "modes": MODES,
        "on_differences": ON_DIFFERENCE,
        "agents": registered_agents(),
        **offered_models(project, draft.form["live_model"].value() or ""),
    }
    return render(request, "goldens/new.html", context, status=status)
