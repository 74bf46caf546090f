"""What a person does where a replay waits: answer by hand, go on, go one step, change the answer and go on."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from sessions_app.core.fork.changes import ForkError
from sessions_app.models import Project, Replay
from sessions_app.models.replays import ReplayState
from sessions_app.services.forks import answer_by_hand
from sessions_app.services.pauses import continue_replay, edit_and_continue, step_once
from sessions_app.web.access import project_page
from sessions_app.web.replays.answer_forms import AnswerForm, TwinAnswer, answer_form
from sessions_app.web.replays.stops import stop_of
from sessions_app.web.replays.views import replay_context, replay_or_404
from sessions_app.web.run_pages import run_address, whole_number

GONE_ON = "This replay is no longer waiting for that; nothing was changed."


@require_POST
@project_page("member")
def answer(request: HttpRequest, project: Project, replay_id: str) -> HttpResponse:
    """At a stop that nothing knows the answer of, the replay goes on with it; at a breakpoint likewise."""
    row = replay_or_404(project, replay_id)
    stop = stop_of(project, row)
    if stop is None or request.POST.get("stop") != stop.token:
        return _back(request, project, row, GONE_ON)
    form = answer_form(stop.kind, request.POST)
    if form.is_valid() and (given := _give(request, row, form)):
        return redirect(_shown(request, project, given))
    if isinstance(form, TwinAnswer):
        return _back(request, project, row, " ".join(str(words) for found in form.errors.values() for words in found))
    context = replay_context(request, project, row) | {"form": form}
    return render(request, "replays/replay.html", context, status=422)


def _shown(request: HttpRequest, project: Project, row: Replay) -> str:
    """Where the answer was typed: on a step of the recorded run, or on the page of the replay."""
    if step := whole_number(request.POST.get("what_if"), 0):
        return run_address(row.run, project, step=step, what_if=row.replay_id) + "#what-if"
    return reverse("replay", args=[project.slug, row.replay_id])


def _give(request: HttpRequest, row: Replay, form: AnswerForm) -> Replay | None:
    """The replay that goes on; None when it was refused: the form then says why, and holds what was typed."""
    assert request.user.is_authenticated
    give = edit_and_continue if row.state == ReplayState.PAUSED else answer_by_hand
    try:
        return give(replay=row, answer=form.answer, user=request.user)
    except ForkError as problem:
        field = re.split(r"[.\[]", problem.field)[-1]
        form.add_error(field if field in form.fields else None, problem.message)
        return None


@require_POST
@project_page("member")
def go_on(request: HttpRequest, project: Project, replay_id: str) -> HttpResponse:
    return _move(request, project, replay_id, continue_replay)


@require_POST
@project_page("member")
def one_step(request: HttpRequest, project: Project, replay_id: str) -> HttpResponse:
    return _move(request, project, replay_id, step_once)


def _move(request: HttpRequest, project: Project, replay_id: str, move: Callable[..., Replay]) -> HttpResponse:
    row = replay_or_404(project, replay_id)
    stop = stop_of(project, row)
    if stop is None or row.state != ReplayState.PAUSED or request.POST.get("stop") != stop.token:
        return _back(request, project, row, GONE_ON)
    try:
        move(replay=row)
    except ForkError as problem:
        return _back(request, project, row, problem.message)
    return redirect("replay", project.slug, row.replay_id)


def _back(request: HttpRequest, project: Project, row: Replay, words: str) -> HttpResponse:
    messages.warning(request, words)
    return redirect("replay", project.slug, row.replay_id)
