"""Working on a claimed replay: the run goes to the child process, its result into the store."""

from __future__ import annotations

import logging
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction

from sessions_app.agents.sandbox import ChildDied, ChildPool, ReplayChild
from sessions_app.core.errors import LeaseLost, PayloadMissing
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject
from sessions_app.mapping.load import load_run
from sessions_app.mapping.rows import storable
from sessions_app.models import Replay, Run
from sessions_app.models.replays import ReplayState
from sessions_app.services import leases
from sessions_app.services.run_store import store_run

logger = logging.getLogger(__name__)
_POLL_SECONDS = 0.25
_BEAT_SECONDS = 0.5
"""How soon a wish to cancel is seen, both together."""


class Cancelled(Exception):
    """Somebody wants this replay to stop."""


class OutOfTime(Exception):
    """The replay took longer than it may."""


@dataclass
class _Progress:
    done: int = 0
    total: int = 0


def work_on(replay_id: int, *, worker: str, children: ChildPool) -> bool:
    """Take up a replay and see it through. False when there was nothing to take up."""
    replay = leases.claim(replay_id, worker)
    if replay is None:
        return False
    try:
        _run(replay, children)
    except LeaseLost:
        logger.warning("Replay %s was taken over by another worker.", replay.replay_id)
    except Exception as error:
        # Handed back at once. Its text may hold a payload, and the database may be away; then the lease does it.
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__} in {place.name}, line {place.lineno} of {Path(place.filename).name}"
        logger.error("The work on replay %s failed: %s.", replay.replay_id, reason)
        leases.give_up(replay, reason=f"The worker failed ({reason}).")
    return True


def _run(replay: Replay, children: ChildPool) -> None:
    try:
        record = encode_native(load_run(replay.run)).decode()
    except PayloadMissing as error:
        _fail(replay, str(error))
        return
    child = children.take()
    try:
        result = _converse(replay, child, record)
    except Cancelled:
        child.end()
        leases.finish(replay, state=ReplayState.CANCELLED, verdict="cancelled")
    except OutOfTime:
        child.end()
        _fail(replay, f"The replay took longer than {settings.REPLAY_TIME_LIMIT_SECONDS} s.")
    except ChildDied as death:
        child.end()
        leases.give_up(replay, reason=f"The replay process died ({death}).")
    except BaseException:
        child.end()
        raise
    else:
        if result["verdict"] == "could_not_run":
            child.end()  # it may be out of memory, or halfway through something
        else:
            children.give_back(child)
        _store(replay, result)


def _converse(replay: Replay, child: ReplayChild, record: str) -> JsonObject:
    """Send the run, keep the lease while the child works, return its result."""
    child.send({"id": replay.replay_id, "run_id": produced_run_id(replay), "record": record})
    progress, deadline = _Progress(total=replay.progress_total), _deadline()
    next_beat = 0.0
    for answer in child.answers(poll_seconds=_POLL_SECONDS):
        if answer is not None and answer.get("id") == replay.replay_id:
            if "result" in answer:
                return dict(answer["result"])
            progress.done, progress.total = answer["progress"]
        if time.monotonic() >= next_beat:
            _beat(replay, progress)
            next_beat = time.monotonic() + _BEAT_SECONDS
        if time.monotonic() > deadline:
            raise OutOfTime
    raise ChildDied("no answer")


def _deadline() -> float:
    return time.monotonic() + settings.REPLAY_TIME_LIMIT_SECONDS


def _beat(replay: Replay, progress: _Progress) -> None:
    if leases.beat(replay, done=progress.done, total=progress.total):
        raise Cancelled


def produced_run_id(replay: Replay) -> str:
    """Named after the recording; a name that a recording has already stays with it."""
    name = f"{replay.run.run_id[:460]}_replay_{replay.number}"
    is_taken = Run.objects.filter(project=replay.project_id, run_id=name).exists()
    return f"{name}_{replay.replay_id}" if is_taken else name


def _store(replay: Replay, result: JsonObject) -> None:
    """The produced run and the outcome in one transaction: both or none.

    The produced run is made of redacted texts alone, so it needs no redaction of its own.
    """
    state = ReplayState.FAILED if result["verdict"] == "could_not_run" else ReplayState.DONE
    with transaction.atomic():
        produced = None
        if result.get("record"):
            text = result["record"].encode()
            run = parse_native(text, Limits(max_bytes=len(text)))
            produced = store_run(replay.project, run, source=text).run
        leases.finish(
            replay,
            state=state,
            verdict=result["verdict"],
            divergence=storable(result.get("divergence")),
            live_calls=result["live_calls"],
            facts=storable(result.get("facts") or {}),
            error=storable(result.get("error")),
            produced_run=produced,
            progress_done=(result.get("facts") or {}).get("sources", {}).get("recorded", 0),
        )


def _fail(replay: Replay, reason: str) -> None:
    leases.finish(replay, state=ReplayState.FAILED, verdict="could_not_run", error=reason)
