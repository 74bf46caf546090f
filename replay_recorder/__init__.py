"""Records runs of AI agents, so that an incident can be replayed.

    import replay_recorder

    replay_recorder.install(url="http://127.0.0.1:8000", key="…")

From then on every run of every Pydantic AI, OpenAI Agents SDK, LangChain or LangGraph agent in this process is recorded
and sent.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from replay_recorder.context import context
from replay_recorder.functions import record
from replay_recorder.lazy import leave_imports_alone
from replay_recorder.recorder import Recorder, activate, active, deactivate
from replay_recorder.redaction import compose, mask
from replay_recorder.settings import VERSION as __version__
from replay_recorder.settings import Redact, Settings, settings_from
from replay_recorder.state import AgentStateSnapshot, StatefulAgent, snapshot
from replay_recorder.tools.recorded import RecordedTool, ToolRegistry, recorded_tool
from replay_recorder.tools.retrieval import record_retrieval
from replay_recorder.tools.tool_files import (
    RecordedToolError,
    RecordingError,
    RecordingExhausted,
    ReplayMismatch,
    ToolRecorder,
    ToolReplayer,
)

if TYPE_CHECKING:
    from replay_recorder.replaying.doubles import frozen_tools, replay_model
    from replay_recorder.replaying.errors import NoAnswerRecorded, ReplayStopped, RequestDiffers
    from replay_recorder.tools.idempotent import IdempotentTask, OutcomeUnknown

__all__ = [
    "AgentStateSnapshot",
    "IdempotentTask",
    "NoAnswerRecorded",
    "OutcomeUnknown",
    "RecordedTool",
    "RecordedToolError",
    "Recorder",
    "RecordingError",
    "RecordingExhausted",
    "ReplayMismatch",
    "ReplayStopped",
    "RequestDiffers",
    "Settings",
    "StatefulAgent",
    "ToolRecorder",
    "ToolRegistry",
    "ToolReplayer",
    "__version__",
    "active",
    "compose",
    "context",
    "flush",
    "frozen_tools",
    "install",
    "mask",
    "record",
    "record_retrieval",
    "recorded_tool",
    "replay_model",
    "snapshot",
    "stats",
    "uninstall",
]


_LATER = {
    # Keeps its results in SQLite, which some builds of Python lack.
    "IdempotentTask": "replay_recorder.tools.idempotent",
    "OutcomeUnknown": "replay_recorder.tools.idempotent",
    # For tests: agents in production do not need it.
    "NoAnswerRecorded": "replay_recorder.replaying.errors",
    "ReplayStopped": "replay_recorder.replaying.errors",
    "RequestDiffers": "replay_recorder.replaying.errors",
    "frozen_tools": "replay_recorder.replaying.doubles",
    "replay_model": "replay_recorder.replaying.doubles",
}


def __getattr__(name: str) -> Any:
    """What not everybody needs is loaded by those who do."""
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install(
    *,
    url: str | None = None,
    key: str | None = None,
    spool: str | os.PathLike[str] | None = None,
    enabled: bool | None = None,
    agent_version: str | None = None,
    context: Callable[[Any], Mapping[str, Any] | None] | None = None,
    state: Callable[[], Mapping[str, Any] | None] | None = None,
    snapshot_every: int | None = None,
    redact: Redact | None = None,
    sample: float | None = None,
    http: bool | None = None,
    http_headers: Iterable[str] | None = None,
    max_body_bytes: int | None = None,
    max_run_bytes: int | None = None,
    max_spool_bytes: int | None = None,
    max_memory_bytes: int | None = None,
    flush_timeout: float | None = None,
) -> Recorder | None:
    """Start recording; `Settings` says what each argument means, and some can stand in the environment.

    Returns the recorder, or None when it is switched off. Raises `ValueError` for a wrong setting, at once and
    in words; after that nothing of the recorder ever raises into the agent.
    """
    given = dict(locals())
    from replay_recorder.hooks import hook_clients, hook_frameworks

    recorder = activate(settings_from(os.environ, **given))
    if recorder is not None:
        hook_frameworks()
        if recorder.settings.http:
            hook_clients()
    return recorder


def uninstall() -> None:
    """Stop recording, and deliver what can be delivered. Modules that are imported from now on are left alone."""
    leave_imports_alone()
    deactivate()


def flush(timeout: float | None = None) -> bool:
    """Deliver what waits; whether nothing is left. Seconds; by default the setting `flush_timeout`."""
    recorder = active()
    return recorder is None or recorder.flush(timeout)


def stats() -> dict[str, Any]:
    """Counts since the start: recorded, delivered, waiting, refused, lost, sampled_out, faults."""
    recorder = active()
    return {} if recorder is None else recorder.stats()
