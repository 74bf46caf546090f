"""Replays: the list, one of them while it runs and when it is over, and its report as a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from sessions_app.core.errors import NotReplayable, QueryError, StoredBytesMissing
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.fork.report import ForkedStep
from sessions_app.core.replay.isolation import is_own_machine, is_world_off
from sessions_app.core.reports.run_report import ReproductionReport, as_json, as_markdown, as_text
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import GoldenRun, Project, Replay, Run
from sessions_app.models.replays import ReplayMode, ReplayState
from sessions_app.queries.access import has_role
from sessions_app.queries.agents_seen import agents_seen
from sessions_app.queries.goldens import golden_runs
from sessions_app.queries.replays import (
    FILTERS,
    PAGE,
    Row,
    filter_counts,
    has_grown_since,
    place_in_queue,
    queue_of,
    replay_by_id,
    replay_page,
)
from sessions_app.services.fork_facts import forked_steps, steps_answered
from sessions_app.services.forks import request_fork
from sessions_app.services.golden_runs import golden_run_of, report_of_replay, settle
from sessions_app.services.replays import cancel_replay, request_replay
from sessions_app.web.access import project_page
from sessions_app.web.downloads import shown_file
from sessions_app.web.forks.report import asked_for, samples_context
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part_of
from sessions_app.web.replays.answer_forms import answer_form
from sessions_app.web.replays.asked import Asked
from sessions_app.web.replays.list_rows import lines_of
from sessions_app.web.replays.report import report_context, report_links
from sessions_app.web.replays.stops import stop_context
from sessions_app.web.replays.words import badges_of, is_fork, is_simulated, title_of, world_words
from sessions_app.web.run_pages import place_of, run_address, session_of, whole_number


@require_GET
@project_page()
def replays(request: HtmxHttpRequest, project: Project) -> HttpResponseBase:
    asked, problem = Asked.read(request.GET), ""
    try:
        which = asked.which(project, timezone.now())
    except QueryError as error:
        which, problem = Q(pk=None), str(error)
    before = whole_number(request.GET.get("before"), 0) or None
    rows = replay_page(project, asked.state, which, before)
    goldens = _golden_runs(rows[:PAGE])
    context = {
        "project": project,
        "section": "replays",
        "asked": asked,
        "address": asked.address(),
        "problem": problem,
        "filter": asked.state,
        "filter_words": _FILTER_WORDS.get(asked.state, asked.state),
        "before": before,
        "rows": lines_of(rows[:PAGE], goldens),
        "more": asked.address(before=rows[PAGE - 1].replay.pk) if len(rows) > PAGE else None,
        "is_live": any(_moves(row.replay) for row in rows[:PAGE]),
        "queue": queue_of(project),
        "may_change": has_role(request.user, project, "member"),
    }
    if request.htmx:
        seen = [_seen(row.replay) for row in rows]
        return live_part_of(request, "replays/_list.html", context, [seen, asked.address(), before, context["queue"]])
    counts = filter_counts(project, which)
    context["filters"] = [(each, _FILTER_WORDS.get(each, each), counts[each], asked.address(each)) for each in FILTERS]
    context |= asked.period.choices(agents_seen(project), state=asked.state, q=asked.query)
    return render(request, "replays/list.html", context, status=400 if problem else 200)


_FILTER_WORDS = {"different": "diverged", "failed": "could not run or finish"}
"""Filters that rows name otherwise."""


@require_GET
@project_page()
def replay(request: HtmxHttpRequest, project: Project, replay_id: str) -> HttpResponseBase:
    """While it is open the page asks again; the answer that is final asks no more."""
    row = replay_or_404(project, replay_id)
    context = replay_context(request, project, row)
    if request.htmx:
        return live_part_of(request, "replays/_replay.html", context, [_seen(row), context["queue"]])
    return render(request, "replays/replay.html", context)


def _golden_runs(rows: Sequence[Row]) -> dict[int, GoldenRun]:
    """Of the replays that are runs of goldens, by the replay's key; those that are over are judged first."""
    names = [row.replay.pk for row in rows if row.replay.is_golden]
    found = list(golden_runs(GoldenRun.objects.filter(replay__in=names))) if names else []
    settle(found)
    return {run.replay_id: run for run in found}


def _moves(row: Replay) -> bool:
    """Whether it changes without anybody doing something."""
    return not row.is_over and row.state != ReplayState.PAUSED


def _seen(row: Replay) -> tuple[Any, ...]:
    """All that can change of an open replay."""
    progress = row.progress_done, row.progress_total, row.attempt, len(row.takeovers)
    waits_for = row.stopped_at, row.produced_run_id, row.facts.get("samples")
    return row.pk, row.state, *progress, row.is_cancel_wanted, row.verdict, *waits_for


def replay_or_404(project: Project, replay_id: str) -> Replay:
    found = replay_by_id(project, replay_id)
    if found is None:
        raise Http404
    return found


