"""What models cost: the table that a project keeps."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST

from sessions_app.core.pricing import Cost
from sessions_app.models import ModelPrice, Project
from sessions_app.queries.access import has_role
from sessions_app.queries.costs import costs_of
from sessions_app.queries.prices import list_of, prices_of
from sessions_app.queries.sessions import Span
from sessions_app.queries.steps_of_runs import MOST_RUNS, recorded_runs
from sessions_app.services.prices import ListPrice, list_price
from sessions_app.templatetags.money import dollars
from sessions_app.templatetags.recorded import visible
from sessions_app.web.access import project_page
from sessions_app.web.errors.views import forbidden

SHOWN = 20
"""Models without a price that the page lists."""


class PriceForm(forms.Form):
    """One row; the same model and day again is written over."""

    model = forms.CharField(max_length=200)
    since = forms.DateField(required=False)
    input_price = forms.DecimalField(min_value=0, max_digits=12, decimal_places=6)
    output_price = forms.DecimalField(min_value=0, max_digits=12, decimal_places=6)


@require_http_methods(["GET", "POST"])
@project_page()
def prices(request: HttpRequest, project: Project) -> HttpResponse:
    is_admin = has_role(request.user, project, "admin")
    if request.method == "POST" and not is_admin:
        return forbidden(request)
    form = PriceForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        said = form.cleaned_data
        amounts = {"input_price": said["input_price"], "output_price": said["output_price"]}
        ModelPrice.objects.update_or_create(project=project, model=said["model"], since=said["since"], defaults=amounts)
        messages.info(request, "Price saved. It also applies to earlier runs.")
        return redirect("prices", project.slug)
    facts = {
        "project": project,
        "section": "settings",
        "settings_page": "prices",
        "prices": (listed := prices_of(project)),
        "unpriced": (unpriced := [(*each, list_price(each[0])) for each in _unpriced(project, listed)[:SHOWN]]),
        "with_list_price": [model for model, _, found in unpriced if found],
        "is_admin": is_admin,
        "errors": form.errors,
        "typed": request.POST if form.is_bound else _offered(request.GET.get("model", "")[:200]),
    }
    return render(request, "projects/prices.html", facts, status=422 if form.is_bound else 200)


def _unpriced(project: Project, listed: list[ModelPrice]) -> list[tuple[str, Cost]]:
    """Models of the newest runs without a price, and what they were used for; the one with the most tokens first."""
    figures = costs_of(recorded_runs(project, Span())[:MOST_RUNS], list_of(listed), "model")
    return [(name, figures.of_names[name]) for name in figures.names if name in figures.unpriced_models]


def _offered(model: str) -> dict[str, Any]:
    """The form for a model, filled in with its list price where one is known."""
    found = list_price(model) if model else None
    if found is None:
        return {"model": model, "is_unlisted": bool(model)}
    return {
        "model": model,
        "input_price": found.input_price.normalize(),
        "output_price": found.output_price.normalize(),
        "source": found.source,
        "pricing_page": found.page,
    }


@require_POST
@project_page("admin")
def take_list_price(request: HttpRequest, project: Project) -> HttpResponse:
    """One click on the page of costs; one model without a known list price leads to the form."""
    models = [model.replace("\x00", "")[:200] for model in request.POST.getlist("model")]
    found = {model: listed for model in models if (listed := list_price(model))}
    if not found:
        return redirect(f"{reverse('prices', args=[project.slug])}?{urlencode({'model': models[0] if models else ''})}")
    for model, listed in found.items():
        amounts = {"input_price": listed.input_price, "output_price": listed.output_price}
        ModelPrice.objects.update_or_create(project=project, model=model, since=None, defaults=amounts)
    messages.info(request, _taken(found))
    page = "prices" if request.POST.get("to") == "prices" else "costs"
    return redirect(f"{reverse(page, args=[project.slug])}?{request.GET.urlencode()}".rstrip("?"))


def _taken(found: dict[str, ListPrice]) -> str:
    (model, listed), *others = found.items()
    priced = f"{dollars(listed.input_price)} in and {dollars(listed.output_price)} out per million tokens"
    costs = f"{len(found)} models are priced now" if others else f"{visible(model)} now costs {priced}"
    return f"{costs}, as listed in {listed.source}. Check it against your contract."


@require_POST
@project_page("admin")
def delete(request: HttpRequest, project: Project, price: int) -> HttpResponse:
    get_object_or_404(ModelPrice, project=project, pk=price).delete()
    messages.info(request, "Deleted. Calls that it priced have an unknown cost now, unless another row fits.")
    return redirect("prices", project.slug)
