"""A session: one run of it at a time, as steps, in time, as messages, as states, and as it arrived."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import quote

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.judge.verdict import NOT_RECORDED
from sessions_app.core.model_names import without_aliases
from sessions_app.core.payload import JSON, TEXT, Payload
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Run
from sessions_app.queries.access import SEES_RAW, has_role
from sessions_app.queries.notes import notes_of_run, notes_of_session
from sessions_app.queries.payloads import read_payload
from sessions_app.queries.prices import cost_of_run, price_list
from sessions_app.queries.run_ends import ends_of
from sessions_app.queries.tags import tags_of
from sessions_app.queries.trace_facts import trace_facts
from sessions_app.web.access import project_page
from sessions_app.web.diff.partners import diff_partners
from sessions_app.web.downloads import attachment
from sessions_app.web.notes.lines import note_lines
from sessions_app.web.render.indented import indented
from sessions_app.web.render.payloads import TREE_UP_TO, guess, show
from sessions_app.web.run_pages import RunPlace, place_of, run_address, session_of, whole_number
from sessions_app.web.sessions.arrival import arrival_of, arriving_context
from sessions_app.web.sessions.find import kept
from sessions_app.web.sessions.messages import messages_context
from sessions_app.web.sessions.oddities import (
    folded_anomalies,
    odd_title,
    rest_of_story,
    story_and_sources,
    told_anomalies,
)
from sessions_app.web.sessions.restored import (
    cut_messages,
    restored_context,
    restored_place,
    step_to_go_to,
    until_of,
)
from sessions_app.web.sessions.run_ends import shown_ends, shown_instructions
from sessions_app.web.sessions.step_list import steps_context
from sessions_app.web.sessions.stopped import stopped_of
from sessions_app.web.sessions.tried import tried_context
from sessions_app.web.sessions.turn_tabs import tabs_context
from sessions_app.web.states.view import state_context
from sessions_app.web.timeline.view import timeline_context
from sessions_app.web.traces.views import spans_context

VIEWS = ("steps", "timeline", "messages", "state", "raw")
ANOMALIES = 3
RAW_FORMS = {"tree": "tree", "indented": "indented", "sent": "as sent"}
"""Of a document that is JSON, each with its words."""


@require_GET
@project_page()
def session(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    try:
        found = session_of(project, session_id)
    except Http404:
        return redirect(_address_of_run(request, project, session_id))
    place = restored_place(request, place_of(found, request.GET.get("run", "")))
    if partner := request.GET.get("with"):
        return redirect("diff", project.slug, place.run.run_id, partner)
    if address := step_to_go_to(request, place):
        return redirect(address)
    view = _view(request, project, place)
    context = _frame(request, project, place, view) | restored_context(place) | _VIEWS[view](request, project, place)
    return render(request, "sessions/session.html", context)


def _address_of_run(request: HttpRequest, project: Project, run_id: str) -> str:
    """Whoever has the id of a run has its session too."""
    run = get_object_or_404(Run.objects.select_related("session"), project=project, run_id=run_id.replace("\x00", ""))
    return run_address(run, project, **{name: value for name, value in request.GET.items() if name != "run"})


def _view(request: HttpRequest, project: Project, place: RunPlace) -> str:
    """The document as it arrived holds the whole run: a restored one has no such view, nor have viewers."""
    asked = request.GET.get("view", "steps")
    asked = "messages" if asked == "conversation" else asked
    is_hidden = asked == "raw" and (until_of(place) is not None or not project.sees_raw)
    return asked if asked in VIEWS and not is_hidden else "steps"


def _frame(request: HttpRequest, project: Project, place: RunPlace, view: str) -> dict[str, Any]:
    run = place.run
    tried = tried_context(run)
    made_by = tried["made_by"]
    notes = notes_of_run(run) if made_by else notes_of_session(run.session)
    return {
        "project": project,
        "section": "sessions",
        **above_steps(request, project, place, view),
        "q": place.query + kept(request, place),
        "kept_find": kept(request, place),
        **tried,
        "diff_partners": diff_partners(place, tried["replays"]),
        **tabs_context(place),
        "note_lines": note_lines(request.user, project, notes),
        "may_change": has_role(request.user, project, "member"),
        "asked_step": whole_number(request.GET.get("step"), 0),
        "asked_at_step": request.GET.get("at_step"),
        "source_hex": run.document,
        "curl": curl_of(request, run),
        "recorded_address": run_address(made_by.run, project) if made_by else None,
    }


def above_steps(request: HttpRequest, project: Project, place: RunPlace, view: str) -> dict[str, Any]:
    """Who, what, the story, what was asked and answered, can it be replayed, what is odd."""
    run = place.run
    facts = trace_facts(run)
    made_by = getattr(run, "produced_by", None)
    stopped = stopped_of(project, run, made_by)
    found = [Anomaly.from_json(item) for item in run.anomalies]
    cause, odd = (None, folded_anomalies(found)) if stopped else told_anomalies(found)
    ends = ends_of(run)
    kit = run.kit.get("lines", [])
    return {
        **arriving_context(request, project, run, arrival_of(run, facts)),
        "place": place,
        "facts": facts,
        "view": view,
        "q": place.query,
        "panel_address": place.panel_address(project),
        "ends": shown_ends(ends, run.status),
        "instructions": shown_instructions(ends.instructions),
        "known_tags": tags_of(project),
        "cost": cost_of_run(run, price_list(project)),
        "kit_lines": kit,
        "kit_open": (kit_open := _not_captured(kit)),
        "kit_is_told": _is_kit_told(run, kit_open),
        "verdict_reasons": _told_reasons(run),
        "kit_details": {line["key"]: line["detail"] for line in kit},
        "flags": _flags(kit),
        "cause": cause,
        "stopped": stopped,
        "story": rest_of_story(run, cause) if cause or stopped or run.status == "running" else story_and_sources(run),
        "models": [(name, ", ".join(others)) for name, others in without_aliases(run.model_names).items()],
        "anomalies": odd[:ANOMALIES],
        "more_anomalies": odd[ANOMALIES:],
        "odd_count": sum(each.times for each in odd),
        "odd_title": odd_title(cause is not None, odd),
        "cold_case": getattr(run, "cold_case", None),
        "made_by": made_by,
        "last_index": run.content.length,
    }


def _is_kit_told(run: Run, kit_open: list[dict[str, str]]) -> bool:
    """Where a replay gets to some step, the reason says what it lacks then."""
    is_contradictory = any(line["status"] == "contradictory" for line in kit_open)
    return run.status != "running" and (run.verdict == "cold" or (run.verdict == "replayable" and is_contradictory))


def _told_reasons(run: Run) -> list[dict[str, Any]]:
    """That a recording breaks off, and no more, its state and its story say."""
    if run.verdict == "replayable" or run.status == "running":
        return []
    return [reason for reason in run.verdict_reasons if not reason["message"].endswith(f"{NOT_RECORDED}.")]


def _not_captured(kit: list[dict[str, str]]) -> list[dict[str, str]]:
    """Contradictions first, as a replay can go wrong by them alone."""
    return sorted((line for line in kit if line["status"] != "captured"), key=lambda line: _OPEN.index(line["status"]))


_OPEN = ("contradictory", "missing", "partial")


def curl_of(request: HttpRequest, run: Run) -> str:
    """The record by the API; the key comes from the shell and never from a page."""
    address = request.build_absolute_uri(f"/api/v1/runs/{quote(run.run_id, safe='')}/record")
    return f'curl -H "Authorization: Bearer $REPLAY_KEY" {shlex.quote(address)}'


def _flags(kit: list[dict[str, str]]) -> str | None:
    """Names and values alone; None where they were not captured."""
    line = next((line for line in kit if line["key"] == "flags"), None)
    return None if line is None or line["status"] == "missing" else line["detail"].split(": ", 1)[-1].rstrip(".")


# --- raw ---------------------------------------------------------------------------------------


def _raw(request: HttpRequest, project: Project, place: RunPlace) -> dict[str, Any]:
    """What was received, redacted before it was stored: spans as a tree, a document a part at a time."""
    if trace := getattr(place.run, "trace", None):
        return spans_context(request, trace) | {"q_raw": place.query + "view=raw&"}
    if not (digest := place.run.document):
        return {"source_digest": "", "document": None}
    try:
        content = read_payload(project.pk, digest)
    except StoredBytesMissing:
        return {"source_digest": digest, "document": None}
    is_json = len(content) <= TREE_UP_TO and guess(content).is_json
    asked = request.GET.get("as", "tree" if "from" not in request.GET else "indented")
    as_ = (asked if asked in RAW_FORMS else "tree") if is_json else "sent"
    shown = indented(content.decode()).encode() if as_ == "indented" else content
    media_type, form = (JSON, "pretty") if as_ == "tree" else (TEXT, "json")
    start = whole_number(request.GET.get("from"), 0)
    return {
        "source_digest": digest,
        "document": show(Payload(content=shown, media_type=media_type), form, start=start),  # type: ignore[arg-type]  # one of two
        "size": len(content),
        "raw_forms": RAW_FORMS if is_json else (),
        "raw_form": as_,
        "q_raw": f"{place.query}view=raw&as={as_}&",
        "can_find": bool(place.run.content.length),
        "hides_inner": True,
    }


def _messages(request: HttpRequest, project: Project, place: RunPlace) -> dict[str, Any]:
    return cut_messages(place, messages_context(request, project, place))


_VIEWS = {
    "steps": steps_context,
    "timeline": timeline_context,
    "messages": _messages,
    "state": state_context,
    "raw": _raw,
}


@require_GET
@project_page(SEES_RAW)
def record(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    """The run in the native format; posting it to an empty server gives an equal run."""
    run = place_of(session_of(project, session_id), request.GET.get("run", "")).run
    return attachment(encode_native(load_run(run)), f"{run.run_id}.json")
