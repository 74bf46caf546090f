"""Facts about runs as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Retrieval, Run
from tests.traces.captures import Capture
from tests.traces.sides import agent_runs, same


def spans(capture: Capture) -> tuple[Any, Any]:
    """Each span is the run's own, or behind a step, alone or with others that tell of the same call: once."""
    true = sorted(span.span_id for span in capture.sent)
    return true, sorted(str(told["span_id"]) for run in capture.runs for told in _told_spans(run))


def _told_spans(run: Run) -> Iterator[JsonObject]:
    root = run.extra["trace"].get("root")
    for told in (root, *(step.extra.get("span") for step in run.steps)):
        if told is not None:
            yield from (told, *told.get("twins", ()))


def inputs(capture: Capture) -> tuple[Any, Any]:
    true = {same(run["input"]) for run in capture.truth["runs"]}
    return true, true & {same(run.input.value) for run in agent_runs(capture) if run.input}


def outputs(capture: Capture) -> tuple[Any, Any]:
    true = {same(run["output"]) for run in capture.truth["runs"] if run["output"] is not None}
    return true, true & {same(run.output.value) for run in agent_runs(capture) if run.output}


def endings(capture: Capture) -> tuple[Any, Any]:
    true = any(run["error"] for run in capture.truth["runs"])
    return true, any(run.status == "error" for run in agent_runs(capture))


def sessions(capture: Capture) -> tuple[Any, Any]:
    true = {run["session_id"] for run in capture.truth["runs"] if run["session_id"]}
    return true, true & {run.session_id for run in agent_runs(capture)}


def users(capture: Capture) -> tuple[Any, Any]:
    true = {run["user_id"] for run in capture.truth["runs"] if run["user_id"]}
    return true, true & {run.user_id for run in agent_runs(capture)}


def searches(capture: Capture) -> tuple[Any, Any]:
    true = [search["query"] for run in capture.truth["runs"] for search in run["retrievals"]]
    return true, [call.query.value if call.query else None for call in _searches(capture)]


def documents(capture: Capture) -> tuple[Any, Any]:
    """Ids, scores and texts of what was found."""
    found = [each for run in capture.truth["runs"] for search in run["retrievals"] for each in search["documents"]]
    true = Counter((each.get("id"), _rounded(each.get("score")), each["text"]) for each in found)
    chunks = [chunk for call in _searches(capture) for chunk in call.chunks or ()]
    contents = (each.content.value if each.content else None for each in chunks)
    told = Counter((each.chunk_id, _rounded(each.score), text) for each, text in zip(chunks, contents, strict=True))
    return true, told


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 3)


def _searches(capture: Capture) -> list[Retrieval]:
    return [step.call for run in agent_runs(capture) for step in run.steps if isinstance(step.call, Retrieval)]
