"""One form, one fork, or one for each preset of the tool's answer that is ticked; queued together or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest

from sessions_app.core.errors import NotReplayable, StoredBytesMissing
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.redaction import RedactionFailed
from sessions_app.models import Replay, Run
from sessions_app.models.replays import ReplayMode
from sessions_app.services.forks import request_fork
from sessions_app.web.forks.changes import ticked_presets
from sessions_app.web.forks.form import Reading, read_form
from sessions_app.web.forks.inputs import TOP, Refused, Typed
from sessions_app.web.forks.recorded import Recorded
from sessions_app.web.form_keys import request_key


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedFork:
    """One fork of a form."""

    preset: str
    """Key of the preset that makes it differ from the others; empty for a form that asks for one fork."""
    title: str
    reading: Reading


def wanted_forks(typed: Typed, recorded: Recorded) -> list[WantedFork]:
    """At least one. They differ in the tool's answer alone."""
    titles = {preset.key: preset.title for preset in recorded.tool.presets}
    keys = ticked_presets(typed) if typed.get("use_result") else []
    return [
        WantedFork(preset=key, title=titles.get(key, key), reading=read_form({**typed, "preset": key}, recorded))
        for key in keys or [""]
    ]


def errors_of(forks: list[WantedFork]) -> dict[str, str]:
    """What is wrong with the form, by input; forks may be queued when it is empty."""
    errors = {name: words for fork in reversed(forks) for name, words in fork.reading.errors.items()}
    if len(forks) > 1 and _is_sampling(forks[0]):
        errors["sampling"] = "One sampling at a time: tick one preset at most, or do not ask the live model."
    return errors


def _is_sampling(fork: WantedFork) -> bool:
    return "samples" in fork.reading.order


def queue_forks(request: HttpRequest, run: Run, forks: list[WantedFork]) -> list[Replay]:
    """All of them or none. Raises `Refused`, which says of several forks which one is the reason."""
    with transaction.atomic():
        return [_queue(request, run, fork, len(forks)) for fork in forks]


def _queue(request: HttpRequest, run: Run, fork: WantedFork, count: int) -> Replay:
    try:
        return _request(request, run, fork)
    except Refused as refused:
        if count == 1:
            raise
        words = f"{fork.title}: {refused.message} None of the {count} forks is queued."
        raise Refused(refused.name, words) from None


def _request(request: HttpRequest, run: Run, fork: WantedFork) -> Replay:
    order = fork.reading.order
    key = request_key(request, run, order, fork.preset)
    mode = ReplayMode.SAMPLING if _is_sampling(fork) else ReplayMode.FORK
    user: User = request.user  # type: ignore[assignment]  # signed in: project_page
    try:
        return request_fork(run=run, order=order, user=user, request_key=key, mode=mode)
    except ForkError as error:
        [(name, words)] = fork.reading.refused(error).items()
        raise Refused(name, words) from None
    except NotReplayable as problem:
        raise Refused(TOP, str(problem)) from None
    except RedactionFailed:
        words = "What you typed could not be searched for secrets, so nothing of it was stored."
        raise Refused(TOP, words) from None
    except StoredBytesMissing as gone:
        raise Refused(TOP, gone_words(gone)) from None


def gone_words(gone: StoredBytesMissing) -> str:
    return f"Recorded bytes that this fork needs are no longer stored: {gone.name}."
