"""Which live models the replays of a project may ask."""

from __future__ import annotations

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


class ConnectForm(forms.Form):
    """What cannot be is said by the service."""

    name = forms.CharField(max_length=60)
    provider = forms.ChoiceField(choices=Provider.choices)
    base_url = forms.CharField(max_length=300, required=False)
    model = forms.CharField(max_length=200, required=False)
    key = forms.CharField(max_length=1000, required=False)
    requests_per_day = forms.IntegerField(min_value=1, max_value=MOST_A_DAY)


@never_cache
@sensitive_post_parameters("key")
@require_http_methods(["GET", "POST"])
@project_page()
def models(request: HttpRequest, project: Project) -> HttpResponse:
    is_admin = has_role(request.user, project, "admin")
    if request.method == "POST" and not is_admin:
        return forbidden(request)
    form = ConnectForm(request.POST if request.method == "POST" else None)
    if form.is_bound and _connected(project, form):
        messages.info(request, f"Connected {form.cleaned_data['name']}. Test it before you rely on it.")
        return redirect("models", project.slug)
    return _page(request, project, form, is_admin=is_admin)


def _connected(project: Project, form: ConnectForm) -> bool:
    if not form.is_valid():
        return False
    try:
        connected_models.connect(project, Connection(**form.cleaned_data))
    except CannotConnect as problem:
        form.add_error(problem.field, problem.message)
        return False
    return True


def _page(request: HttpRequest, project: Project, form: ConnectForm, *, is_admin: bool) -> HttpResponse:
    """A key that was typed is not written back."""
    facts: dict[str, Any] = {
        "project": project,
        "section": "settings",
        "settings_page": "models",
        "models": live_models(project),
        "is_admin": is_admin,
        "errors": form.errors,
        "typed": request.POST if form.is_bound else {"requests_per_day": REQUESTS_PER_DAY},
        "providers": [(value, label, BASE_URLS.get(Provider(value), "")) for value, label in Provider.choices],
        "hosts": settings.REPLAY_MODEL_HOSTS,
    }
    return render(request, "projects/models.html", facts, status=422 if form.is_bound else 200)


@require_POST
@project_page("admin")
def test(request: HttpRequest, project: Project, model: int) -> HttpResponse:
    row = get_object_or_404(ConnectedModel, project=project, pk=model)
    try:
        said = connected_models.try_out(row, request.POST.get("model", "").strip()[:200])
        messages.success(request, said)
    except ModelUnavailable as problem:
        messages.error(request, f"{row.name} did not answer. {problem.reason}")
    return redirect("models", project.slug)


@require_POST
@project_page("admin")
def change_budget(request: HttpRequest, project: Project, model: int) -> HttpResponse:
    row = get_object_or_404(ConnectedModel, project=project, pk=model)
    said = request.POST.get("requests_per_day", "")
    try:
        connected_models.change_budget(row, int(said) if said.isdecimal() and len(said) < 10 else 0)
        messages.success(request, f"{row.name} can now be called {row.requests_per_day:,} times a day.")
    except CannotConnect as problem:
        messages.error(request, problem.message)
    return redirect("models", project.slug)


@require_POST
@project_page("admin")
def remove(request: HttpRequest, project: Project, model: int) -> HttpResponse:
    row = get_object_or_404(ConnectedModel, project=project, pk=model)
    row.delete()
    messages.success(request, f"Removed {row.name} and its key. Replays that need it will fail and say so.")
    return redirect("models", project.slug)