def replay_context(request: HttpRequest, project: Project, row: Replay) -> dict[str, Any]:
    """All that the page shows: the replay, where it waits, and once it is over its report."""
    frame = {
        "project": project,
        "section": "replays",
        "replay": row,
        "run": row.run,
        "session_id": row.run.session.session_id,
        "run_link": run_address(row.run, project),
        "queue": queue_of(project) if _moves(row) else None,
        "queue_place": partial(place_in_queue, row),
        "max_attempts": settings.REPLAY_MAX_ATTEMPTS,
        "is_outdated": row.is_over and has_grown_since(row),
        "may_change": has_role(request.user, project, "member"),
        "title": title_of(row),
        "badges": badges_of(row),
        "is_simulated": is_simulated(row),
        "is_world_off": is_world_off(row.facts),
        "world": world_words(row),
        "golden_run": golden_run_of(row),
        "golden_link": golden_link(project, row),
        **_waiting(request, project, row),
    }
    if row.is_over:
        return frame | _report_context(project, row)
    return frame | _so_far(row) | {"asked_fork": asked_for(row)} | samples_context(project, row.facts)


def _so_far(row: Replay) -> dict[str, Any]:
    """One that goes on after a pause goes through the steps before it again, which are answered already."""
    steps = forked_steps(row) or steps_answered(row)
    answered = sum(step.source != "unknown" for step in steps)
    failed = [step for step in steps if step.error is not None]
    return {
        "so_far": steps,
        "in_place": () if is_fork(row) or row.is_sampled else _in_place(row, steps),
        "failed_so_far": failed,
        "answered": max(row.progress_done, min(answered, row.progress_total)),
    }


_AROUND = 20
"""Steps that are listed at a time."""


def _in_place(row: Replay, answered: Sequence[ForkedStep]) -> list[tuple[StepSummary, str | None]]:
    """The steps of the recording around the one that it has come to, each with who answered it, so far as it was: a
    page of them, in which nothing moves."""
    steps = [step for step in row.content.steps if step.kind in ("model", "tool")]
    done = max(row.progress_done, len(answered))
    sources = {done - back: step.source for back, step in enumerate(reversed(answered))}
    first = max(done - 1, 0) // _AROUND * _AROUND
    page = enumerate(steps[first : first + _AROUND], start=first + 1)
    return [(step, sources.get(number)) for number, step in page]


def golden_link(project: Project, row: Replay) -> str | None:
    """Where a golden is made of it: of a fork the scene is what it produced, of a replay of the team's code what it
    replayed. None for those that say nothing of code, and that are of a golden already."""
    made = row.produced_run
    if row.is_golden or made is None or not row.is_over or row.mode in (ReplayMode.RECORDING, ReplayMode.SAMPLING):
        return None
    scene = made if is_fork(row) else row.run
    query = {"run": scene.run_id} | ({} if is_fork(row) else {"replay": row.replay_id})
    return f"{reverse('new_golden', args=[project.slug, scene.session.session_id])}?{urlencode(query)}"


def _waiting(request: HttpRequest, project: Project, row: Replay) -> dict[str, Any]:
    """The form begins with what was recorded: where the replay was paused, and where somebody asks for it."""
    waiting = stop_context(project, row)
    if not waiting:
        return {}
    stop, recorded = waiting["stop"], waiting["recorded_here"]
    is_used = recorded and (not stop.is_unknown or request.GET.get("use") == "recorded")
    return waiting | {"form": answer_form(stop.kind, initial=recorded.fields if is_used else None)}


def _report_context(project: Project, row: Replay) -> dict[str, Any]:
    try:
        report = report_of_replay(row)
    except StoredBytesMissing as gone:
        return {"gone": gone.name}
    return report_context(project, row, report)


@require_POST
@project_page("member")
def replay_session(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    run = place_of(session_of(project, session_id), request.POST.get("run", "")).run
    return _start(request, project, run)


@require_POST
@project_page("member")
def again(request: HttpRequest, project: Project, replay_id: str) -> HttpResponse:
    """The same order once more, without the answers that were given by hand."""
    row = replay_or_404(project, replay_id)
    if is_own_machine(row.facts):
        command = f"replay-recorder replay {row.run.run_id} --agent {row.order.get('agent')}"
        messages.warning(request, f"This replay ran on a person's own machine. Run it there again: {command}")
        return redirect("replay", project.slug, row.replay_id)
    ask = request_fork if is_fork(row) else request_replay
    return _start(request, project, row.run, partial(ask, mode=row.mode, order=row.order))


def _start(
    request: HttpRequest, project: Project, run: Run, ask: Callable[..., Replay] = request_replay
) -> HttpResponse:
    try:
        started = ask(run=run, user=request.user)
    except (NotReplayable, ForkError) as problem:
        messages.warning(request, str(problem))
        return redirect(run_address(run, project))
    return redirect("replay", project.slug, started.replay_id)


@require_POST
@project_page("member")
def cancel(request: HttpRequest, project: Project, replay_id: str) -> HttpResponse:
    row = replay_or_404(project, replay_id)
    cancel_replay(row, request.user)  # type: ignore[arg-type]  # signed in: project_page
    return redirect("replay", project.slug, row.replay_id)


def _json(report: ReproductionReport) -> str:
    return json.dumps(as_json(report), ensure_ascii=False, indent=2)


_FILES: dict[str, tuple[str, Callable[[ReproductionReport], str]]] = {
    "md": ("text/plain; charset=utf-8", as_markdown),
    "txt": ("text/plain; charset=utf-8", as_text),
    "json": ("application/json", _json),
}


@require_GET
@project_page()
def report(request: HttpRequest, project: Project, replay_id: str, suffix: str) -> HttpResponse:
    """The same facts as the page."""
    media_type, write = _FILES[suffix]
    row = replay_or_404(project, replay_id)
    told = replace(report_of_replay(row), links=report_links(request, project, row))
    return shown_file(write(told), media_type, f"{row.replay_id}.{suffix}")
