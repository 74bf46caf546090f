"""What people do with a replay that stands at a breakpoint."""

from __future__ import annotations

from itertools import takewhile

from django.contrib.auth.models import User
from django.db import transaction

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.payload import JsonObject
from sessions_app.models import Replay
from sessions_app.models.replays import FORK_MODES, ReplayMode, ReplayState
from sessions_app.services.fork_checks import Parent
from sessions_app.services.forks import answer_by_hand, queue_again, request_fork
from sessions_app.services.hand_answers import as_change
from sessions_app.services.replays import cancel_replay
from sessions_app.services.typed_json import without_secrets

_INHERITED = ("agent", "tools", "breakpoints")


def continue_replay(*, replay: Replay) -> Replay:
    """Go on to the next breakpoint or to the end. Raises `ForkError` when it is not paused."""
    return _go_on(replay, is_stepping=False)


def step_once(*, replay: Replay) -> Replay:
    """Go on to the next model request or tool call. Raises `ForkError` when it is not paused."""
    return _go_on(replay, is_stepping=True)


def _go_on(replay: Replay, *, is_stepping: bool) -> Replay:
    with transaction.atomic():
        row, stopped = _paused(replay)
        return queue_again(row, row.course | {"passed": stopped["at"], "is_stepping": is_stepping})


def edit_and_continue(*, replay: Replay, answer: JsonObject, user: User | None = None) -> Replay:
    """Give what it stands at another answer and go on; returns the replay to look at.

    A fork goes on itself. A replay that changes nothing ends here, and a fork of its run with that change goes on in
    its place, with the same breakpoints and agent. `answer` and errors are those of `answer_by_hand`.
    """
    with transaction.atomic():
        row, stopped = _paused(replay)
        if row.mode in FORK_MODES:
            return answer_by_hand(replay=row, answer=answer, user=user)
        change = as_change(row, without_secrets(row.project, answer))
        order = {name: row.order[name] for name in _INHERITED if row.order.get(name)} | {
            "at_step": stopped["step"],
            "changes": [change],
            "hypothesis": "Edited at a breakpoint",
            "expect": "Read what the agent does after the edit.",
        }
        fork = request_fork(run=row.run_as_asked, order=order, user=user, course={"passed": _passed(row, stopped)})
        cancel_replay(row, user)
    return fork


def _passed(row: Replay, stopped: JsonObject) -> int:
    """Number of the edited stop in the fork: the team's code runs from its beginning, a rebuilt agent from the request
    or from the calls of the answer before it."""
    if row.mode in (ReplayMode.CODE, ReplayMode.CODE_AND_TOOLS):
        return int(stopped["at"])
    if stopped["kind"] == "model":
        return 1
    parent = Parent(row.run_as_asked)
    before = [index for index in sorted(parent.main) if index <= stopped["step"]]
    kinds = [kind for index in reversed(before) if (kind := parent.kinds[index]) in ("model", "tool")]
    return sum(1 for _ in takewhile(lambda kind: kind == "tool", kinds))


def _paused(replay: Replay) -> tuple[Replay, JsonObject]:
    """Its row, locked, and where it stands, if it still stands where the caller saw it."""
    row = Replay.objects.select_for_update(of=("self",)).select_related("run__project", "project").get(pk=replay.pk)
    if row.state != ReplayState.PAUSED or row.stopped_at is None:
        raise ForkError("The replay is not paused; it is already running again or has ended.", field="state")
    if replay.stopped_at is not None and replay.stopped_at != row.stopped_at:
        raise ForkError("By now the replay is at a different step.", field="state")
    return row, row.stopped_at
