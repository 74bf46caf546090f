"""From a replay that is over to what a golden's result is made of."""

from __future__ import annotations

from collections.abc import Sequence

from replay_goldens.checks import judge
from replay_goldens.judged import Check
from sessions_app.core.goldens.results import Played, Sample
from sessions_app.core.goldens.traces import missing_tools, trace_of
from sessions_app.core.replay.words import ReplayFacts, is_in_part, verdict_in_words
from sessions_app.core.run import Run
from sessions_app.core.unproven_outcomes import why_unproven


def played_of(facts: ReplayFacts, made: Sequence[Run], *, asked: int = 1, enough: int = 1) -> Played:
    """`made` are the runs that the replay produced; none of one that never began, or did not get to its end."""
    has_ended = any(run.status in ("ok", "error") and why_unproven(run) is None for run in made)
    return Played(
        ran=bool(made),
        stopped_at=None if has_ended else facts.stopped_at,
        unplayable="" if has_ended else _unplayable(facts),
        words=verdict_in_words(facts),
        asked=asked,
        enough=enough,
    )


def _unplayable(facts: ReplayFacts) -> str:
    if facts.limit and is_in_part(facts.verdict, facts.limit):
        why = f"{facts.missing_result}." if facts.lacks_result else facts.limit[0].lower() + facts.limit[1:]
        return f"Could not be played past step {facts.stopped_at}: {why}"
    return verdict_in_words(facts) if facts.agents_not_played else ""


def samples_of(scene: Run, made: Sequence[Run], checks: Sequence[Check], played: Played, *, mode: str) -> list[Sample]:
    """The recording itself in place of what was made of it where that cannot be played to its end, runs no code, and
    fails already."""
    if not made:
        return []
    recorded = Sample(judged=judge(checks, trace_of(scene)), is_recording=True)
    if played.unplayable and mode == "recording" and recorded.outcome is False:
        return [recorded]
    return [_sample(each, checks, scene, played) for each in made]


def _sample(made: Run, checks: Sequence[Check], scene: Run, played: Played) -> Sample:
    trace = trace_of(made, scene=scene, why_not_ended=played.words)
    error = (trace.error or "not recorded") if trace.has_failed else None
    return Sample(judged=judge(checks, trace), error=error, missing_tools=missing_tools(made, scene))
