"""Sharing a run: a member makes a link, sees which there are, and takes one back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from sessions_app.models import Project, Run, ShareLink
from sessions_app.models.sharing import LASTS
from sessions_app.queries.sharing import links_of
from sessions_app.services.sharing import create_link, revoke_link
from sessions_app.web.access import project_page
from sessions_app.web.run_pages import place_of, run_address, session_of, whole_number

_DAYS = ((1, "1 day"), (7, "7 days"), (30, "30 days"))


class LinkForm(forms.Form):
    days = forms.TypedChoiceField(choices=_DAYS, coerce=int, required=False, empty_value=str(LASTS.days))


@never_cache
@require_http_methods(["GET", "POST"])
@project_page("member")
def share(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    """The answer to a post is the page itself: the link is shown in it once, and kept nowhere."""
    asked = request.POST if request.method == "POST" else request.GET
    run = place_of(session_of(project, session_id), asked.get("run", "")).run
    facts = _facts(project, run, step=whole_number(asked.get("step"), 0))
    if request.method == "GET":
        return render(request, "shared/share.html", facts)
    form = LinkForm(request.POST)
    if not form.is_valid():
        return render(request, "shared/share.html", facts | {"form": form}, status=422)
    assert request.user.is_authenticated
    made, token = create_link(run=run, user=request.user, lasts=timedelta(days=int(form.cleaned_data["days"])))
    step = f"?step={facts['step']}" if facts["step"] else ""
    address = request.build_absolute_uri(reverse("shared", args=[token]) + step)
    after = {"made": made, "address": address, "links": links_of(run)}
    return render(request, "shared/share.html", facts | after)


def _facts(project: Project, run: Run, *, step: int) -> dict[str, Any]:
    """`step` is the one that the link opens at; 0, or one that is not there, for the whole run."""
    return {
        "step": step if run.step(step) else 0,
        "project": project,
        "section": "sessions",
        "run": run,
        "session_id": run.session.session_id,
        "session_address": run_address(run, project),
        "links": links_of(run),
        "now": timezone.now(),
        "form": LinkForm(initial={"days": LASTS.days}),
    }


@require_POST
@project_page("member")
def revoke(request: HttpRequest, project: Project, session_id: str, link: int) -> HttpResponse:
    found = ShareLink.objects.filter(project=project, run__session__session_id=session_id, pk=link)
    row = found.select_related("run").first()
    if row is None:
        raise Http404
    revoke_link(row)
    messages.info(request, "The link is revoked: anyone who opens it now gets a “not found” page.")
    return redirect(f"{reverse('share', args=[project.slug, session_id])}?{urlencode({'run': row.run.run_id})}")
