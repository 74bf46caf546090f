"""What a chat shows for an address that somebody pastes: what kind of page it is, and nothing that was recorded.

Chats fetch pages as strangers do. They see shared pages, and the sign-in page, which knows where its reader was going.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from django.urls import Resolver404, resolve

from sessions_app.models import Run

_TITLES = {
    "session": "A recorded session",
    "step": "A step of a recorded session",
    "fork": "A fork of a recorded session",
    "forks": "The forks of a recorded session",
    "replay": "A replay report",
    "session_replay": "A replay of a whole session",
    "diff": "A comparison of two runs",
    "golden": "A golden",
    "golden_run": "A run of a golden",
    "cold": "Cold cases",
    "sessions": "A list of sessions",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    title: str
    description: str


def preview_of(address: str) -> Preview | None:
    """Of a page that needs a sign-in; None for one that there is nothing to say of."""
    parts = urlsplit(address)
    try:
        found = resolve(parts.path)
    except Resolver404:
        return None
    title = _TITLES.get(found.url_name or "")
    if title is None:
        return None
    step = str(found.kwargs.get("n") or parse_qs(parts.query).get("step", [""])[0])
    if found.url_name in {"session", "step"} and step.isdecimal() and step.isascii() and len(step) < 10:
        title = f"Step {step} of a recorded session"
    return Preview(title=title, description="Sign in to Incident replay to open it.")


def preview_of_shared(run: Run, until: datetime) -> Preview:
    steps = f"{run.step_count:,} step{'' if run.step_count == 1 else 's'}"
    return Preview(title=f"A recorded run of {steps}", description=f"Shared read-only until {until:%-d %B %Y}.")
