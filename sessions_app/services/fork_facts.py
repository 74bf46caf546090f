"""What a report says of a fork, from its row, the run that it was forked from and the steps that it made."""

from __future__ import annotations

from sessions_app.core.fork.expected_words import Unproven
from sessions_app.core.fork.report import ForkedStep, ForkFacts, Samples
from sessions_app.core.fork.words import describe
from sessions_app.core.run import Run as RecordedRun
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Replay
from sessions_app.models.replays import FORK_MODES, ReplayMode
from sessions_app.queries.forks import expectation_of

STEPS = 500
"""Steps after the fork that are told one by one."""


def fork_facts(replay: Replay, run: RecordedRun) -> ForkFacts | None:
    """None for a replay that changes nothing. One query, for the steps that the fork made."""
    if replay.mode not in FORK_MODES:
        return None
    order, expected = replay.order, expectation_of(replay)
    return ForkFacts(
        at_step=order.get("at_step") or 1,
        changes=tuple(describe(change, run) for change in order.get("changes") or []),
        hypothesis=order.get("hypothesis") or "",
        expected=expected.words if expected else None,
        unmet=expected.unmet if expected else "",
        met=replay.expectation_met,
        unproven_source=replay.unproven_source or written_outcome(replay),
        seen=(replay.facts.get("expectation") or {}).get("seen"),
        steps=forked_steps(replay),
        asked=_asked(replay),
        samples=samples_of(replay),
        idle_rules=_idle_rules(replay),
    )


def _idle_rules(replay: Replay) -> tuple[str, ...]:
    rules = tuple(change["when"] for change in replay.order.get("changes") or [] if change["kind"] == "rule")
    return () if replay.facts.get("sources", {}).get("rule") else rules


def written_outcome(replay: Replay) -> Unproven | None:
    """`by_hand` or `rule`, where the order of a fork itself says what it came to; also where nothing was expected."""
    if replay.produced_run is None or replay.verdict not in ("diverged", "reproduced"):
        return None
    new = replay.produced_run.steps[(replay.order.get("at_step") or 1) - 1 :]
    last = next((row.source for row in reversed(new) if row.kind == "model"), None)
    written: dict[str, Unproven] = {"by_hand": "by_hand", "rule": "rule"}
    return written.get(last or "")


def forked_steps(replay: Replay) -> tuple[ForkedStep, ...]:
    """The steps from the fork's own on, each with where its answer came from."""
    if replay.produced_run is None:
        return ()
    first = (replay.facts.get("started_from") or {}).get("step") or replay.order.get("at_step") or 1
    rows = replay.produced_run.steps[first - 1 :][:STEPS]
    taken = {link["step"]: (link["run_id"], link["from_step"]) for link in replay.facts.get("links") or []}
    return tuple(_step(row, row.source, taken.get(row.index)) for row in rows)


def _step(row: StepSummary, source: str, taken_from: tuple[str, int] | None = None) -> ForkedStep:
    return ForkedStep(
        index=row.index,
        name=row.name,
        source=source,
        taken_from=taken_from,
        arguments=row.arguments_preview or "",
        error=row.error_preview or "" if row.has_error else None,
    )


def steps_answered(replay: Replay) -> tuple[ForkedStep, ...]:
    """Of a replay while it runs, whose steps are stored once it is over: those of the recording that it has come
    through, each with who answers it."""
    if replay.mode in FORK_MODES or not replay.progress_done:
        return ()
    sources = _WHILE_RUNNING.get(ReplayMode(replay.mode), {})
    rows = [row for row in replay.content.steps if row.kind in ("model", "tool")][: replay.progress_done]
    return tuple(_step(row, sources.get(row.kind, "recorded")) for row in rows[-STEPS:])


_WHILE_RUNNING = {ReplayMode.CODE_AND_TOOLS: {"tool": "own_code"}, ReplayMode.LIVE: {"model": "live"}}
"""Where answers come from that are not the recorded ones."""


def _asked(replay: Replay) -> str | None:
    stop = replay.stopped_at
    if stop is None:
        return None
    if stop.get("kind") == "model":
        return "the model"
    sent = (replay.facts.get("asked_for") or {}).get("http")
    return f"{sent['method']} {sent['url']} (sent by {stop.get('name')})" if sent else stop.get("name")


def samples_of(replay: Replay) -> Samples | None:
    found = replay.facts.get("samples")
    if not found:
        return None
    interval = found.get("interval")
    return Samples(
        n=found.get("n") or 0,
        judged=(found.get("done") or 0) - (found.get("unjudged") or 0),
        met=found.get("met"),
        interval=(interval[0], interval[1]) if interval else None,
        done=found.get("done") or 0,
        again=found.get("again"),
        outcomes=tuple((group["words"], group["count"]) for group in found.get("groups") or []),
    )
