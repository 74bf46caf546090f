"""The prompt at a stop: one line is read, done, and answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TextIO

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.redaction import RedactionFailed
from sessions_app.management.telling import shown
from sessions_app.management.typed_orders import typed_answer
from sessions_app.models import Replay
from sessions_app.models.replays import ReplayState
from sessions_app.services.forks import answer_by_hand
from sessions_app.services.pauses import continue_replay, edit_and_continue, step_once
from sessions_app.services.replays import cancel_replay

Say = Callable[[Iterable[str]], None]
HELP = (
    "c                   continue to the next breakpoint or to the end",
    "s                   go on to the next model request or tool call",
    "p [WHAT]            show arguments, messages and state in short, or one of them whole",
    "e ANSWER            go on with another answer: JSON, or a text",
    "e error: WORDS      the tool fails with these words",
    "e not found         the tool finds nothing",
    "e like RUN_ID#STEP  what that recorded call answered",
    "q                   stop: a paused replay is cancelled",
)


def ask_at_stop(replay: Replay, stdin: TextIO, say: Say) -> Replay | None:
    """The replay that goes on, or None: nothing more was typed, or somebody wants it to stop."""
    say(["c continue · s step · p show · e ANSWER edit · q stop · h help"])
    while line := stdin.readline():
        word, _, rest = line.strip().partition(" ")
        try:
            if word == "q":
                _stop(replay)
                return None
            if word in _MOVES:
                return _MOVES[word](replay, rest.strip())
            say(shown(replay, rest.strip()) if word == "p" else HELP)
        except (ForkError, StoredBytesMissing, RedactionFailed) as error:
            say([f"{error.field}: {error.message}" if isinstance(error, ForkError) else str(error)])
    return None


def _stop(replay: Replay) -> None:
    if replay.state == ReplayState.PAUSED:
        cancel_replay(replay)


def _continue(replay: Replay, rest: str) -> Replay:
    return continue_replay(replay=replay)


def _step(replay: Replay, rest: str) -> Replay:
    return step_once(replay=replay)


def _edit(replay: Replay, rest: str) -> Replay:
    give = edit_and_continue if replay.state == ReplayState.PAUSED else answer_by_hand
    kind = (replay.stopped_at or {})["kind"]
    return give(replay=replay, answer=typed_answer(kind, rest))


_MOVES: dict[str, Callable[[Replay, str], Replay]] = {"c": _continue, "s": _step, "e": _edit}
