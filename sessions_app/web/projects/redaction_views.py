"""What is taken out of a project's recordings before they are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from sessions_app.core.redaction import BadRule, OwnRules
from sessions_app.core.redaction.own_rules import KINDS, read_fields, read_patterns
from sessions_app.models import Project, RedactionJob
from sessions_app.models.redaction_jobs import RedactionState
from sessions_app.services import redaction_jobs
from sessions_app.services.redaction import own_rules, save_rules, try_rules
from sessions_app.web.access import project_page, user_of
from sessions_app.web.htmx import HtmxHttpRequest


class RulesForm(forms.Form):
    fields_taken = forms.CharField(required=False, widget=forms.Textarea)
    patterns = forms.CharField(required=False, widget=forms.Textarea)
    kinds = forms.MultipleChoiceField(required=False, choices=list(KINDS.items()))

    def clean_fields_taken(self) -> tuple[str, ...]:
        try:
            return read_fields(self.cleaned_data["fields_taken"])
        except BadRule as bad:
            raise forms.ValidationError(str(bad)) from None

    def clean_patterns(self) -> tuple[tuple[str, str], ...]:
        try:
            return read_patterns(self.cleaned_data["patterns"])
        except BadRule as bad:
            raise forms.ValidationError(str(bad)) from None

    def rules(self) -> OwnRules:
        said = self.cleaned_data
        return OwnRules(fields=said["fields_taken"], patterns=said["patterns"], kinds=tuple(said["kinds"]))


def _page_facts(project: Project) -> dict[str, Any]:
    return {"project": project, "section": "settings", "settings_page": "redaction", **_stored(project)}


def _typed(rules: OwnRules) -> dict[str, Any]:
    patterns = "\n".join(f"{name}: {pattern}" for name, pattern in rules.patterns)
    return {"fields_taken": "\n".join(rules.fields), "patterns": patterns, "kinds": list(rules.kinds)}


@never_cache
@require_http_methods(["GET", "POST"])
@project_page("admin")
def rules(request: HttpRequest, project: Project) -> HttpResponse:
    form = RulesForm(request.POST if request.method == "POST" else _typed(own_rules(project)))
    if request.method == "POST" and form.is_valid():
        save_rules(project, form.rules())
        messages.info(
            request,
            "Saved. The rules apply to recordings that arrive from now on. To apply them to earlier ones, see below.",
        )
        return redirect("redaction", project.slug)
    facts = {**_page_facts(project), "form": form}
    status = 422 if request.method == "POST" else 200
    return render(request, "projects/redaction.html", facts, status=status)


@never_cache
@require_POST
@project_page("admin")
def tried(request: HtmxHttpRequest, project: Project) -> HttpResponse:
    """What the typed rules would take out of the last runs; nothing is kept."""
    form = RulesForm(request.POST)
    found = try_rules(project, form.rules()) if form.is_valid() else None
    facts = {**_page_facts(project), "form": form, "tried": found}
    if request.htmx:
        return render(request, "projects/_tried.html", facts)
    return render(request, "projects/redaction.html", facts, status=200 if form.is_valid() else 422)


# --- applied to what is stored -----------------------------------------------------------------


def _stored(project: Project) -> dict[str, Any]:
    job = redaction_jobs.open_job(project)
    done = RedactionJob.objects.filter(project=project, state=RedactionState.DONE)
    size = redaction_jobs.size_of(job) if job and job.is_at_work else None
    return {"job": job, "job_size": size, "jobs_done": done.select_related("started_by").order_by("-pk")[:10]}


@never_cache
@require_GET
@project_page("admin")
def stored(request: HttpRequest, project: Project) -> HttpResponse:
    """How far it is."""
    return render(request, "projects/_stored.html", {"project": project, **_stored(project)})


@require_POST
@project_page("admin")
def change_stored(request: HttpRequest, project: Project) -> HttpResponse:
    """Count, start what was counted, or drop it."""
    do = _STORED_ACTIONS.get(request.POST.get("do", ""))
    if do is None:
        return HttpResponseBadRequest()
    try:
        do(project, user_of(request))
    except redaction_jobs.NotCounted as error:
        messages.error(request, str(error))
    return redirect(reverse("redaction", args=[project.slug]) + "#stored")


_STORED_ACTIONS: dict[str, Callable[[Project, User], object]] = {
    "count": redaction_jobs.ask_for_count,
    "start": redaction_jobs.start,
    "cancel": lambda project, user: redaction_jobs.cancel(project),
}
