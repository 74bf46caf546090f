"""What a golden has shown so far, and what to do about the first thing that it has not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
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

    shown: tuple[tuple[bool, str], ...]
    """Whether each is shown, in words: that it fails on a bad run, passes on a fix, and runs code."""
    in_code: str | None
    """Where a golden that runs no code is kept anew as one that does."""
    next_words: str
    """Empty where nothing is missing."""


def proof_of(golden: Golden, project: Project, by_hand: Collection[str] = ()) -> Proof:
    """`by_hand` are ids of runs in which somebody wrote an answer: that a golden passes there proves nothing."""
    codes = [str(warning["code"]) for warning in warnings_of(golden)]
    is_recording = golden.mode == ReplayMode.RECORDING
    return Proof(
        shown=tuple(_shown(golden, by_hand)),
        in_code=_in_code(golden, project) if is_recording else None,
        next_words=_NEXT[codes[0]] if codes and not is_recording else "",
    )


def _shown(golden: Golden, by_hand: Collection[str]) -> Iterator[tuple[bool, str]]:
    """What merely passes again, without failing on another run, repeats its recording."""
    fails, passes, runs_code = bool(golden.fails_on), bool(golden.passes_on), golden.mode in OF_CODE
    if _fails_on_its_recording(golden):
        yield False, "fails on its own recording, which went well"
    else:
        yield fails, "fails on the bad run" if fails else "no bad run seen yet"
    if passes and set(golden.passes_on).issubset(by_hand):
        yield False, "passes only on an answer written by hand"
    elif passes and not fails and not runs_code:
        yield False, "passes only on its recording"
    else:
        yield passes and fails, "passes on a fix" if passes and fails else "no fix seen yet"
    yield runs_code, "runs your code" if runs_code else "runs none of your code"


def _fails_on_its_recording(golden: Golden) -> bool:
    """And on nothing else: a run that went well is no bad run, nor is a replay that repeats it."""
    scene, is_repeated = golden.run, golden.mode == ReplayMode.RECORDING
    went_well = scene.status == "ok" and scene.failure_group is None
    return went_well and (golden.fails_on == [scene.run_id] or (is_repeated and scene.run_id in golden.fails_on))


def _in_code(golden: Golden, project: Project) -> str:
    asked = urlencode({"run": golden.run.run_id, "golden": golden.golden_id})
    return f"{reverse('new_golden', args=[project.slug, golden.run.session.session_id])}?{asked}"
