"""Queries that a project keeps under a name."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from sessions_app.models import Project, SavedQuery
from sessions_app.web.access import project_page
from sessions_app.web.session_list.address import ListAddress, to_list

MOST = 100


class NameForm(forms.Form):
    name = forms.CharField(max_length=80)


@require_POST
@project_page("member")
def save(request: HttpRequest, project: Project) -> HttpResponse:
    """The list as it is addressed, for everybody in the project; the same name again is written over."""
    form, address = NameForm(request.POST), _address(request)
    if not form.is_valid():
        messages.warning(request, "A saved query needs a name of at most 80 characters.")
    elif SavedQuery.objects.filter(project=project).count() >= MOST:
        messages.warning(request, f"A project keeps at most {MOST} queries. Delete one first.")
    else:
        kept = {"address": str(address.top), "created_by": request.user}
        SavedQuery.objects.update_or_create(project=project, name=form.cleaned_data["name"], defaults=kept)
        messages.info(request, f"Saved as {form.cleaned_data['name']}.")
    return to_list(project, address)


@require_POST
@project_page("member")
def delete(request: HttpRequest, project: Project, query: int) -> HttpResponse:
    found = get_object_or_404(SavedQuery, project=project, pk=query)
    found.delete()
    messages.info(request, f"{found.name} is deleted.")
    return to_list(project, _address(request))


def _address(request: HttpRequest) -> ListAddress:
    """Only what an address of the list may hold is taken from the form."""
    return ListAddress.read(QueryDict(request.POST.get("back", "").removeprefix("?")))
