"""What a golden has shown so far, and what to do about the first thing that it has not."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from sessions_app.models import Golden, Project
from sessions_app.models.replays import OF_CODE, ReplayMode
from sessions_app.services.goldens import warnings_of

_SO_FAR = "So far only the recordings differ: run it with the code that went wrong and with the repaired code."
_NEXT = {
    "repeats_the_recording": _SO_FAR,
    "fails_on_nothing": "Run it with the code that went wrong.",
    "passes_on_nothing": "Run it with the repaired code.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """Three things that make a golden worth something, and the next one to get."""

    fails: bool
    """On a run that went wrong."""
    passes: bool
    """On a run that is right, where it fails on another: what merely passes again repeats its recording."""
    not_passed: str
    runs_code: bool
    in_code: str | None
    """Where a golden that runs no code is kept anew as one that does."""
    next_words: str
    """Empty where nothing is missing."""


def proof_of(golden: Golden, project: Project) -> Proof:
    codes = [str(warning["code"]) for warning in warnings_of(golden)]
    is_recording = golden.mode == ReplayMode.RECORDING
    return Proof(
        fails=bool(golden.fails_on),
        passes=bool(golden.passes_on and golden.fails_on),
        not_passed="only on its recording" if is_recording and golden.passes_on else "not yet",
        runs_code=golden.mode in OF_CODE,
        in_code=_in_code(golden, project) if is_recording else None,
        next_words=_NEXT[codes[0]] if codes and not is_recording else "",
    )


def _in_code(golden: Golden, project: Project) -> str:
    asked = urlencode({"run": golden.run.run_id, "golden": golden.golden_id})
    return f"{reverse('new_golden', args=[project.slug, golden.run.session.session_id])}?{asked}"
