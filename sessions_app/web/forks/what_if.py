"""What if a step had answered otherwise: asked on the step itself, and answered there, beside what was recorded.

The form is a part of the fork's (form.py) and gives the same order to the same service. `?what_if=form` in an address
shows it, `?what_if=rp_…` what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from sessions_app.core.fork.expected_words import UNPROVEN, proves_nothing
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import FORK_MODES, ReplayState
from sessions_app.queries.access import has_role
from sessions_app.queries.replays import replay_by_id
from sessions_app.services.fork_checks import Parent
from sessions_app.services.fork_facts import written_outcome
from sessions_app.web.access import project_page
from sessions_app.web.badges import expectation_of
from sessions_app.web.forks.batch import errors_of, gone_words, queue_forks, wanted_forks
from sessions_app.web.forks.desk import Desk
from sessions_app.web.forks.form import NAMES, initial
from sessions_app.web.forks.inputs import TOP, Refused, Typed
from sessions_app.web.forks.outlook import offered_agents
from sessions_app.web.forks.page import foretold, form_context
from sessions_app.web.forks.recorded import Recorded
from sessions_app.web.forks.report import asked_for
from sessions_app.web.forks.sampling import live_context
from sessions_app.web.forks.what_if_words import headline, parsed
from sessions_app.web.form_keys import form_token
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part_of
from sessions_app.web.render.changes import Field, field_of
from sessions_app.web.replays.answer_forms import answer_form
from sessions_app.web.replays.stops import stop_context
from sessions_app.web.run_pages import RunPlace, place_of, run_address, session_of
from sessions_app.web.sessions.tried import tried_context

FORM = "form"
ROWS = 12
"""Steps of each side."""


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("member")
def what_if(request: HtmxHttpRequest, project: Project, session_id: str, n: int) -> HttpResponseBase:
    """In place for htmx; without scripts its form leads to the page of the session, which shows the same."""
    view = _asked if request.method == "POST" else _part
    return view(request, project, session_id, n)


def _part(request: HtmxHttpRequest, project: Project, session_id: str, n: int) -> HttpResponseBase:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    if not request.htmx:
        return redirect(_page(project, place, n, request.GET.get("what_if", FORM)))
    context = _context(request, project, place, n)
    replay = context["what_if"].get("replay")
    if replay is None:
        return render(request, "forks/_what_if.html", context)
    seen = [replay.state, replay.verdict, replay.stopped_at]
    return live_part_of(request, "forks/_what_if_polled.html", context | _head(request, project, place), seen)


def _head(request: HtmxHttpRequest, project: Project, place: RunPlace) -> dict[str, Any]:
    """What the head of the session lists; the page of a step has no such list."""
    session = reverse("session", args=[project.slug, place.run.session.session_id])
    shown_on, *_ = (request.htmx.current_url_abs_path or "").split("?")
    return tried_context(place.run) if shown_on == session else {}


def _asked(request: HtmxHttpRequest, project: Project, session_id: str, n: int) -> HttpResponseBase:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    desk = _desk(project, place, n)
    typed = _posted(request, desk.row)
    recorded = desk.recorded(typed)
    answer = _queued(request, desk, typed, recorded)
    if isinstance(answer, Replay):
        shown = answer.replay_id
        part = f"{_links(desk)['address']}what_if={shown}"
        return redirect(part if request.htmx else _page(project, place, n, shown))
    context = _frame(request, desk) | _form(request, desk, recorded, typed, answer)
    if request.htmx:
        return render(request, "forks/_what_if.html", context)
    return render(request, "forks/what_if.html", context, status=422 if answer else 200)


def _posted(request: HttpRequest, row: StepSummary) -> dict[str, str]:
    """What is edited here is the step's own answer; the model's next one where it was written."""
    typed = {name: request.POST[name] for name in NAMES if name in request.POST}
    is_written = row.kind == "model" or typed.get("answer_text", "").strip()
    typed |= {"use_result": "on", "result_step": str(row.index)} if row.kind == "tool" else {}
    typed |= {"use_answer": "on"} if is_written else {}
    return typed | ({"use_agent": "on"} if typed.get("agent") else {})


def _queued(request: HttpRequest, desk: Desk, typed: Typed, recorded: Recorded) -> Replay | dict[str, str]:
    """The fork, or what is wrong with the form; nothing is wrong with one that was only checked."""
    if recorded.gone is not None:
        return {TOP: gone_words(recorded.gone)}
    forks = wanted_forks(typed, recorded)
    errors = errors_of(forks)
    if errors or request.POST.get("do") == "check":
        return errors
    try:
        return queue_forks(request, desk.place.run, forks)[0]
    except Refused as refused:
        return {refused.name: refused.message}


# --- what is shown -----------------------------------------------------------------------------


def what_if_part(request: HttpRequest, project: Project, place: RunPlace, n: int) -> dict[str, str]:
    """For a page that shows the step: nothing unless its address asks for it. It has names of its own, so it is drawn
    apart from the page."""
    if place.token or not request.GET.get("what_if") or not has_role(request.user, project, "member"):
        return {}
    context = _context(request, project, place, n)
    return {"what_if_part": render_to_string("forks/_what_if.html", context, request)}


def _context(request: HttpRequest, project: Project, place: RunPlace, n: int) -> dict[str, Any]:
    asked = request.GET.get("what_if") or FORM
    desk = _desk(project, place, n)
    frame = _frame(request, desk)
    if frame["what_if"]["refusal"]:
        return frame
    if asked != FORM and (replay := replay_by_id(project, asked)) is not None:
        return frame | _result(project, desk, replay)
    recorded = desk.recorded({})
    return frame | _form(request, desk, recorded, {}, {TOP: gone_words(recorded.gone)} if recorded.gone else {})


def _desk(project: Project, place: RunPlace, n: int) -> Desk:
    if place.run.step(n) is None:
        raise Http404
    return Desk(project=project, place=place, parent=Parent(place.run), asked=n)


def _frame(request: HttpRequest, desk: Desk) -> dict[str, Any]:
    return {
        "project": desk.project,
        "section": "sessions",
        "place": desk.place,
        "run": desk.place.run,
        "row": desk.row,
        "q_session": desk.place.session_address(desk.project),
        "what_if": _links(desk) | {"shown": FORM, "refusal": _refusal(desk)},
    }


def _links(desk: Desk) -> dict[str, str]:
    place, n = desk.place, desk.row.index
    return {
        "address": reverse("what_if", args=[desk.project.slug, place.run.session.session_id, n]) + place.query,
        "fork_address": desk.address,
        "again": _page(desk.project, place, n, FORM),
    }


def _refusal(desk: Desk) -> str:
    row, parent = desk.row, desk.parent
    if row.kind not in ("model", "tool"):
        return "Only the answer of a model or of a tool can be edited."
    if row.index not in parent.main:
        around = f"step {row.parent}" if row.parent else "another step"
        return f"This ran inside {around}, whose answer is recorded as a whole: edit that one."
    return "" if parent.has_model_answers() else "The run has no model answer, so it cannot be continued."


def _form(request: HttpRequest, desk: Desk, recorded: Recorded, typed: Typed, errors: dict[str, str]) -> dict[str, Any]:
    filled = initial(recorded) | ({} if desk.row.kind == "model" else {"answer_text": "", "answer_calls": ""})
    shown = filled | dict(typed)
    is_edited = bool(typed)
    forks = wanted_forks(typed or shown | _uses(desk.row), recorded)
    told = None if errors_of(forks) else foretold(desk.parent, forks[0].reading.order, is_edited=is_edited)
    extra = {"foretold": told, "asks": _next_request(desk, recorded), **offered_agents(desk.place.run)}
    return {
        **form_context(NAMES, shown, errors, recorded),
        **live_context(desk.parent, recorded, shown),
        "token": form_token(request),
        "what_if": _links(desk) | {"shown": FORM} | extra,
    }


def _uses(row: StepSummary) -> dict[str, str]:
    return {"use_result": "on"} if row.kind == "tool" else {"use_answer": "on"}


def _next_request(desk: Desk, recorded: Recorded) -> int | None:
    """The step whose answer of the model can be written beforehand."""
    found = recorded.request.row
    return found.index if found is not None and found.index in desk.parent.main else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A step as it was recorded, and the one in its place."""

    left: StepSummary | None
    right: StepSummary | None
    address: str

    @property
    def field(self) -> Field | None:
        """Both answers by words, where both sides have one and they differ."""
        if self.left is None or self.right is None or self.is_same or self.left.has_error or self.right.has_error:
            return None
        left, right = parsed(self.left.result_preview), parsed(self.right.result_preview)
        return None if left is None or right is None else field_of("result", left, right)

    @property
    def is_same(self) -> bool:
        return self.left is not None and self.right is not None and _said(self.left) == _said(self.right)


