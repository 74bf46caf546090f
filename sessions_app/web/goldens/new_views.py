"""Keeping a run as a golden: the form, and what its checks say of the run and its relatives before it is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from replay_goldens.checks import read_checks
from replay_goldens.judged import Check
from replay_goldens.reading import CheckError
from replay_goldens.trace import Trace
from sessions_app.core.clipping import shortened
from sessions_app.core.errors import NotReplayable
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.fork.expected_words import why_unproven
from sessions_app.core.goldens.counter_proposals import proposals_against
from sessions_app.core.goldens.proposals import Proposal, proposals_of_fix, telling
from sessions_app.core.goldens.traces import trace_of
from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.payload import JsonValue
from sessions_app.core.redaction import RedactionFailed
from sessions_app.mapping.load import load_run
from sessions_app.models import Golden, Project, Replay, Run
from sessions_app.models.replays import ReplayMode, ReplayQueue
from sessions_app.queries.comparable_runs import good_twins
from sessions_app.queries.goldens import relatives_of
from sessions_app.services.fork_facts import written_outcome
from sessions_app.services.goldens import create_golden
from sessions_app.services.replays import registered_agents
from sessions_app.web.access import project_page
from sessions_app.web.forks.sampling import offered_models
from sessions_app.web.goldens.evidence import by_check, columns_of
from sessions_app.web.goldens.form import MODES, ON_DIFFERENCE, GoldenForm, Row, rows_of, ticked
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.run_pages import RunPlace, place_of, session_of

MOST_COLUMNS = 4
"""Runs that are shown side by side before a golden is kept."""
_CHECK = re.compile(r"checks\[(\d+)\]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fix:
    """A run that went wrong, and one that shows how it goes right."""

    bad: Run
    good: Run
    replay: Replay | None
    """Which produced the good one."""
    name: str


@dataclass(kw_only=True, slots=True)
class Draft:
    """The form as it stands, with all that is wrong about it."""

    form: GoldenForm
    rows: list[Row]
    fix: Fix | None = None
    replaced: Golden | None = None
    """The golden whose checks these are, and whose place it takes."""
    problem: str = ""

    @property
    def checks(self) -> list[JsonValue]:
        typed = self.form.cleaned_data.get("more_checks") if self.form.is_bound else None
        return [*(row.check for row in ticked(self.rows)), *(typed or [])]


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("member")
def new_golden(request: HtmxHttpRequest, project: Project, session_id: str) -> HttpResponseBase:
    """What is ticked is tried on the run and its relatives, at first and with `try`; otherwise the golden is kept."""
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    draft = _draft(request, place.run)
    is_posted, is_kept = request.method == "POST", request.method == "POST" and "try" not in request.POST
    checks = _checks(draft) if is_posted or draft.checks else ()
    if is_kept and draft.form.is_valid() and checks and (golden := _kept(request, place.run, draft)) is not None:
        return redirect("golden", project.slug, golden.golden_id)
    tried = _tried(place.run, checks) if checks and not is_kept else {}
    draft.rows = _judged(place.run, draft.rows)
    if request.htmx:
        tried |= {"project": project, "rows": draft.rows, "is_part": True}
        return render(request, "goldens/_tried.html", tried)
    return _page(request, project, place, draft, tried, 422 if is_posted and not tried else 200)


def _judged(run: Run, rows: list[Row]) -> list[Row]:
    """Each with what the run itself gives, ticked or not."""
    readable = [(row.number, check) for row in rows for check in _read(row)]
    columns = columns_of([run], [check for _, check in readable], run)
    cells = dict(zip((number for number, _ in readable), columns[0].cells if columns else (), strict=False))
    return [replace(row, judged=cells.get(row.number)) for row in rows]


def _read(row: Row) -> tuple[Check, ...]:
    try:
        return read_checks([row.check])
    except CheckError:
        return ()


def _tried(run: Run, checks: tuple[Check, ...]) -> dict[str, Any]:
    """What they say of the run itself, and beside it of its relatives, those that pass first."""
    first, *others = columns_of([run, *relatives_of(run)], checks, run)
    columns = [first, *sorted(others, key=lambda column: column.outcome != "pass")]
    shown = columns[:MOST_COLUMNS]
    outcomes = [column.outcome for column in columns]
    sides = {"fails": outcomes.count("fail"), "passes": outcomes.count("pass")}
    sides |= {"passes_on_wrong": first.outcome == "pass" and bool(_wrong(run))}
    unproven = _unproven([column.run for column in columns if column.outcome == "pass"])
    return {"columns": shown, "unproven": unproven, "checks": by_check(checks, shown), **sides}


def _unproven(passing: list[Run]) -> str:
    """Why none of the runs that pass shows anything of the agent; empty where one does."""
    forks = [Replay.objects.filter(produced_run=run).select_related("produced_run").first() for run in passing]
    sources = [fork and (fork.unproven_source or written_outcome(fork)) for fork in forks]
    return why_unproven(sources[0]) if sources and sources[0] and all(sources) else ""


def _draft(request: HttpRequest, run: Run) -> Draft:
    replay = run.replays.filter(replay_id=request.GET.get("replay", "").replace("\x00", "")).first()
    replaced = run.goldens.filter(golden_id=request.GET.get("golden", "").replace("\x00", "")).first()
    fix = _fix(run, replay)
    kept = _of_golden(replaced) if replaced else []
    found, telling = _proposals(run, fix)
    rows = [*kept, *found]
    if request.method == "POST":
        form = GoldenForm(request.POST)
        form.full_clean()
        return Draft(form=form, rows=rows_of(rows, request.POST), fix=fix, replaced=replaced)
    at_first = range(len(kept)) if replaced else telling
    form = GoldenForm(initial=_first(run, replay) | _named(run, fix, replaced))
    return Draft(form=form, rows=rows_of(rows, ticked_at_first=at_first), fix=fix, replaced=replaced)


def _of_golden(golden: Golden) -> list[Proposal]:
    """Its checks as they are."""
    return [Proposal(words=check.words, check=check.to_json()) for check in read_checks(golden.checks)]


def _named(run: Run, fix: Fix | None, replaced: Golden | None) -> dict[str, str]:
    if replaced is None:
        wrong = _wrong(fix.bad if fix else run)
        name = fix.name if fix else shortened(run.input_preview or "", 80)
        return {"name": name, "description": wrong[0].message if wrong else ""}
    words = {name: getattr(replaced, name) for name in ("name", "description", "expected_outcome")}
    return words | {"mode": "code_and_tools"}


def _fix(run: Run, replay: Replay | None) -> Fix | None:
    """A replay of the repaired code is the fix of its run, and a fork that of its parent; else the newest fork of the
    run that came out as expected."""
    if replay is not None and replay.produced_run is not None:
        return Fix(bad=run, good=replay.produced_run, replay=replay, name=f"Repair of {run.run_id}"[:200])
    if run.origin == "fork":
        parents = Run.objects.filter(project=run.project_id, run_id=run.parent_run_id).select_related("project")
        parent = parents.exclude(pk=run.pk).first()
        fork = Replay.objects.filter(produced_run=run).first()
        return _of_fork(parent, fork, run) if parent else None
    met = run.replays.filter(mode=ReplayMode.FORK, expectation_met=True, produced_run__isnull=False)
    newest = met.select_related("produced_run__project").order_by("-pk").first()
    return _of_fork(run, newest, newest.produced_run) if newest and newest.produced_run else None


def _of_fork(bad: Run, fork: Replay | None, good: Run) -> Fix:
    hypothesis = fork.order.get("hypothesis") if fork else None
    return Fix(bad=bad, good=good, replay=fork, name=str(hypothesis or f"Repair of {bad.run_id}")[:200])


def _proposals(run: Run, fix: Fix | None) -> tuple[list[Proposal], set[int]]:
    """With the places of those that tell a bad run from a good one. Where no fix is known, the good one is a run that
    went well when it was asked for about the same."""
    if fix is None:
        recorded = load_run(run)
        trace, good = trace_of(recorded), _good_twin(run)
        found, against = proposals_against(recorded, trace, _wrong(run))
        return found, (telling(found, bad=trace, good=good) if good else set()) or against
    good_run, scene = load_run(fix.good), load_run(run)
    bad = trace_of(load_run(fix.bad), scene=scene)
    return proposals_of_fix(good_run, trace_of(good_run, scene=scene), bad=bad)


def _wrong(run: Run) -> list[Anomaly]:
    """What went wrong in a run, the foremost first."""
    return [anomaly for anomaly in map(Anomaly.from_json, run.anomalies) if anomaly.is_doubt]


def _good_twin(run: Run) -> Trace | None:
    found = [twin.pk for twin in good_twins(run)[:1]]
    twin = Run.objects.filter(pk__in=found).select_related("project").first()
    return trace_of(load_run(twin)) if twin else None


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
        with transaction.atomic():
            golden = create_golden(
                run=run,
                wanted={**wanted, "checks": draft.checks, "replay": draft.form.replay()},
                user=request.user,  # type: ignore[arg-type]  # signed in: project_page
            )
            if draft.replaced:
                draft.replaced.delete()
        return golden
    except ForkError as error:
        field = error.field.rpartition(".")[2]
        draft.form.add_error(field if field in draft.form.fields else None, error.message)
    except (NotReplayable, RedactionFailed) as error:
        draft.problem = str(error) or "What you typed could not be searched for secrets, so nothing of it was stored."
    return None


def _asked(request: HttpRequest, run: Run) -> dict[str, str]:
    """What the form was made of, so that what is sent back has the same rows."""
    named = {name: request.GET[name] for name in ("replay", "golden") if request.GET.get(name)}
    return {"run": run.run_id} | named


def _page(
    request: HttpRequest, project: Project, place: RunPlace, draft: Draft, tried: dict[str, Any], status: int
) -> HttpResponse:
    context: dict[str, Any] = {
        "project": project,
        "section": "goldens",
        "place": place,
        "run": place.run,
        "session_address": place.session_address(project),
        "action": f"?{urlencode(_asked(request, place.run))}",
        "fix": draft.fix,
        "wrong": None if draft.fix else next(iter(_wrong(place.run)), None),
        "form": draft.form,
        "rows": draft.rows,
        "of_calls": [row for row in draft.rows if row.is_of_one_call],
        "problem": draft.problem,
        "replaced": draft.replaced,
        **tried,
        "modes": MODES,
        "on_differences": ON_DIFFERENCE,
        "agents": registered_agents(),
        **offered_models(project, draft.form["live_model"].value() or ""),
    }
    return render(request, "goldens/new.html", context, status=status)
