"""What members do with all sessions that a query finds: the number is said first, and many are left to a worker."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET

from sessions_app.core.errors import QueryError, RecordError
from sessions_app.models import BulkJob, Project
from sessions_app.models.bulk_jobs import BulkAction
from sessions_app.services.bulk_jobs import Result, ask_for, exported_runs, go_on, result_of
from sessions_app.web.access import project_page, user_of
from sessions_app.web.clock import shown_zone
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part
from sessions_app.web.session_list.address import ListAddress, to_list
from sessions_app.web.session_list.exported import exported

AT_ONCE = 200
"""Sessions that are done with while the person waits."""
EXPORT = "export"
TITLES = {
    BulkAction.REPLAY: "Queue replays of",
    BulkAction.CANCEL: "Cancel replays of",
    BulkAction.COLD: "Mark cold:",
    BulkAction.TAG: "Tag",
    BulkAction.UNTAG: "Remove tags from",
    EXPORT: "Export",
}
DONE = {
    BulkAction.REPLAY: "queued for a replay from the recording; cold sessions are skipped",
    BulkAction.CANCEL: "had replays that were still open and have been cancelled",
    BulkAction.COLD: "marked cold",
    BulkAction.TAG: "tagged",
    BulkAction.UNTAG: "no longer tagged",
}


def act_on_all(request: HttpRequest, project: Project) -> HttpResponseBase:
    """For whoever may: the page that says the number, and once that is confirmed, what was asked for."""
    do, address = request.POST.get("do", ""), _address(request)
    try:
        if do not in TITLES:
            raise QueryError("Choose an action for the selection.", part="")
        span = address.span(timezone.now())
        result = result_of(project, address.q, span, newest=_newest(request))
    except QueryError as error:
        messages.warning(request, error.message)
        return to_list(project, address)
    if "confirmed" not in request.POST:
        return _confirm(request, project, address, result)
    if do == EXPORT:
        return exported(project, exported_runs(project, result))
    try:
        job = ask_for(
            project, result, BulkAction(do), words=_words(request), user=user_of(request), request_key=_key(request)
        )
    except RecordError as error:
        return _confirm(request, project, address, result, error=error.message)
    return _begun(request, project, address, job)


def _address(request: HttpRequest) -> ListAddress:
    """With times that stay: what is confirmed is what was counted."""
    read = ListAddress.read(QueryDict(request.POST.get("back", "").removeprefix("?")), shown_zone(request))
    return read.top.absolute(timezone.now())


def _newest(request: HttpRequest) -> int | None:
    text = request.POST.get("newest", "")
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _words(request: HttpRequest) -> str:
    return request.POST.get("reason" if request.POST.get("do") == BulkAction.COLD else "tags", "").strip()


def _key(request: HttpRequest) -> str:
    """Of the form's key, the person and all that was asked for."""
    names = ("key", "do", "back", "newest")
    said = "/".join([str(request.user.pk), *(request.POST.get(name, "") for name in names), _words(request)])
    return f"bulk-{sha256(said.encode()).hexdigest()[:40]}"


def _confirm(
    request: HttpRequest, project: Project, address: ListAddress, result: Result, *, error: str = ""
) -> HttpResponseBase:
    context: dict[str, Any] = {
        "project": project,
        "section": "sessions",
        "do": request.POST["do"],
        "title": TITLES[request.POST["do"]],
        "address": address,
        "result": result,
        "is_job": result.total > AT_ONCE and request.POST["do"] != EXPORT,
        "key": request.POST.get("key", ""),
        "words": _words(request),
        "error": error,
    }
    return render(request, "session_list/confirm_all.html", context, status=422 if error else 200)


def _begun(request: HttpRequest, project: Project, address: ListAddress, job: BulkJob) -> HttpResponseBase:
    """Few are done at once, by the same way."""
    if job.total > AT_ONCE:
        return redirect("bulk_job", project.slug, job.bulk_job_id)
    while job.finished_at is None and go_on(job):
        job.refresh_from_db()
    messages.info(request, done_words(job))
    return to_list(project, address)


def done_words(job: BulkJob) -> str:
    return f"{job.changed:,} of {job.looked_at:,} sessions {DONE[BulkAction(job.action)]}."


@require_GET
@project_page()
def bulk_job(request: HtmxHttpRequest, project: Project, bulk_job_id: str) -> HttpResponseBase:
    """How far it is."""
    job = BulkJob.objects.filter(project=project, bulk_job_id=bulk_job_id).select_related("requested_by").first()
    if job is None:
        raise Http404
    context = {
        "project": project,
        "section": "sessions",
        "job": job,
        "title": TITLES[BulkAction(job.action)],
        "words": done_words(job),
        "list_query": ListAddress(q=job.query),
    }
    if request.htmx:
        return live_part(request, "session_list/_bulk_job.html", context)
    return render(request, "session_list/bulk_job.html", context)