def _said(step: StepSummary) -> tuple[object, ...]:
    return step.name, step.arguments_key, step.result_key, step.has_error


def _result(project: Project, desk: Desk, replay: Replay) -> dict[str, Any]:
    if replay.run_id != desk.place.run.pk or replay.mode not in FORK_MODES:
        raise Http404
    made = replay.produced_run
    rows = _pairs(project, desk, made) if made else []
    waiting = stop_context(project, replay)
    shown = {
        "shown": replay.replay_id,
        "replay": replay,
        "made": made,
        "asked": asked_for(replay),
        "expectation": expectation_of(replay.expectation_met, replay.unproven_source),
        **_told(desk, replay, rows),
        "is_live": not replay.is_over and replay.state != ReplayState.PAUSED,
        "rows": rows[:ROWS],
        "more": len(rows) > ROWS,
        "diff": reverse("diff", args=[project.slug, replay.run.run_id, made.run_id]) if made else "",
        "page": desk.row.index,
    }
    form = {"form": answer_form(waiting["stop"].kind)} if waiting else {}
    return waiting | form | {"what_if": _links(desk) | shown}


def _told(desk: Desk, replay: Replay, rows: list[Pair]) -> dict[str, Any]:
    """The result in one line, once there is one; why it proves nothing; whether the last step tells the outcome."""
    made, changes = replay.produced_run, replay.order.get("changes") or []
    if made is None or replay.verdict not in ("diverged", "reproduced") or not changes:
        return {}
    source = replay.unproven_source or written_outcome(replay)
    recorded = rows[0].left.result_preview if rows and rows[0].left else None
    left, right = (rows[-1].left, rows[-1].right) if rows else (None, None)
    ends = (desk.place.run.output_preview, made.output_preview)
    return {
        "headline": headline(changes[0], recorded, desk.place.run, made),
        "proves_nothing": proves_nothing(source).capitalize() if source in UNPROVEN else "",
        "is_end_told": ends == (left and left.result_preview, right and right.result_preview),
    }


def _pairs(project: Project, desk: Desk, made: Run) -> list[Pair]:
    left = _main_from(desk.parent, desk.row.index)
    right = _main_from(Parent(made), desk.row.index)
    return [
        Pair(left=one, right=other, address=run_address(made, project, step=other.index) if other else "")
        for one, other in zip_longest(left, right)
    ]


def _main_from(parent: Parent, n: int) -> Sequence[StepSummary]:
    steps = (step for step in parent.row.steps[n - 1 :] if step.index in parent.main and step.kind != "other")
    return list(islice(steps, ROWS + 1))


def _page(project: Project, place: RunPlace, n: int, shown: str) -> str:
    """The session with the step open, which is where it was asked."""
    return run_address(place.run, project, step=n, what_if=shown) + "#what-if"
