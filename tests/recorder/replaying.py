"""What a recording is worth: read by the server's parser, replayed by its engine, compared field by field."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from sessions_app.agents.loop.replaying import replay
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import Verdict, judge
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import Run
from sessions_app.core.unplayed import unplayed_steps


def replayed(record: bytes) -> tuple[Result, Run | None]:
    result, produced = asyncio.run(replay(record, "again", lambda done, total: None))
    return result, parse_native(produced) if produced else None


def assert_reproduced(record: bytes) -> None:
    result, produced = replayed(record)

    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)
    assert produced is not None
    assert_same_run(parse_native(record), produced)


def assert_same_run(recorded: Run, made: Run) -> None:
    """In all that a replay plays; of the rest the two runs cannot say anything."""
    comparison = compare_runs(recorded, made)
    assert comparison.identical is (None if unplayed_steps(recorded) else True), comparison.divergence


ENDS = ("unknown_from_step", "fixture_missing", "ran_past_recording")
"""Verdicts of a replay that agrees with its recording as far as that goes."""


def assert_promise_kept(record: bytes) -> Verdict:
    """The replay of an untouched recording ends where the judge said that it would."""
    judged = judge(parse_native(record))
    if judged.verdict == "replayable":
        assert_reproduced(record)
        return judged
    result, _ = replayed(record)
    if judged.verdict == "cold":
        assert (result.verdict, result.observations) == ("could_not_run", None)
        return judged
    assert judged.step is not None
    assert result.divergence is not None
    assert result.verdict in ENDS, result.divergence
    assert result.divergence.step == judged.step + 1
    return judged


def verdict_of(record: dict[str, Any]) -> tuple[str, int | None, str | None]:
    """Verdict, step and path of the divergence."""
    result, _ = replayed(json.dumps(record).encode())
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)
