"""What members do with several sessions at once: queue replays, cancel, compare, mark cold, tag, export."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from sessions_app.core.errors import RecordError
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import OPEN_STATES
from sessions_app.services.cold_cases import mark_cold
from sessions_app.services.replays import cancel_all, request_replay
from sessions_app.services.tags import change_tags, read_tags
from sessions_app.web.access import project_page, user_of
from sessions_app.web.session_list.address import ListAddress, to_list
from sessions_app.web.session_list.bulk_all import act_on_all
from sessions_app.web.session_list.exported import exported

MOST = 200
"""Sessions that one press of a button reaches."""


@require_POST
@project_page("member")
def bulk(request: HttpRequest, project: Project) -> HttpResponseBase:
    """The form names the runs that its rows show, or asks for all that its query finds."""
    if "all" in request.POST:
        return act_on_all(request, project)
    wanted = list(dict.fromkeys(run_id for run_id in request.POST.getlist("run") if "\x00" not in run_id))
    act = _ACTIONS.get(request.POST.get("do", ""))
    if act is None or not wanted:
        return _back(request, project, "Nothing was selected." if act else "Choose an action for the selection.")
    if len(wanted) > MOST:
        return _back(request, project, f"{len(wanted)} sessions are selected; you can act on at most {MOST} at a time.")
    runs = _runs(project, wanted)
    return act(request, project, runs) if runs else _back(request, project, "These sessions are gone.")


def _runs(project: Project, wanted: list[str]) -> list[Run]:
    """In the order of the list."""
    runs = Run.objects.filter(project=project, run_id__in=wanted).select_related("session").defer("search")
    found = {run.run_id: run for run in runs}
    return [found[run_id] for run_id in wanted if run_id in found]


def _back(request: HttpRequest, project: Project, warning: str = "") -> HttpResponseBase:
    """To the list as it was; only its address is taken from the form, never another one."""
    if warning:
        messages.warning(request, warning)
    address = ListAddress.read(QueryDict(request.POST.get("back", "").removeprefix("?")))
    return to_list(project, address)


# --- comparison --------------------------------------------------------------------------------


def _compare(request: HttpRequest, project: Project, runs: list[Run]) -> HttpResponseBase:
    """The one that came first stands on the left; a third in a column of its own."""
    if not 2 <= len(runs) <= 3:
        return _back(request, project, "Select two or three sessions to compare.")
    left, right, *third = (run.run_id for run in sorted(runs, key=lambda run: run.pk))
    query = f"?{urlencode({'third': third[0]})}" if third else ""
    return redirect(reverse("diff", args=[project.slug, left, right]) + query)


# --- replays -----------------------------------------------------------------------------------


def _queue_replays(request: HttpRequest, project: Project, runs: list[Run]) -> HttpResponseBase:
    """The same form again asks for the same replays."""
    ended = [run for run in runs if run.status != "running"]
    ready = [run for run in ended if run.verdict != "cold"]
    for run in ready:
        request_replay(run=run, user=user_of(request), request_key=_request_key(request, run))
    if ready:
        words = f"{len(ready)} replay{' is' if len(ready) == 1 else 's are'} queued; recorded answers only."
        messages.info(
            request, format_html('{} <a href="{}">Replays</a>', words, reverse("replays", args=[project.slug]))
        )
    if cold := len(ended) - len(ready):
        words = f"{cold} {'is' if cold == 1 else 'are'} cold: too little was captured to begin a replay."
        messages.warning(request, words)
    if running := len(runs) - len(ended):
        words = f"{running} {'has' if running == 1 else 'have'} not ended; a replay needs the whole run."
        messages.warning(request, words)
    return _back(request, project)


def _request_key(request: HttpRequest, run: Run) -> str | None:
    """Of the form's key, the person and the run: nobody's key can meet another's."""
    key = request.POST.get("key", "")
    return f"bulk-{sha256(f'{request.user.pk}/{key}/{run.pk}'.encode()).hexdigest()[:40]}" if key else None


# --- cold cases --------------------------------------------------------------------------------


def _mark_cold(request: HttpRequest, project: Project, runs: list[Run]) -> HttpResponseBase:
    reason = request.POST.get("reason", "")
    try:
        with transaction.atomic():
            for run in runs:
                mark_cold(run=run, reason=reason, user=user_of(request))
    except RecordError as error:
        facts: dict[str, Any] = {"project": project, "section": "sessions", "runs": runs, "reason": reason}
        facts |= {"error": error.message, "back": request.POST.get("back", "")}
        return render(request, "session_list/mark_cold.html", facts, status=422)
    messages.info(request, f"{len(runs)} session{' is' if len(runs) == 1 else 's are'} marked cold.")
    return _back(request, project)


# --- tags --------------------------------------------------------------------------------------


def _tag(request: HttpRequest, project: Project, runs: list[Run]) -> HttpResponseBase:
    """The tags that are typed go on all of them, or off."""
    sessions = {run.session.pk: run.session for run in runs}.values()
    way = "remove" if request.POST["do"] == "untag" else "add"
    try:
        tags = read_tags([request.POST.get("tags", "")])
        change_tags(sessions, **{way: tags})
    except RecordError as error:
        return _back(request, project, error.message)
    if not tags:
        return _back(request, project, "Type a tag first.")
    done = "tagged" if way == "add" else "no longer tagged"
    messages.info(request, f"{len(sessions)} session{' is' if len(sessions) == 1 else 's are'} {done}.")
    return _back(request, project)


# --- the rest ----------------------------------------------------------------------------------


def _cancel(request: HttpRequest, project: Project, runs: list[Run]) -> HttpResponseBase:
    still_open = Replay.objects.filter(run__in=runs, state__in=OPEN_STATES)
    count = still_open.count()
    cancel_all(still_open, request.user)  # type: ignore[arg-type]  # signed in: project_page
    messages.info(request, f"{count} replay{' is' if count == 1 else 's are'} cancelled.")
    return _back(request, project)


def _export(request: HttpRequest, project: Project, runs: list[Run]) -> HttpResponseBase:
    return exported(project, [run.pk for run in runs])


_ACTIONS = {
    "compare": _compare,
    "replay": _queue_replays,
    "cancel": _cancel,
    "cold": _mark_cold,
    "tag": _tag,
    "untag": _tag,
    "export": _export,
}
