"""Sending the first recording: a key, something to paste, and whether it arrived."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from sessions_app.models import ApiKey, Project, Run
from sessions_app.models.projects import KeyScope
from sessions_app.queries.access import has_role
from sessions_app.services import bootstrap
from sessions_app.services.keys import create_key as make_key
from sessions_app.web.access import project_page
from sessions_app.web.live import live_part

PLACEHOLDER = "$REPLAY_KEY"


class KeyForm(forms.Form):
    name = forms.CharField(max_length=120, strip=True)
    scope = forms.ChoiceField(choices=KeyScope.choices, initial=KeyScope.INGEST)


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
    made, text = make_key(
        project=project, name=form.cleaned_data["name"], scope=form.cleaned_data["scope"], user=request.user
    )
    return render(request, "setup/setup.html", page_facts(request, project) | {"made": made, "key": text})


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
    messages.info(request, f"{count} example incidents are here, without any network.")
    return redirect("sessions", project.slug)


def page_facts(request: HttpRequest, project: Project) -> dict[str, Any]:
    return {
        "project": project,
        "section": "setup",
        "address": request.build_absolute_uri("/").rstrip("/"),
        "key": PLACEHOLDER,
        "keys": keys_in_use(project),
        "form": KeyForm(),
        "may_make_keys": has_role(request.user, project, "member"),
        "is_admin": has_role(request.user, project, "admin"),
        "has_examples": Run.objects.filter(project=project, is_example=True).exists(),
        "scores": capture_scores(project),
        **arrival_facts(project),
    }


def keys_in_use(project: Project) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(project=project, revoked_at=None).select_related("created_by").order_by("-pk")[:50]


def arrival_facts(project: Project) -> dict[str, Any]:
    """The newest recording; examples came with the house and are not waited for."""
    recorded = Run.objects.filter(project=project, origin="recorded").select_related("session").order_by("-pk")
    return {"project": project, "newest": recorded.only("run_id", "received_at", "step_count", "session").first()}


SAMPLE = 200
"""Newest runs that the capture score looks at."""


def capture_scores(project: Project) -> dict[str, Any]:
    """How much of the replay kit the newest runs hold, line by line."""
    newest = Run.objects.filter(project=project, origin="recorded").order_by("-pk")
    kits = list(newest.values_list("kit", flat=True)[:SAMPLE])
    lines: dict[str, dict[str, Any]] = {}
    for kit in kits:
        for line in kit.get("lines", []):
            entry = lines.setdefault(line["key"], {"title": line["title"], "captured": 0, "line": line})
            entry["captured"] += line["status"] == "captured"
            if line["status"] != "captured":
                entry["line"] = line
    for entry in lines.values():
        entry["percent"] = 100 * entry["captured"] // len(kits)
    lacking = sorted((entry for entry in lines.values() if entry["percent"] < 100), key=lambda entry: entry["percent"])
    return {"runs": len(kits), "lines": list(lines.values()), "fixes": lacking[:2]}
