"""What a recording is worth: read by the server's parser, replayed by its engine, compared field by field."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from sessions_app.agents.replaying import replay
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import Run


def replayed(record: bytes) -> tuple[Result, Run | None]:
    result, produced = asyncio.run(replay(record, "again", lambda done, total: None))
    return result, parse_native(produced) if produced else None


def assert_reproduced(record: bytes) -> None:
    result, produced = replayed(record)

    assert (result.verdict, result.divergence, result.error) == ("reproduced", None, None)
    assert produced is not None
    comparison = compare_runs(parse_native(record), produced)
    assert comparison.identical, comparison.divergence


def verdict_of(record: dict[str, Any]) -> tuple[str, int | None, str | None]:
    """Verdict, step and path of the divergence."""
    result, _ = replayed(json.dumps(record).encode())
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)
