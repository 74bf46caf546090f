"""Goldens: the list, one with what it fails and passes on, its runs, and all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from replay_goldens.checks import read_checks
from sessions_app.core.errors import NotReplayable
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.goldens.dataset import FORMATS
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.parts import PRESET_WORDS, Parts
from sessions_app.core.search.query import parse_query
from sessions_app.models import Golden, GoldenRun, Project, Run
from sessions_app.models.replays import OF_CODE, ReplayMode
from sessions_app.queries.access import SEES_RAW, has_role
from sessions_app.queries.goldens import (
    LastRuns,
    deploys_of,
    exportable_goldens,
    golden_by_id,
    golden_run_by_id,
    golden_runs,
    goldens_of,
    is_by_hand,
    known_runs,
    last_runs,
    live_goldens,
    made_by,
)
from sessions_app.queries.projects import has_sessions
from sessions_app.queries.replays import queue_of
from sessions_app.queries.run_lists import Page, runs_page
from sessions_app.services.datasets import goldens_as_jsonl, runs_as_jsonl
from sessions_app.services.golden_batches import results_of, run_batch
from sessions_app.services.golden_export import NotExportable, export_goldens
from sessions_app.services.golden_runs import run_golden, settle
from sessions_app.services.goldens import end_quarantine, quarantine, warnings_of
from sessions_app.services.live_budget import golden_in_words, goldens_in_words
from sessions_app.services.replays import registered_agents
from sessions_app.web.access import project_page
from sessions_app.web.badges import state_of
from sessions_app.web.downloads import attachment
from sessions_app.web.goldens.evidence import Column, by_check, columns_of, step_of
from sessions_app.web.goldens.proof import Proof, proof_of
from sessions_app.web.goldens.standing import standing_of
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part_of
from sessions_app.web.run_pages import run_address, whole_number

PAGE = 50
RUNS = 20
"""Runs that the page of a golden shows."""
KNOWN = 4
"""Known runs that are judged side by side."""
DEPLOYS = 5
"""The newest, which the list shows."""
MOST_RUNS = 500
"""Failing runs in one dataset; the API has all of them, a page at a time."""


@require_GET
@project_page()
def goldens(request: HtmxHttpRequest, project: Project) -> HttpResponseBase:
    """A fixed number of queries. While one of the runs is open the list asks again."""
    standing, start = standing_of(project), whole_number(request.GET.get("from"), 0)
    rows = _rows(project, standing.ranked[start : start + PAGE])
    open_runs = [run for _, last, _ in rows if last for run in last.runs if run.result is None]
    deploys = list(deploys_of(project)[:DEPLOYS])
    results = results_of(deploys)
    context = {
        "project": project,
        "section": "goldens",
        "standing": standing,
        "rows": rows,
        "more_from": start + PAGE if standing.total > start + PAGE else None,
        "deploys": [(deploy, results[deploy.pk]) for deploy in deploys],
        "is_live": bool(open_runs),
        "may_change": has_role(request.user, project, "member"),
        "has_sessions": partial(has_sessions, project),
    }
    if request.htmx:
        seen = [standing, list(results.items()), *((run.pk, run.replay.state) for run in open_runs)]
        return live_part_of(request, "goldens/_list.html", context | {"is_part": True}, seen)
    live_budget = goldens_in_words(project, live_goldens(project))
    return render(request, "goldens/list.html", context | {"agents": registered_agents(), "live_budget": live_budget})


def _rows(project: Project, keys: Sequence[int]) -> list[tuple[Golden, LastRuns | None, Proof]]:
    """Each with what it has shown so far."""
    found = {golden.pk: golden for golden in goldens_of(project).filter(pk__in=keys)}
    shown = [found[key] for key in keys if key in found]
    last = last_runs(shown)
    names = {name for golden in shown for name in golden.passes_on}
    passed = list(project.runs.filter(run_id__in=names).only("run_id"))
    replays = made_by(passed)
    by_hand = {run.run_id for run in passed if run.pk in replays and is_by_hand(replays[run.pk])}
    return [(golden, last.get(golden.pk), proof_of(golden, project, by_hand)) for golden in shown]


@require_GET
@project_page()
def golden(request: HtmxHttpRequest, project: Project, golden_id: str) -> HttpResponseBase:
    row = golden_or_404(project, golden_id)
    runs = list(golden_runs(row.runs.order_by("-pk"))[:RUNS])
    if settle(runs):
        row = golden_or_404(project, golden_id)
    is_live = any(run.result is None for run in runs)
    evidence = _evidence(row)
    context = _context(request, project, row) | evidence | {"runs": runs, "is_live": is_live}
    context |= {"history": runs[::-1]} | _last_result(row, evidence["columns"])
    if request.htmx:
        return live_part_of(request, "goldens/_known.html", context, [(run.pk, run.result) for run in runs])
    return render(request, "goldens/golden.html", context | {"live_budget": _live_budget(row)})


def _context(request: HttpRequest, project: Project, row: Golden) -> dict[str, Any]:
    return {
        "project": project,
        "section": "goldens",
        "golden": row,
        "scene": row.run,
        "scene_link": run_address(row.run, project),
        "proof": proof_of(row, project),
        "preset": _in_a_line(PRESET_WORDS[row.mode]),  # type: ignore[index]  # one of ours, from a column
        "runs_code": row.mode in OF_CODE,
        "proves": _parts(row).proves,
        "agents": registered_agents(),
        "default_agent": row.order.get("agent") or row.run.agent_name,
        "warnings": warnings_of(row),
        "may_change": has_role(request.user, project, "member"),
    }


def _in_a_line(words: str) -> str:
    return words[:1].lower() + words[1:]


def _last_result(row: Golden, columns: Sequence[Column]) -> dict[str, Any]:
    """Of the runs that were made last, in words; nothing of a golden that never ran."""
    last = last_runs([row]).get(row.pk)
    if last is None:
        return {}
    run, shown = last.decider, state_of("golden", last.decider.result)
    why = "" if run.result == "pass" else _counted(run) if _is_told(run, columns) else run.words
    words = f"{shown.word.capitalize()}. {why}" if why else shown.word.capitalize()
    return {"last_run": run, "last_icon": shown.icon, "last_words": words, "last_step": _failed_step(run)}


def _is_told(run: GoldenRun, columns: Sequence[Column]) -> bool:
    """Whether a column shows the same failure."""
    failed = [cell.seen for column in columns for cell in column.cells if cell.outcome == "fail"]
    return bool(run.checks) and any(seen in run.words for seen in failed)


def _counted(run: GoldenRun) -> str:
    failed = sum(each["passed"] is False for each in run.checks)
    told = "The check" if len(run.checks) == 1 else f"{failed} of {len(run.checks)} checks"
    return f"{told} did not hold."


def _failed_step(run: GoldenRun) -> int | None:
    """Where the run that was produced shows what its first failed check says."""
    return next((step for each, step in _checks_of(run) if each["passed"] is False), None)


def _checks_of(run: GoldenRun) -> list[tuple[JsonObject, int | None]]:
    """Each with the step of the run that was produced."""
    made = run.replay.produced_run
    return [(each, step_of(made, each["check"]) if made else None) for each in run.checks]


def _parts(row: Golden) -> Parts:
    is_code, is_live = row.mode in OF_CODE, row.mode == ReplayMode.LIVE
    agent, tools = "yours" if is_code else "rebuilt", "run" if row.mode == ReplayMode.CODE_AND_TOOLS else "frozen"
    return Parts(agent=agent, tools=tools, model="live" if is_live else "recorded")  # type: ignore[arg-type]


def _live_budget(row: Golden) -> str:
    return golden_in_words(row) if row.mode == ReplayMode.LIVE else ""


def _evidence(row: Golden) -> dict[str, Any]:
    """The known runs, those that it fails on first; the scene, where there is none."""
    fails_on, passes_on = known_runs(row)
    known = [*fails_on, *passes_on]
    names = _both_sides(fails_on, passes_on) or [row.run.run_id]
    found = Run.objects.filter(project=row.project_id, run_id__in=names).select_related("session", "project")
    by_name = {run.run_id: run for run in found}
    checks = read_checks(row.checks)
    columns = columns_of([by_name[name] for name in names if name in by_name], checks, row.run)
    sides = {"fails_on": fails_on, "passes_on": passes_on, "not_shown": max(0, len(known) - len(names))}
    return {"columns": columns, "checks": by_check(checks, columns), **sides}


def _both_sides(fails_on: Sequence[str], passes_on: Sequence[str]) -> list[str]:
    """The first runs that it fails on and the newest that it passes on, as many as fit beside each other."""
    passing = passes_on[-max(KNOWN // 2, KNOWN - len(fails_on)) :]
    return [*fails_on[: KNOWN - len(passing)], *passing]


# --- doing -------------------------------------------------------------------------------------


@require_POST
@project_page("member")
def run_one(request: HttpRequest, project: Project, golden_id: str) -> HttpResponse:
    row = golden_or_404(project, golden_id)
    try:
        run_golden(row, agent=request.POST.get("agent") or None, user=request.user)  # type: ignore[arg-type]  # signed in: project_page
    except (ForkError, NotReplayable) as problem:
        messages.warning(request, str(problem))
    return redirect("golden", project.slug, golden_id)


@require_POST
@project_page("member")
def run_all(request: HttpRequest, project: Project) -> HttpResponse:
    """The goldens that are ticked, or all of them, with each agent that is ticked."""
    named = request.POST.getlist("golden")
    chosen = goldens_of(project).filter(golden_id__in=named) if named else goldens_of(project)
    try:
        batch = run_batch(
            project,
            list(chosen),
            agents=request.POST.getlist("agent"),
            label=request.POST.get("label", "")[:200],
            is_deploy="deploy" in request.POST,
            user=request.user,  # type: ignore[arg-type]  # signed in: project_page
        )
    except (ForkError, NotReplayable) as problem:
        messages.warning(request, str(problem))
        return redirect("goldens", project.slug)
    return redirect("golden_batch", project.slug, batch.golden_batch_id)


@require_POST
@project_page("member")
def set_quarantine(request: HttpRequest, project: Project, golden_id: str) -> HttpResponse:
    row, wanted = golden_or_404(project, golden_id), request.POST.get("do")
    try:
        if wanted == "begin":
            quarantine(row, request.POST.get("reason", ""))
        elif wanted == "end":
            end_quarantine(row)
    except ForkError as problem:
        messages.warning(request, problem.message)
    return redirect("golden", project.slug, golden_id)


@require_POST
@project_page("member")
def delete(request: HttpRequest, project: Project, golden_id: str) -> HttpResponse:
    row = golden_or_404(project, golden_id)
    row.delete()
    messages.info(request, f"Deleted: {row.name}. Its replays stay.")
    return redirect("goldens", project.slug)


@require_GET
@project_page(SEES_RAW)
def export(request: HttpRequest, project: Project, golden_id: str) -> HttpResponse:
    try:
        return attachment(export_goldens([golden_or_404(project, golden_id)]), f"golden-{golden_id}.zip")
    except NotExportable as problem:
        messages.warning(request, str(problem))
        return redirect("golden", project.slug, golden_id)


@require_POST
@project_page(SEES_RAW)
def export_many(request: HttpRequest, project: Project) -> HttpResponse:
    """The goldens that are ticked, or all that run without the server."""
    named = request.POST.getlist("golden")
    chosen = goldens_of(project).filter(golden_id__in=named) if named else exportable_goldens(project)
    try:
        return attachment(export_goldens(list(chosen)), "goldens.zip")
    except NotExportable as problem:
        messages.warning(request, str(problem))
        return redirect("goldens", project.slug)


@require_GET
@project_page(SEES_RAW)
def dataset(request: HttpRequest, project: Project) -> HttpResponse:
    """All goldens as JSON lines, or with `of=runs` the runs that failed last."""
    format = request.GET.get("format", "rows")
    if format not in FORMATS:
        raise Http404
    if request.GET.get("of") != "runs":
        return attachment(goldens_as_jsonl(goldens_of(project), format), f"goldens-{format}.jsonl")
    failing, _ = runs_page(project, parse_query("status:error"), Page(cursor=None, limit=MOST_RUNS))
    return attachment(runs_as_jsonl(failing, format), f"failing-runs-{format}.jsonl")


# --- one run -----------------------------------------------------------------------------------


@require_GET
@project_page()
def golden_run(request: HtmxHttpRequest, project: Project, golden_run_id: str) -> HttpResponseBase:
    """While its replay is open the page asks again."""
    run = golden_run_by_id(project, golden_run_id)
    if run is None:
        raise Http404
    settle([run])
    context = _of_run(project, run)
    if request.htmx:
        return live_part_of(request, "goldens/_run.html", context, [run.result, run.replay.state, context["queue"]])
    return render(request, "goldens/run.html", context)


def _of_run(project: Project, run: GoldenRun) -> dict[str, Any]:
    is_live = run.result is None
    return {
        "project": project,
        "section": "goldens",
        "golden": run.golden,
        "run": run,
        "checks": _checks_of(run),
        "replay": run.replay,
        "is_live": is_live,
        "queue": queue_of(project) if is_live else None,
    }


def golden_or_404(project: Project, golden_id: str) -> Golden:
    found = golden_by_id(project, golden_id)
    if found is None:
        raise Http404
    return found
