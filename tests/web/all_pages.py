"""Every page and file that shows something of a run."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from sessions_app.models import Run


def pages_of(run: Run, *, step: int) -> list[str]:
    """Their addresses; `step` is the one that is looked at."""
    session, shop = run.session.session_id, run.project.slug
    page = reverse("session", args=[shop, session])
    of_the_run = [f"{page}?view={view}&step={step}" for view in ("steps", "timeline", "messages", "state", "raw")]
    names = ("replay_options", "forks", "workflow", "record", "otlp", "case_file")
    return [
        *of_the_run,
        f"{page}?q=order",
        reverse("step", args=[shop, session, step]),
        *(reverse(name, args=[shop, session]) for name in names),
        f"{reverse('fork', args=[shop, session])}?step={step}",
        reverse("diff", args=[shop, run.run_id, run.run_id]),
        reverse("sessions", args=[shop]),
        reverse("storage", args=[shop]),
    ]


def read(client: Client, address: str) -> int:
    """The status; a file is read to its end."""
    response = client.get(address)
    _ = b"".join(response.streaming_content) if response.streaming else response.content
    return int(response.status_code)
