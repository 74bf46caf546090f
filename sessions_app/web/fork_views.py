"""The page on which a fork is put together: what to change at a step, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from sessions_app.core.errors import NotReplayable, PayloadMissing
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.redaction import RedactionFailed
from sessions_app.models import Project, Replay
from sessions_app.models import Step as StepRow
from sessions_app.queries import steps
from sessions_app.queries.access import has_role
from sessions_app.services.forks import request_fork
from sessions_app.web.access import project_page
from sessions_app.web.fork_drafts import draft_of, drop_draft, keep_draft
from sessions_app.web.fork_form import NAMES, Reading, initial, message_input, read_form, result_input
from sessions_app.web.fork_inputs import TOP, Typed, text_of
from sessions_app.web.fork_page import form_context, order_in_words, outlook_context
from sessions_app.web.fork_recorded import Recorded, recorded_at
from sessions_app.web.run_pages import RunPlace, place_of, session_of, whole_number


@require_http_methods(["GET", "HEAD", "POST"])
def fork(request: HttpRequest, project: str, session_id: str) -> HttpResponseBase:
    """Everyone in the project may look; members queue."""
    view = _typed if request.method == "POST" else _page
    return view(request, project, session_id)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """The run and the step that a form is about."""

    project: Project
    place: RunPlace
    row: StepRow

    @property
    def address(self) -> str:
        return self.address_of(self.row.index)

    def address_of(self, step: int) -> str:
        path = reverse("fork", args=[self.project.slug, self.place.run.session.session_id])
        return f"{path}{self.place.query}step={step}"

    def recorded(self, typed: Typed) -> Recorded:
        return self._recorded(typed.get("message_index"), typed.get("result_step"))

    def shown_before(self, typed: Typed) -> Recorded:
        """What the inputs were filled from."""
        return self._recorded(typed.get("message_of"), typed.get("result_of"))

    def _recorded(self, message: str | None, tool: str | None) -> Recorded:
        index = whole_number(message, 0) if message else None
        return recorded_at(self.place.run, self.row, message_index=index, tool_step=whole_number(tool, 0))


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How a form comes back: what stands in it, what is wrong with it, and a word on what became of it."""

    typed: Typed
    errors: dict[str, str] = field(default_factory=dict)
    note: str = ""
    order_words: dict[str, Any] = field(default_factory=dict)
    status: int = 200


def _desk(request: HttpRequest, project: Project, session_id: str) -> Desk:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    row = steps.step_row(place.run, whole_number(request.GET.get("step"), 1))
    if row is None:
        raise Http404
    return Desk(project=project, place=place, row=row)


@project_page()
def _page(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    desk = _desk(request, project, session_id)
    draft = draft_of(request, desk.place.run, desk.row.index)
    try:
        recorded = desk.recorded(draft or {})
    except PayloadMissing as gone:
        return _gone(request, desk, gone)
    typed = initial(recorded) | dict(draft or {})
    return _render(request, desk, recorded, Shown(typed=typed, note="draft" if draft else ""))


@project_page("member")
def _typed(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    desk = _desk(request, project, session_id)
    if request.POST.get("do") == "discard":
        drop_draft(request, desk.place.run, desk.row.index)
        return redirect(desk.address)
    typed = {name: request.POST[name] for name in NAMES if name in request.POST}
    try:
        recorded = desk.recorded(typed)
        shown = _moved(desk, typed, recorded)
        answer = shown if request.POST.get("do") == "show" else _answer(request, desk, recorded, shown)
    except PayloadMissing as gone:
        return _gone(request, desk, gone)
    if isinstance(answer, Replay):
        drop_draft(request, desk.place.run, desk.row.index)
        return redirect("replay", project.slug, answer.replay_id)
    return _kept(request, desk, recorded, answer)


def _answer(request: HttpRequest, desk: Desk, recorded: Recorded, shown: Shown) -> Shown | Replay:
    """The fork that was queued, or the form with everything that was typed."""
    reading = read_form(shown.typed, recorded)
    errors = shown.errors | reading.errors
    if request.POST.get("do") == "check":
        words = {} if errors else order_in_words(reading.order)
        return Shown(typed=shown.typed, errors=errors, order_words=words)
    queued = errors or _queue(request, desk, reading)
    return queued if isinstance(queued, Replay) else Shown(typed=shown.typed, errors=queued, status=422)


def _queue(request: HttpRequest, desk: Desk, reading: Reading) -> Replay | dict[str, str]:
    try:
        return request_fork(run=desk.place.run, order=reading.order, user=request.user)  # type: ignore[arg-type]  # signed in: project_page
    except ForkError as error:
        return reading.refused(error)
    except NotReplayable as problem:
        return {TOP: str(problem)}
    except RedactionFailed:
        return {TOP: "What you typed could not be searched for secrets, so nothing of it was stored."}


def _moved(desk: Desk, typed: Typed, recorded: Recorded) -> Shown:
    """With another message or tool step chosen, a text that was not edited gives way to the one recorded there."""
    new: dict[str, str] = dict(typed)
    errors: dict[str, str] = {}
    fills = (
        ("message", "message_index", "message_of", message_input(recorded)),
        ("result", "result_step", "result_of", result_input(recorded)),
    )
    for name, chosen, source, filled in fills:
        if typed.get(chosen, "") == typed.get(source, ""):
            continue
        before = message_input if name == "message" else result_input
        if text_of(typed, name) == before(desk.shown_before(typed))[name]:
            new |= filled
            errors[name] = "This is what was recorded there; edit it."
        new[source] = filled[source]
    return Shown(typed=new, errors={name: words for name, words in errors.items() if typed.get(f"use_{name}")})


def _kept(request: HttpRequest, desk: Desk, recorded: Recorded, shown: Shown) -> HttpResponse:
    is_kept = keep_draft(request, desk.place.run, desk.row.index, shown.typed)
    note = "kept" if is_kept else "too_long"
    errors = {} if request.POST.get("do") == "show" else shown.errors
    return _render(request, desk, recorded, replace(shown, note=note, errors=errors))


def _render(request: HttpRequest, desk: Desk, recorded: Recorded, shown: Shown) -> HttpResponse:
    context = {
        **_frame(request, desk),
        **form_context(NAMES, shown.typed, shown.errors, recorded),
        **outlook_context(desk.place.run, desk.row),
        **shown.order_words,
        "fork_request": desk.address_of(recorded.request.row.index) if recorded.request.row else "",
        "note": shown.note,
    }
    return render(request, "forks/fork.html", context, status=shown.status)


def _frame(request: HttpRequest, desk: Desk) -> dict[str, Any]:
    return {
        "project": desk.project,
        "section": "sessions",
        "place": desk.place,
        "run": desk.place.run,
        "row": desk.row,
        "address": desk.address,
        "fork_before": desk.address_of(desk.row.index - 1),
        "fork_after": desk.address_of(desk.row.index + 1),
        "q_session": desk.place.session_address(desk.project),
        "may_change": has_role(request.user, desk.project, "member"),
    }


def _gone(request: HttpRequest, desk: Desk, gone: PayloadMissing) -> HttpResponse:
    """Nothing can go on from a step whose bytes are no longer stored."""
    return render(request, "forks/gone.html", {**_frame(request, desk), "digest": gone.digest}, status=410)
