"""What a replay with tools that run needs beside its recording: the runs of agents that were its tools."""

from __future__ import annotations

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.fork.order import read_order
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.run import OPENAI_AGENTS, AgentCall
from sessions_app.mapping.load import load_run
from sessions_app.models import Replay, Run


def inner_records(replay: Replay, record: str) -> dict[str, str]:
    """By the id of the run. The OpenAI Agents SDK alone has agents as tools."""
    if not read_order(replay.order).tools.run:
        return {}
    run = parse_native(record.encode())
    if run.agent.framework != OPENAI_AGENTS:
        return {}
    run_ids = [step.call.run_id for step in run.steps if isinstance(step.call, AgentCall) and step.call.run_id]
    rows = Run.objects.filter(project=replay.project, run_id__in=run_ids)
    return {row.run_id: text for row in rows if (text := _record_of(row)) is not None}


def _record_of(row: Run) -> str | None:
    try:
        return encode_native(load_run(row)).decode()
    except StoredBytesMissing:
        return None
