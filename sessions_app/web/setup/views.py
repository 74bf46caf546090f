"""Sending the first recording: a key, something to paste, and whether it arrived."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from sessions_app.models import Project, Run
from sessions_app.models.projects import KeyScope
from sessions_app.queries import ingest_log
from sessions_app.queries.access import RoleNeeded, has_role
from sessions_app.queries.projects import keys_in_force
from sessions_app.services import bootstrap
from sessions_app.services.keys import create_key as make_key
from sessions_app.web.access import project_page
from sessions_app.web.errors.views import role_needed
from sessions_app.web.live import live_part
from sessions_app.web.setup.capture_scores import capture_scores
from sessions_app.web.setup.send_ways import way_asked_for, ways_to_send


class KeyForm(forms.Form):
    name = forms.CharField(max_length=120, strip=True)
    scope = forms.ChoiceField(choices=KeyScope.choices, initial=KeyScope.INGEST)
    days = forms.IntegerField(min_value=1, max_value=3650, required=False)
    """Until it ends; none is never."""

    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None


@require_GET
@project_page()
def setup(request: HttpRequest, project: Project) -> HttpResponse:
    return render(request, "setup/setup.html", page_facts(request, project))


@never_cache
@require_POST
@project_page("member")
def create_key(request: HttpRequest, project: Project) -> HttpResponse:
    """The answer is the page itself: the key is shown in it once, and kept nowhere."""
    form = KeyForm(request.POST)
    if not form.is_valid():
        return render(request, "setup/setup.html", page_facts(request, project) | {"form": form}, status=422)
    assert request.user.is_authenticated
    name, scope = form.cleaned_data["name"], form.cleaned_data["scope"]
    if scope == KeyScope.ADMIN and not has_role(request.user, project, "admin"):
        return role_needed(request, RoleNeeded("admin", project))
    made, text = make_key(project=project, name=name, scope=scope, user=request.user, expires_at=form.expires_at())
    return render(request, "setup/setup.html", page_facts(request, project, text) | {"made": made})


@require_GET
@project_page()
def waiting(request: HttpRequest, project: Project) -> HttpResponseBase:
    return live_part(request, "setup/_waiting.html", arrival_facts(project))


@require_POST
@project_page("admin")
def remove_examples(request: HttpRequest, project: Project) -> HttpResponse:
    count = bootstrap.remove_examples(project)
    messages.info(request, f"{count} example session{'' if count == 1 else 's'} removed.")
    return redirect("setup", project.slug)


@require_POST
@project_page("admin")
def load_examples(request: HttpRequest, project: Project) -> HttpResponse:
    count = bootstrap.load_examples(project)
    messages.info(request, f"{count} example incidents were loaded; no network was needed.")
    return redirect("sessions", project.slug)


def page_facts(request: HttpRequest, project: Project, new_key: str | None = None) -> dict[str, Any]:
    """A key that was made just now is in the code to paste, too."""
    ways = ways_to_send(request.build_absolute_uri("/").rstrip("/"), new_key)
    return {
        "section": "setup",
        "ways": ways,
        "shown_way": way_asked_for(request.GET.get("tab", ""), ways),
        "key": new_key,
        "key_count": keys_in_force(project).count(),
        "form": KeyForm(),
        "may_make_keys": has_role(request.user, project, "member"),
        "is_admin": has_role(request.user, project, "admin"),
        "has_examples": Run.objects.filter(project=project, is_example=True).exists(),
        "upload_limit": settings.REPLAY_MAX_INFLATED_BYTES,
        "scores": capture_scores(project),
        **arrival_facts(project),
    }


def arrival_facts(project: Project) -> dict[str, Any]:
    """The newest recording, what came after it by OpenTelemetry, and refusals. Examples came with the house."""
    recorded = Run.objects.filter(project=project, origin="recorded").select_related("session").order_by("-pk")
    newest = recorded.only("run_id", "received_at", "step_count", "session").first()
    delivery = ingest_log.last_received(project)
    is_news = delivery is not None and (newest is None or delivery.last_at > newest.received_at)
    return {
        "project": project,
        "newest": newest,
        "delivery": delivery if is_news else None,
        "refusals": ingest_log.recent(project),
    }
