"""One replay from record text to result and produced record; what the child process serves."""

from __future__ import annotations

from sessions_app.agents.clock import PinnedClock
from sessions_app.agents.recording_replay import Progress, replay_recording
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.produce import produced_run


async def replay(record: bytes, run_id: str, on_progress: Progress) -> tuple[Result, bytes | None]:
    """Replay a native record. The second value is the produced run, None when the loop never began."""
    run = parse_native(record)
    clock = PinnedClock(run.started_at)
    try:
        result = await replay_recording(run, on_progress, clock)
    finally:
        clock.release()
    if result.observations is None:
        return result, None
    return result, encode_native(produced_run(run, result.observations, run_id=run_id))
