"""What the bar above every page shows."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from sessions_app.models import Project
from sessions_app.models.replays import OPEN_STATES, Replay, ReplayState
from sessions_app.queries.access import projects_of

THEMES = ("system", "light", "dark")

SECTIONS = (
    # name of the section, words, name of the address, key
    ("now", "Now", "project", "g n"),
    ("sessions", "Sessions", "sessions", "g s"),
    ("replays", "Replays", "replays", "g r"),
    ("cold", "Cold cases", "cold", "g c"),
    ("goldens", "Goldens", "goldens", "g g"),
    ("tools", "Tools", "tools", "g t"),
    ("costs", "Cost", "costs", "g m"),
    ("setup", "Send data", "setup", "g d"),
    ("settings", "Settings", "project_settings", "g e"),
)


def bar_facts(request: HttpRequest, project: Project | None, section: str) -> dict[str, Any]:
    """Two queries, whatever the page: the projects of the user, the open replays of this one."""
    # A request whose host is wrong is refused before anybody asks who sends it.
    user = getattr(request, "user", AnonymousUser())
    is_known = user.is_authenticated
    return {
        "request": request,
        "user": user,
        "project": project,
        "section": section,
        "sections": SECTIONS if project else (),
        "projects": list(projects_of(user).order_by("name")[:50]) if is_known else [],
        "open_replays": open_replays(project) if project and is_known else 0,
    }


def open_replays(project: Project) -> int:
    """Those that go on by themselves: one that is paused waits for somebody."""
    open_ones = Replay.objects.filter(project=project, state__in=list(OPEN_STATES))
    return open_ones.exclude(state=ReplayState.PAUSED).count()


def theme_of(request: HttpRequest | None) -> str:
    theme = request.COOKIES.get("theme", "system") if request else "system"
    return theme if theme in THEMES else "system"
