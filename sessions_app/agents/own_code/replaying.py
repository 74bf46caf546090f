"""One code replay from record text to result and produced record; what the code child serves."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.recording_replay import Progress, unreadable
from sessions_app.agents.own_code.agent import replay_with_own_agent
from sessions_app.agents.own_code.fork import fork_with_own_agent
from sessions_app.agents.own_code.gate import Ask, ToolCannotRun
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.agents.own_code.sdk_agent import replay_with_sdk
from sessions_app.core.fork.order import read_course, read_order
from sessions_app.core.fork.stops import Stops
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.agreement import produced
from sessions_app.core.replay.observed import Replayed, Result


def replay_with_code(request: JsonObject, own: OwnAgent, on_progress: Progress, ask: Ask) -> Replayed:
    """What a worker asks for when its order names an agent."""
    if own.is_of_sdk:
        return replay_with_sdk(request, own, on_progress)
    return asyncio.run(_replay(request, own, on_progress, ask))


async def _replay(request: JsonObject, own: OwnAgent, on_progress: Progress, ask: Ask) -> Replayed:
    order, course = read_order(request.get("order") or {}), read_course(request.get("course") or {})
    run = parse_native(request["record"].encode())
    clock = PinnedClock(run.started_at)
    try:
        if order.is_fork:
            result, made = await fork_with_own_agent(
                run, request["run_id"], own, order, course, ask=ask, on_progress=on_progress, clock=clock
            )
            return result, encode_native(made) if made else None
        result = await replay_with_own_agent(
            run,
            own,
            order=order,
            ask=ask,
            on_progress=on_progress,
            clock=clock,
            stops=Stops(order.breakpoints, course),
        )
    except ToolCannotRun as refusal:
        return Result(verdict="could_not_run", error=str(refusal)), None
    except ValidationError as error:
        return Result(verdict="could_not_run", error=unreadable(error)), None
    finally:
        clock.release()
    if result.observations is None:
        return result, None
    result, made = produced(run, result, result.observations, run_id=request["run_id"])
    return result, encode_native(made)
