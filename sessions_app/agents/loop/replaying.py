"""One replay from record text to result and produced record; what the child process serves."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.elsewhere import AskParent
from sessions_app.agents.loop.fork_replay import replay_fork
from sessions_app.agents.loop.recording_replay import Progress, replay_recording
from sessions_app.core.fork.answering import Elsewhere
from sessions_app.core.fork.order import Course, Order, read_course, read_order
from sessions_app.core.fork.stops import Stops
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.agreement import produced
from sessions_app.core.replay.observed import Replayed, Result
from sessions_app.core.replay.proof import read_proof
from sessions_app.core.run import Run
from sessions_app.core.unproven_outcomes import with_unproven_outcome


async def replay_requested(
    request: JsonObject, on_progress: Progress, ask: Callable[[JsonObject], JsonValue]
) -> Replayed:
    """What a worker asks for."""
    order, course = read_order(request.get("order") or {}), read_course(request.get("course") or {})
    record, run_id = request["record"].encode(), request["run_id"]
    if order.is_fork:
        return await fork(record, run_id, order, course, elsewhere=AskParent(ask), on_progress=on_progress)
    return await replay(record, run_id, on_progress, Stops(order.breakpoints, course))


async def replay(record: bytes, run_id: str, on_progress: Progress, stops: Stops | None = None) -> Replayed:
    """Replay a native record as it was recorded."""
    run = parse_native(record)
    clock = PinnedClock(run.started_at)
    try:
        result = await replay_recording(run, on_progress, clock, stops)
    finally:
        clock.release()
    if result.observations is None:
        return result, None
    result, made = produced(run, result, result.observations, run_id=run_id)
    return result, encode_native(_of_rebuilt_agent(made, result))


def _of_rebuilt_agent(made: Run, result: Result) -> Run:
    """What the loop came to is no outcome of the agent where the recorded one is none of the loop's."""
    proof = read_proof(result.facts.get("proof"))
    if proof is None or proof.outcome.state != "not_comparable" or proof.outcome.reason is None:
        return made
    return with_unproven_outcome(made, proof.outcome.reason)


async def fork(
    record: bytes, run_id: str, order: Order, course: Course, *, elsewhere: Elsewhere, on_progress: Progress
) -> Replayed:
    """Go on from a step of a native record with something changed."""
    run = parse_native(record)
    clock = PinnedClock(run.started_at)
    try:
        result, made = await replay_fork(
            run, run_id, order, course, elsewhere=elsewhere, on_progress=on_progress, clock=clock
        )
    finally:
        clock.release()
    return result, _encoded(made)


def _encoded(run: Run | None) -> bytes | None:
    return None if run is None else encode_native(run)
