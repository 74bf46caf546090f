"""One step: the panel beside the list, and a page of its own."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET

from sessions_app.core import run as core
from sessions_app.core.judge.anomalies.anomaly import Anomaly, first_odd
from sessions_app.core.run import ModelCall, ToolCall
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project, Run
from sessions_app.queries import steps
from sessions_app.web.access import project_page
from sessions_app.web.forks.what_if import what_if_part
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.notes.lines import notes_on_step
from sessions_app.web.render.payloads import Form
from sessions_app.web.run_pages import RunPlace, place_of, session_of
from sessions_app.web.sessions.find import folds_inner
from sessions_app.web.sessions.oddities import Oddity, folded_anomalies
from sessions_app.web.sessions.outline import ICONS, OTHER_ICON, offset_ms, offset_words
from sessions_app.web.steps.payload_views import payload
from sessions_app.web.steps.sections import Asked, ModelInput, sections
from sessions_app.web.steps.states import states_around, values_before

__all__ = ["payload", "step", "step_context"]

LAYOUT = "9"
"""Part of the ETag: grows when the panel is drawn in another way."""
TAIL = 12
"""New messages that a step shows; all are in the messages view."""
FORMS: tuple[Form, ...] = ("pretty", "json", "bytes")
WHY = 3
"""Anomalies that a step names."""
READABLE: tuple[Form, ...] = ("pretty",)
"""What a viewer is shown."""


@require_GET
@project_page()
def step(request: HtmxHttpRequest, project: Project, session_id: str, n: int) -> HttpResponse:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    if request.htmx:
        return _panel(request, project, place, n)
    form = request.GET.get("as", "pretty")
    context = step_context(project, place, n, form=form if form in forms_for(project) else "pretty")
    part = what_if_part(request, project, place, n)
    return render(request, "steps/step.html", context | part | notes_on_step(request.user, project, place, n))


def _panel(request: HttpRequest, project: Project, place: RunPlace, n: int) -> HttpResponse:
    """Steps do not change, but notes on them and what is odd about them do: the browser may keep the panel and ask
    whether it is still right."""
    notes = notes_on_step(request.user, project, place, n)
    noted = ".".join(str(line.note.pk) for line in notes["step_notes"])
    judged = sha256(repr(_why(place.run, n)).encode()).hexdigest()[:8]
    etag = f'"{bytes(place.run.content_digest).hex()[:24]}-{n}-{LAYOUT}{project.sees_raw:d}-{judged}-{noted}"'
    is_known = request.headers.get("If-None-Match") == etag
    response = (
        HttpResponse(status=304)
        if is_known
        else render(request, "steps/_panel.html", _panel_context(request, project, place, n) | notes)
    )
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ("HX-Request", "Cookie"))
    return response


def _panel_context(request: HttpRequest, project: Project, place: RunPlace, n: int) -> dict[str, Any]:
    folds = folds_inner(request)
    kept = {} if folds else {"q_session": place.session_address(project) + "inner=show&"}
    hides = folds and steps.has_outer(place.run)
    return step_context(project, place, n, for_panel=True, hides_inner=hides) | kept


def step_context(
    project: Project,
    place: RunPlace,
    n: int,
    *,
    form: Form = "pretty",
    for_panel: bool = False,
    hides_inner: bool = False,
) -> dict[str, Any]:
    """The same number of queries for every step: row, payloads, messages, neighbours."""
    run, row = place.run, place.run.step(n)
    if row is None:
        raise Http404
    body = steps.step_body(run, row)
    before = values_before(run, row.index) if body.state else {}
    own = {} if for_panel else _own_page(project, place, row, body)
    return {
        "project": project,
        "section": "sessions",
        "place": place,
        "run": run,
        "row": row,
        "step": body,
        "kind_icon": ICONS.get(row.kind, OTHER_ICON),
        "form": form,
        "sections": sections(body, _model_input(project, run, row, body.call), Asked(form=form), before),
        "asked_by": run.step(row.parent) if row.parent else None,
        "offset": offset_words(offset_ms(row, run.started_at)),
        "why": _why(run, n),
        "followed_by": steps.followed_by(run, row),
        "last_index": run.content.length,
        "spans_address": spans_address(project, place),
        "q_session": place.session_address(project),
        "own_address": place.step_address(project, n),
        **steps.neighbours(run, n, without_inner=hides_inner),
        **steps.failed_neighbours(run, n),
        **_odd_neighbours(run, n),
        **own,
    }


def spans_address(project: Project, place: RunPlace) -> str:
    """Where spans of the run are opened; shared pages do not show them, nor are they for viewers."""
    has_trace = project.sees_raw and getattr(place.run, "trace", None) is not None
    return f"{place.session_address(project)}view=raw&" if has_trace else ""


def forms_for(project: Project) -> tuple[Form, ...]:
    return FORMS if project.sees_raw else READABLE


def _own_page(project: Project, place: RunPlace, row: StepSummary, body: core.Step) -> dict[str, Any]:
    """What is only worth its queries on the step's own page."""
    return {
        "forms": forms_for(project),
        "fixture_digest": _fixture_digest(body),
        "replays_done": steps.replays_done(place.run, row.index) if row.kind == "tool" else 0,
        "is_past_replays": place.run.verdict_step is not None and row.index > place.run.verdict_step,
        "same_calls": steps.runs_with_same_call(place.run, row),
        "same_calls_limit": steps.SAME_CALLS,
        "call_key": row.arguments_key.hex() if row.arguments_key else None,
        "step_before": place.step_address(project, row.index - 1),
        "step_after": place.step_address(project, row.index + 1),
        "states": states_around(place.run, row.index),
    }


def _fixture_digest(body: core.Step) -> str | None:
    """Of the answer that a replay gives back; None when there is none to give."""
    call = body.call
    return call.result.digest if isinstance(call, ToolCall) and call.result is not None else None


def _odd_neighbours(run: Run, n: int) -> dict[str, int | None]:
    odd = sorted({index for item in run.anomalies for index in item.get("steps") or ()})
    return {
        "next_odd": next((index for index in odd if index > n), None),
        "previous_odd": next((index for index in reversed(odd) if index < n), None),
    }


def _why(run: Run, n: int) -> list[Oddity]:
    """What is odd about the run at this step, a warning first."""
    found = [Anomaly.from_json(item) for item in run.anomalies]
    here = folded_anomalies(each for each in found if n in each.steps)[:WHY]
    return here or (_of_answer(run, found) if _is_answer(run, n) else [])


def _is_answer(run: Run, n: int) -> bool:
    last = run.steps[-1]
    return last.index == n and last.kind == "model" and not last.has_error


def _of_answer(run: Run, found: list[Anomaly]) -> list[Oddity]:
    """What makes the answer of the run doubtful, though another step shows it."""
    first = first_odd(found) if run.failure_group else None
    if first is None or first.code == "no_answer":
        return []
    return [replace(each, elsewhere=first.odd_step) for each in folded_anomalies([first])]


def _model_input(project: Project, run: Run, row: StepSummary, call: object) -> ModelInput:
    if not isinstance(call, ModelCall):
        return ModelInput()
    if row.input_node is None:
        return ModelInput(is_captured=False, provider=run.provider)
    before = steps.request_before(run, row.index)
    tail = steps.tail_of(run, row.input_node, stop=before, limit=TAIL)
    return ModelInput(
        messages=tuple(steps.read_messages(run, tail.messages)),
        has_earlier=tail.has_earlier,
        provider=run.provider,
        rewritten=before is not None and not tail.reached_stop and not tail.was_cut,
    )
