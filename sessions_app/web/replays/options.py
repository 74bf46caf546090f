"""A replay with options: the team's own code, which of its reading tools may run, and where to pause."""

from __future__ import annotations

import shlex
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from sessions_app.core.errors import NotReplayable
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.fork.order import read_breakpoints
from sessions_app.core.payload import JsonObject
from sessions_app.core.redaction import RedactionFailed
from sessions_app.models import Project, Replay, Run
from sessions_app.queries.code_places import why_not_forked
from sessions_app.services.live_budget import whole_run_in_words
from sessions_app.services.replays import registered_agents, request_replay
from sessions_app.web.access import project_page
from sessions_app.web.forks.form import BREAKPOINTS, read_breakpoint_rows
from sessions_app.web.forks.inputs import TOP, Typed, number_of, text_of, words_of
from sessions_app.web.forks.outlook import tools_of
from sessions_app.web.forks.page import breakpoint_context, inputs_of
from sessions_app.web.forks.sampling import offered_models
from sessions_app.web.form_keys import form_token, request_key
from sessions_app.web.run_pages import RunPlace, place_of, session_of

NAMES = (
    "mode",
    "agent",
    "on_difference",
    "samples",
    "live_model",
    *(f"break_{part}_{row}" for row in BREAKPOINTS for part in ("kind", "value")),
)
_CODE = ("code", "code_and_tools")
_INPUTS = {"agent": "agent", "tools": "live", "samples": "samples", "live_model": "samples"}


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("member")
def replay_options(request: HttpRequest, project: Project, session_id: str) -> HttpResponseBase:
    view = _typed if request.method == "POST" else _page
    return view(request, project, session_id)


def _page(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    return _render(request, project, place, {"mode": "recording"}, {})


def _typed(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    typed = _with_the_only_agent(_typed_values(request))
    order, errors = _order(typed, request.POST.getlist("live"))
    answer = errors or _queue(request, place, typed, order)
    if isinstance(answer, Replay):
        return redirect("replay", project.slug, answer.replay_id)
    return _render(request, project, place, typed, answer, status=422)


def _typed_values(request: HttpRequest) -> Typed:
    return {name: request.POST[name] for name in NAMES if name in request.POST}


def _with_the_only_agent(typed: Typed) -> Typed:
    """Where one agent is registered there is nothing to choose for a replay of the team's own code."""
    agents = registered_agents()
    if typed.get("mode") not in _CODE or typed.get("agent") or len(agents) != 1:
        return typed
    return {**typed, "agent": agents[0]}


def _order(typed: Typed, live: list[str]) -> tuple[JsonObject, dict[str, str]]:
    """What belongs to the team's own code counts only where that is what runs."""
    order: JsonObject = {}
    errors: dict[str, str] = {}
    if typed.get("mode") in _CODE:
        order = {"agent": typed.get("agent", ""), "tools": {"live": live}}
        order["on_difference"], _, model = typed.get("on_difference", "stop").partition(":")
        order |= {"live_model": model} if model else {}
    if typed.get("mode") == "live":
        order = {"agent": typed.get("agent") or None, "samples": number_of(typed.get("samples", "").strip() or "1")}
        order |= {"live_model": typed["live_model"]} if typed.get("live_model") else {}
    for written in read_breakpoint_rows(typed):
        try:
            read_breakpoints([written.value])
        except ForkError as error:
            errors[written.input_of("")] = words_of(error)
        order.setdefault("breakpoints", []).append(written.value)
    return order, errors


def _queue(request: HttpRequest, place: RunPlace, typed: Typed, order: JsonObject) -> Replay | dict[str, str]:
    mode = typed.get("mode", "")
    key = request_key(request, place.run, mode, order)
    try:
        return request_replay(run=place.run, user=request.user, mode=mode, order=order, request_key=key)  # type: ignore[arg-type]  # signed in: project_page
    except ForkError as error:
        return {_INPUTS.get(error.field.partition(".")[0], TOP): error.message}
    except NotReplayable as problem:
        return {TOP: str(problem)}
    except RedactionFailed:
        return {TOP: "What you typed could not be searched for secrets, so nothing of it was stored."}


def _live(run: Run, typed: Typed) -> dict[str, Any]:
    """Which live models may be asked, and what that is likely to take."""
    offered, n = offered_models(run.project, text_of(typed, "live_model")), number_of(text_of(typed, "samples").strip())
    if "live_off" in offered:
        return offered
    n = n if isinstance(n, int) and n > 0 else 1
    return {**offered, "live_budget": whole_run_in_words(run, n, offered["live_asked"].most_requests)}


def own_machine_command(request: HttpRequest, run: Run) -> str:
    """The key comes from the shell and never from a page."""
    place = f"{shlex.quote(run.run_id)} --url {request.build_absolute_uri('/').rstrip('/')}"
    return f"replay-recorder replay {place} --agent module:agent --tools run"


def _render(
    request: HttpRequest, project: Project, place: RunPlace, typed: Typed, errors: dict[str, str], status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "project": project,
        "section": "sessions",
        "place": place,
        "run": place.run,
        "session_address": place.session_address(project),
        "agents": registered_agents(),
        "not_live": why_not_forked(place.run),
        "command": own_machine_command(request, place.run),
        "tools": tools_of(place.run),
        "live": request.POST.getlist("live"),
        "f": inputs_of((*NAMES, "live"), typed, errors),
        "top_error": errors.get(TOP, ""),
        "token": form_token(request),
        **_live(place.run, typed),
        **breakpoint_context(typed, errors),
    }
    return render(request, "forks/options.html", context, status=status)
