"""What this person has asked lately in this project; it is gone when they sign out."""

from __future__ import annotations

from django.http import HttpRequest

from sessions_app.models import Project

KEPT = 8
_NAME = "recent_queries"


def recent_queries(request: HttpRequest, project: Project) -> list[str]:
    """Newest first."""
    kept: list[str] = request.session.get(_NAME, {}).get(str(project.pk), [])
    return kept


def remember_query(request: HttpRequest, project: Project, text: str) -> None:
    """Writes only when it changes the order."""
    before = recent_queries(request, project)
    if not text or before[:1] == [text]:
        return
    kept = [text, *(other for other in before if other != text)][:KEPT]
    request.session[_NAME] = request.session.get(_NAME, {}) | {str(project.pk): kept}
