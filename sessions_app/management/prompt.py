"""The prompt at a stop: one line is read, done, and answered. It offers what works at that stop and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from django.core.management import CommandError

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
LONGEST_LINE = 4095
"""Bytes of a line that a terminal passes on; it drops the rest without a word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A letter that can be typed at a stop."""

    short: str
    """As the one line above the prompt has it; its first letter is what is typed."""
    help: tuple[str, ...]


CONTINUE = Offer(
    short="c continue", help=("c                   continue to the next breakpoint, or to the end without one",)
)
STEP = Offer(short="s step", help=("s                   go on to the next model request or tool call",))
SHOW_TOOL = "p [WHAT]            show arguments, messages and state in short, or one of them in full"
SHOW_MODEL = "p [WHAT]            show messages and state in short, or one of them in full"
CANCEL = Offer(short="q cancel", help=("q                   cancel the replay and leave",))
LEAVE = Offer(short="q leave", help=("q                   leave; the fork keeps waiting for its answer",))
HELP = Offer(short="h help", help=("h                   show this help",))
ANSWER_TOOL = (
    "e ANSWER            go on with this answer of the tool: JSON, or a text",
    "e error: WORDS      go on as if the tool had failed with these words",
    "e not found         go on as if the tool had found nothing",
    "e like RUN_ID#STEP  go on with what that recorded call answered",
)
ANSWER_MODEL = (
    "e TEXT              go on with this text of the model",
    'e JSON              the same with tool calls: {"text": "...", "tool_calls": [{"name": "...", "arguments": {}}]}',
)
NOT_OFFERED = {
    "c": "Nothing knows this answer, so the fork cannot continue without one. Type e and the answer, or q to leave.",
    "s": "Nothing knows this answer, so the fork cannot step on without one. Type e and the answer, or q to leave.",
}
"""At a stop at something unknown; a paused replay offers both."""


def ask_at_stop(replay: Replay, stdin: TextIO, say: Say) -> Replay | None:
    """The replay that goes on, or None: nothing more was typed, or somebody wants it to stop."""
    offers = offers_at(replay)
    say([" · ".join(offer.short for offer in offers)])
    moves = {offer.short[0]: _MOVES[offer.short[0]] for offer in offers if offer.short[0] in _MOVES}
    for line in _lines(stdin, say):
        letter, _, rest = line.strip().partition(" ")
        try:
            if letter == "q":
                _leave(replay)
                return None
            if letter in moves:
                return moves[letter](replay, rest.strip())
            say(shown(replay, rest.strip()) if letter == "p" else _help(offers, letter))
        except (ForkError, StoredBytesMissing, RedactionFailed, CommandError) as error:
            say([str(error)])
    return None


def offers_at(replay: Replay) -> tuple[Offer, ...]:
    is_paused, is_model = replay.state == ReplayState.PAUSED, (replay.stopped_at or {})["kind"] == "model"
    show = Offer(short="p show", help=(SHOW_MODEL if is_model else SHOW_TOOL,))
    ways = ANSWER_MODEL if is_model else ANSWER_TOOL
    if is_paused:
        return CONTINUE, STEP, show, Offer(short="e change the answer", help=ways), CANCEL, HELP
    return Offer(short="e answer", help=ways), show, LEAVE, HELP


def _lines(stdin: TextIO, say: Say) -> Iterator[str]:
    while True:
        try:
            line = stdin.readline()
        except UnicodeDecodeError:
            say(["The line is not UTF-8, so it was not used. Type it again."])
            continue
        if not line:
            return
        if stdin.isatty() and len(line.encode(errors="surrogateescape")) >= LONGEST_LINE:
            words = f"A terminal passes on at most {LONGEST_LINE:,} bytes of a line, so this one may have been cut off"
            say([f"{words}. It was not used; give a long answer on the page or over the API."])
            continue
        yield line


def _help(offers: tuple[Offer, ...], letter: str) -> list[str]:
    is_answerable = any(offer.short.startswith("e ") for offer in offers)
    if letter in NOT_OFFERED and is_answerable:
        return [NOT_OFFERED[letter]]
    unknown = [] if letter in ("", "h") else [f"There is no {letter!r} here. These work:"]
    return [*unknown, *(line for offer in offers for line in offer.help)]


def _leave(replay: Replay) -> None:
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
