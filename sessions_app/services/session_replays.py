"""Replaying all runs of a session: one order, one report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from django.contrib.auth.models import User
from django.db import transaction

from sessions_app.core.errors import NotReplayable, StoredBytesMissing
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.parts import PRESET_WORDS
from sessions_app.core.reports.session_report import ReplayedRun, SessionReport
from sessions_app.core.run import Run as RecordedRun
from sessions_app.core.sessions.contradictions import Contradiction, find_contradictions
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Replay, Run, Session, SessionReplay
from sessions_app.models.replays import ReplayState
from sessions_app.queries.session_replays import go_on_from_others, replays_in, runs_in_order
from sessions_app.services.replays import RequestKeyUsed, cancel_all, checked_order, create_replay
from sessions_app.services.reports import first_difference, plain_facts
from sessions_app.services.wakeups import wake

MOST_RUNS = 200


def request_session_replay(
    *,
    session: Session,
    user: User | None = None,
    mode: str = "recording",
    request_key: str | None = None,
    order: JsonObject | None = None,
) -> SessionReplay:
    """Queue a replay of each recorded run of the session, in their order: all of them or none.

    Mode and order are those of `request_replay`, for each run, and so is what it raises.
    """
    wanted, agent = checked_order(session.project, mode, order or {})
    runs = _runs_of(session)
    contradictions = [found.to_json() for found in find_contradictions(_recorded(runs))]
    with transaction.atomic():
        # Numbers and keys are given one after the other, as for single replays.
        Project.objects.select_for_update(no_key=True).get(pk=session.project_id)
        known = _known(session, mode, wanted, request_key)
        if known is not None:
            return known
        asked = SessionReplay.objects.create(
            project_id=session.project_id,
            session=session,
            mode=mode,
            order=wanted,
            contradictions=contradictions,
            requested_by=user,
            request_key=request_key,
        )
        replays = [create_replay(run, user, mode, wanted, agent=agent, session_replay=asked) for run in runs]
        transaction.on_commit(lambda: _wake_for(replays))
    return asked


def _runs_of(session: Session) -> list[Run]:
    runs = runs_in_order(session, MOST_RUNS + 1)
    if not runs:
        raise NotReplayable("This session has no recorded run.")
    if len(runs) > MOST_RUNS:
        raise NotReplayable(f"A session of more than {MOST_RUNS} runs is not replayed as a whole.")
    return runs


def _recorded(runs: Sequence[Run]) -> Iterator[RecordedRun]:
    """What may contradict each other, loaded one by one. A run whose bytes are gone is not replayed either."""
    for run in runs if go_on_from_others(runs) else ():
        with suppress(StoredBytesMissing):
            yield load_run(run)


def _known(session: Session, mode: str, order: JsonObject, request_key: str | None) -> SessionReplay | None:
    if request_key is None:
        return None
    known = SessionReplay.objects.filter(project=session.project_id, request_key=request_key).first()
    if known is not None and (known.session_id, known.mode, known.order) != (session.pk, mode, order):
        words = f"The request key {request_key!r} was used for another session or order."
        raise RequestKeyUsed(words, field="request_key")
    return known


def _wake_for(replays: Sequence[Replay]) -> None:
    """While the broker is away each message costs time; the sweeper tells of those that are not sent."""
    for replay in replays:
        if not wake(replay):
            return


def cancel_session_replay(asked: SessionReplay, user: User | None = None) -> None:
    """What waits is cancelled at once, what runs as soon as its worker sees the wish; what is over stays as it is."""
    cancel_all(asked.replays.all(), user)


def session_report(asked: SessionReplay) -> SessionReport:
    """One query; `asked.session` must have been selected."""
    runs = tuple(_replayed_run(replay) for replay in replays_in(asked))
    return SessionReport(
        session_replay_id=asked.session_replay_id,
        session_id=asked.session.session_id,
        mode=asked.mode,
        preset=PRESET_WORDS[asked.mode],  # type: ignore[index]  # one of ours, from a column
        runs=runs,
        contradictions=_contradictions(asked, {run.run_id for run in runs}),
    )


def _contradictions(asked: SessionReplay, left: set[str]) -> tuple[Contradiction, ...]:
    """Between runs that are still there."""
    found = (Contradiction(**each) for each in asked.contradictions if len(left) > 1)
    return tuple(each for each in found if {each.run_id, each.other_run_id or each.run_id} <= left)


def _replayed_run(replay: Replay) -> ReplayedRun:
    return ReplayedRun(
        run_id=replay.run.run_id,
        replay_id=replay.replay_id,
        number=replay.number,
        state=ReplayState.RUNNING.value if replay.state == ReplayState.CLAIMED else replay.state,
        verdict=replay.shown_verdict if replay.is_over else None,
        facts=plain_facts(replay) if replay.is_over else None,
        difference=first_difference(replay) if replay.is_over else None,
    )
