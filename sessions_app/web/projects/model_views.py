"""Which live models the replays of a project may ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.models import ConnectedModel, Project
from sessions_app.models.connected_models import Provider
from sessions_app.queries.access import has_role
from sessions_app.services import connected_models
from sessions_app.services.connected_models import BASE_URLS, MOST_A_DAY, REQUESTS_PER_DAY, CannotConnect, Connection
from sessions_app.services.live_models import live_models
from sessions_app.web.access import project_page
from sessions_app.web.errors.views import forbidden
from sessions_app.web.htmx import HtmxHttpRequest


class ModelForm(forms.Form):
    """What cannot be is said by the service."""

    name = forms.CharField(max_length=60)
    provider = forms.ChoiceField(choices=Provider.choices)
    base_url = forms.CharField(max_length=300, required=False)
    model = forms.CharField(max_length=200, required=False)
    key = forms.CharField(max_length=1000, required=False)
    requests_per_day = forms.IntegerField(min_value=1, max_value=MOST_A_DAY)

    def took(self, act: Callable[[ConnectedModel, Connection], object], row: ConnectedModel) -> bool:
        if not self.is_valid():
            return False
        try:
            act(row, Connection(**self.cleaned_data))
        except CannotConnect as problem:
            self.add_error(problem.field, problem.message)
        return not self.errors


@never_cache
@sensitive_post_parameters("key")
@require_http_methods(["GET", "POST"])
@project_page()
def models(request: HtmxHttpRequest, project: Project) -> HttpResponse:
    is_admin = has_role(request.user, project, "admin")
    if request.method == "POST" and not is_admin:
        return forbidden(request)
    row = ConnectedModel(project=project, requests_per_day=REQUESTS_PER_DAY)
    facts = {"project": project, "is_admin": is_admin, "models": live_models(project), "done": "Connected"}
    return _page(request, "projects/models.html", row, facts)


@never_cache
@sensitive_post_parameters("key")
@require_http_methods(["GET", "POST"])
@project_page("admin")
def model(request: HtmxHttpRequest, project: Project, model: int) -> HttpResponse:
    row = get_object_or_404(ConnectedModel, project=project, pk=model)
    facts = {"project": project, "name": row.name, "has_key": bool(row.sealed_key), "done": "Changed"}
    return _page(request, "projects/model.html", row, facts)


def _page(request: HtmxHttpRequest, template: str, row: ConnectedModel, facts: dict[str, Any]) -> HttpResponse:
    """A key that was typed is not written back."""
    form = ModelForm(request.POST if request.method == "POST" else None)
    facts |= {
        "section": "settings",
        "settings_page": "models",
        "errors": form.errors,
        "typed": request.POST if form.is_bound else connected_models.connection_of(row),
        "providers": [(value, label, BASE_URLS.get(Provider(value), "")) for value, label in Provider.choices],
        "hosts": settings.REPLAY_MODEL_HOSTS,
    }
    if request.POST.get("do") == "test":
        facts |= _answered(row) if form.took(_describe_for_test, row) else {}
        template = "projects/_model_tried.html" if request.htmx else template
    elif form.is_bound and form.took(connected_models.change, row):
        messages.info(request, f"{facts['done']} {row.name}.")
        return redirect("models", row.project.slug)
    return render(request, template, facts, status=422 if form.errors and not request.htmx else 200)


def _describe_for_test(row: ConnectedModel, wanted: Connection) -> None:
    connected_models.describe(row, wanted)
    if not row.model:
        raise CannotConnect("Enter a model for the test. You can clear the field again afterwards.", field="model")


def _answered(row: ConnectedModel, model: str = "") -> dict[str, str]:
    try:
        return {"answered": connected_models.try_out(row, model)}
    except ModelUnavailable as problem:
        return {"unanswered": f"{row.name} did not answer. {problem.reason}"}


@require_POST
@project_page("admin")
def test(request: HttpRequest, project: Project, model: int) -> HttpResponse:
    row = get_object_or_404(ConnectedModel, project=project, pk=model)
    for words in _answered(row, request.POST.get("model", "").strip()[:200]).values():
        messages.info(request, words)
    return redirect("models", project.slug)


@require_POST
@project_page("admin")
def remove(request: HttpRequest, project: Project, model: int) -> HttpResponse:
    row = get_object_or_404(ConnectedModel, project=project, pk=model)
    row.delete()
    messages.success(request, f"Removed {row.name} and its key. Replays that need it will fail and say so.")
    return redirect("models", project.slug)
