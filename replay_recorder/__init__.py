"""Records runs of AI agents, so that an incident can be replayed.

    import replay_recorder

    replay_recorder.install(url="http://127.0.0.1:8000", key="…")

From then on every run of every Pydantic AI or OpenAI Agents SDK agent in this process is recorded and sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from replay_recorder.context import context
from replay_recorder.functions import record
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
    from replay_recorder.tools.idempotent import IdempotentTask, OutcomeUnknown

__all__ = [
    "AgentStateSnapshot",
    "IdempotentTask",
    "OutcomeUnknown",
    "RecordedTool",
    "RecordedToolError",
    "Recorder",
    "RecordingError",
    "RecordingExhausted",
    "ReplayMismatch",
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
    "install",
    "mask",
    "record",
    "record_retrieval",
    "recorded_tool",
    "snapshot",
    "stats",
    "uninstall",
]


def __getattr__(name: str) -> Any:
    """Idempotent tasks keep their results in SQLite, which some builds of Python lack; others do not need it."""
    if name in ("IdempotentTask", "OutcomeUnknown"):
        from replay_recorder.tools import idempotent

        return getattr(idempotent, name)
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
    from replay_recorder.hooks import hook_frameworks

    recorder = activate(settings_from(os.environ, **given))
    if recorder is not None:
        hook_frameworks()
    return recorder


def uninstall() -> None:
    """Stop recording, and deliver what can be delivered."""
    deactivate()


def flush(timeout: float | None = None) -> bool:
    """Deliver what waits; whether nothing is left. Seconds; by default the setting `flush_timeout`."""
    recorder = active()
    return recorder is None or recorder.flush(timeout)


def stats() -> dict[str, Any]:
    """Counts since the start: recorded, delivered, waiting, refused, lost, sampled_out, faults."""
    recorder = active()
    return {} if recorder is None else recorder.stats()
