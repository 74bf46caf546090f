"""The replays that are over, as few lines: those of one session replay are one, and so are those of a run that came to
the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessions_app.models import Replay, SessionReplay
from sessions_app.web.replays.list_rows import REPRODUCED, batch_words, detail_of, of_session, state_key
from sessions_app.web.replays.words import short_title_of


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedLine:
    """Replays that are told together."""

    newest: Replay
    asked: SessionReplay | None
    """What asked for all of them."""
    count: int
    state: tuple[str, str] | None
    """The table of the state that all have, and the key there; None where they differ."""
    detail: str


def finished_lines(replays: Iterable[Replay]) -> list[FinishedLine]:
    """In the order of the newest of each."""
    groups: dict[tuple[object, ...], list[Replay]] = {}
    for replay in replays:
        groups.setdefault(_told_with(replay), []).append(replay)
    return [_line(group) for group in groups.values()]


def _told_with(replay: Replay) -> tuple[object, ...]:
    if replay.session_replay_id is not None:
        return (replay.session_replay_id,)
    return replay.run_id, short_title_of(replay), *state_key(replay)


def _line(replays: Sequence[Replay]) -> FinishedLine:
    newest, states = replays[0], set(map(state_key, replays))
    asked = newest.session_replay if len(replays) > 1 else None
    counted = [batch_words(replays)] if len(states) > 1 else []
    return FinishedLine(
        newest=newest,
        asked=asked,
        count=len(replays),
        state=of_session(asked, state_key(newest)) if len(states) == 1 else None,
        detail=". ".join(filter(None, [*counted, _why(replays)])),
    )


def _why(replays: Sequence[Replay]) -> str:
    """What all have in common that were not reproduced; the steps that are the same differ from run to run."""
    others = [replay for replay in replays if state_key(replay) != REPRODUCED]
    for told in (detail_of, _limit):
        words = set(map(told, others))
        if len(words) == 1:
            return words.pop()
    return ""


def _limit(replay: Replay) -> str:
    return str((replay.facts.get("limit") or {}).get("reason", ""))
