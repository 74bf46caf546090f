"""The runs of a session to switch between: what each was asked, and which of them went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_app.models import Replay, Run
from sessions_app.queries.session_replays import newest_of
from sessions_app.queries.turns import is_other, newest_replays
from sessions_app.services.session_replays import session_report
from sessions_app.web.run_pages import RunPlace

NAMED = 6
"""Runs that went wrong, and that the line below the tabs links to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tab:
    number: int
    run: Run
    words: str
    replay: Replay | None
    """Of a replay that came to another end than the recording; how many agreed in part is said below."""

    @property
    def went_wrong(self) -> bool:
        return self.run.failure_group is not None


def tabs_context(place: RunPlace) -> dict[str, Any]:
    """The tabs, the runs among them that went wrong, and how the newest replay of all ended. The head says what went
    wrong in the one that is shown."""
    if not place.is_one_of_many:
        return {"tabs": _tabs(place.siblings, {})}
    replays, asked = newest_replays([place.run.session_id]), newest_of(place.run.session)
    tabs = _tabs(place.siblings, {pk: each for pk, each in replays.items() if _is_marked(each)})
    wrong = [tab for tab in tabs if tab.went_wrong]
    return {
        "tabs": tabs,
        "wrong_tabs": wrong[:NAMED],
        "wrong_count": len(wrong),
        "repeats_unchecked": _repeats_unchecked(place.run, tabs),
        "is_the_wrong_one": [tab.run.pk for tab in wrong] == [place.run.pk],
        "session_replay": asked,
        "session_replay_words": session_report(asked).words if asked else "",
    }


def _repeats_unchecked(run: Run, tabs: Sequence[Tab]) -> bool:
    """Whether a run before it went wrong, and it called no tool that could have told it otherwise."""
    wrong = [tab.number for tab in tabs if tab.went_wrong]
    own = next((tab.number for tab in tabs if tab.run.pk == run.pk), 0)
    return bool(wrong) and wrong[0] < own and not run.tool_call_count


def _is_marked(replay: Replay) -> bool:
    return is_other(replay) and replay.shown_verdict != "partial"


def _tabs(runs: Sequence[Run], replays: Mapping[int, Replay]) -> list[Tab]:
    """Runs that were asked the same are told apart by their ids."""
    often = Counter(map(_words, runs))
    return [
        Tab(number=at, run=run, words=said if often[said] == 1 else run.run_id, replay=replays.get(run.pk))
        for at, run in enumerate(runs, start=1)
        for said in (_words(run),)
    ]


def _words(run: Run) -> str:
    """What it was asked; of a sub-agent, who that is."""
    called = run.agent_name if run.parent_run_id else None
    return called or run.input_preview or run.run_id
