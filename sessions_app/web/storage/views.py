"""What storing costs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from sessions_app.models import Project
from sessions_app.queries.storage import storage_of
from sessions_app.web.access import project_page


@require_GET
@project_page()
def storage(request: HttpRequest, project: Project) -> HttpResponse:
    facts = {"project": project, "section": "settings", "settings_page": "storage", "storage": storage_of(project)}
    return render(request, "storage/storage.html", facts)
