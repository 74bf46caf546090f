"""Asking for forks, and answering by hand what a fork stopped at."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.fork.order import Order
from sessions_app.core.payload import JsonObject
from sessions_app.models import Replay, Run
from sessions_app.models.replays import FORK_MODES, ReplayMode, ReplayState
from sessions_app.services.fork_checks import check_code_reads_state, check_fork
from sessions_app.services.hand_answers import read_hand_answer
from sessions_app.services.replays import check_code, check_ended, choose_live_model, queue_replay, read_wanted
from sessions_app.services.typed_json import without_secrets
from sessions_app.services.wakeups import wake


def request_fork(
    *,
    run: Run,
    order: JsonObject,
    user: User | None = None,
    request_key: str | None = None,
    mode: str = "fork",
    course: JsonObject | None = None,
) -> Replay:
    """Queue a fork of a run; mode `resume` changes nothing, mode `sampling` asks a live model.

    `order` is described in core/fork/order.py; secrets are taken out of it. The same `request_key` again gives the
    replay that it gave before. `user` is None for a key of the API. `course` is how far it need not pause. Raises
    `StillRunning`, `ForkError` naming the field, `RedactionFailed`, and `PayloadMissing` when a step that is changed
    is gone.
    """
    if mode not in FORK_MODES:
        raise ForkError(f"mode must be one of {', '.join(FORK_MODES)}.", field="mode")
    check_ended(run)
    wanted, read = read_wanted(run.project, order)
    check_fork(run, read, mode)
    check_code(read)
    check_code_reads_state(read)
    _check_samples(read, mode)
    field = "samples" if mode == ReplayMode.SAMPLING else "on_difference"
    choose_live_model(run.project, wanted, read, field=field)
    wanted["at_step"] = read.at_step
    return queue_replay(
        run=run, user=user, mode=mode, request_key=request_key, order=wanted, agent=read.agent, course=course
    )


def _check_samples(order: Order, mode: str) -> None:
    if mode != ReplayMode.SAMPLING:
        if order.samples is not None:
            raise ForkError("Only a sampling has samples.", field="samples")
        return
    if order.samples is None:
        raise ForkError("samples is needed: how often the model is asked.", field="samples")
    if order.breakpoints:
        raise ForkError("A sampling does not pause; leave the breakpoints out.", field="breakpoints")


def answer_by_hand(*, replay: Replay, answer: JsonObject, user: User | None = None) -> Replay:
    """Give a fork the answer that it waits for and queue it again.

    `answer` is one of `{"value"}`, `{"error"}`, `{"not_found": true}`, `{"twin": {"run_id", "step"}}` for a tool, and
    `{"answer": {"text", "tool_calls"}}` for a model's request; with `at` it is refused when the fork waits at another
    stop by now. Raises `ForkError` naming the field; of two people who answer at once, one is told that the other was
    faster.
    """
    given = without_secrets(replay.project, answer)
    with transaction.atomic():
        row = _waiting(replay)
        entry = read_hand_answer(row, given)
        answers = [*(row.course.get("answers") or []), entry]
        stays_stepping = row.state != ReplayState.PAUSED and bool(row.course.get("is_stepping"))
        course = row.course | {"answers": answers, "passed": entry["at"], "is_stepping": stays_stepping}
        return queue_again(row, course)


def _waiting(replay: Replay) -> Replay:
    """Its row, locked, if it still waits where the caller saw it wait."""
    row = Replay.objects.select_for_update(of=("self",)).select_related("run", "project").get(pk=replay.pk)
    if row.mode not in FORK_MODES:
        raise ForkError("Only a fork takes answers by hand.", field="answer")
    waits = row.state == ReplayState.PAUSED or (row.state == ReplayState.DONE and row.waits_for_answer)
    if not waits or row.stopped_at is None:
        raise ForkError("It is not waiting: it is running again, or somebody else was faster.", field="answer")
    if replay.stopped_at is not None and replay.stopped_at != row.stopped_at:
        raise ForkError("By now it is waiting for something else.", field="answer")
    return row


def queue_again(row: Replay, course: JsonObject) -> Replay:
    """Let a replay that stopped go on; call it with the row locked. It runs from its beginning, with all attempts."""
    row.course, row.state, row.attempt = course, ReplayState.QUEUED, 0
    row.verdict = row.divergence = row.error = row.finished_at = row.stopped_at = row.expectation_met = None
    row.is_cancel_wanted, row.woken_at = False, timezone.now()
    row.save()
    transaction.on_commit(lambda: wake(row))
    return row
