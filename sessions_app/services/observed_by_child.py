"""Replays whose child observed a run and did not judge it: agents of the OpenAI Agents SDK in the sealed process."""

from __future__ import annotations

from sessions_app.core.fork.order import read_order
from sessions_app.core.formats.native import parse_native
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.own_machine import judge_sealed
from sessions_app.core.run import Run
from sessions_app.models import Replay
from sessions_app.services.redaction import redactor_of
from sessions_app.services.replay_results import produced_run_id


def judged(replay: Replay, recorded: Run, told: JsonObject) -> JsonObject:
    """The child's result, with the verdict and the produced run that an observed run amounts to; any other as it is.

    The recording holds no secrets, so they are taken out of what was observed before both are compared."""
    if told["verdict"] != "observed":
        return told
    text = redactor_of(replay.project).redact(told["record"].encode()).content
    observed = parse_native(text, Limits(max_bytes=len(text)))
    runs_tools = read_order(replay.order).tools.run
    return judge_sealed(
        recorded, observed, told, tools="run" if runs_tools else "frozen", run_id=produced_run_id(replay)
    )
