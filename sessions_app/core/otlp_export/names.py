"""Names of the attributes of ours, and the ids of exported spans."""

from __future__ import annotations

import hashlib
import re

OWN = "agent_replay."
"""Begins all of them."""
VERSION = "agent_replay.version"
"""On the span of the run: 1."""
STEPS = "agent_replay.steps"
"""On the span of the run: how many steps it has."""
RUN = "agent_replay.run"
"""The fields of the run that GenAI has no words for: JSON text, named as in docs/record-format.md."""
STEP = "agent_replay.step"
"""The same for a step."""
INDEX = "agent_replay.index"
"""The step's position in the run, from 1."""
MEDIA_TYPES = "agent_replay.media_types"
"""JSON text: media type by field, for values that stand as text in another attribute."""
TOOLS_REGISTERED = "agent_replay.tools_registered"
"""Whether `gen_ai.tool.definitions` are those registered with the agent, and not those of the request's parameters."""
PRIOR = "agent_replay.prior.messages"
FINAL = "agent_replay.final.messages"
ARGUMENTS = "agent_replay.arguments"
RESULT = "agent_replay.result"

_TRACE_ID = re.compile(r"[0-9a-f]{32}")


def trace_id(run_id: str) -> str:
    """32 hex digits: the run id itself where it is a trace id."""
    if _TRACE_ID.fullmatch(run_id) and run_id.strip("0"):
        return run_id
    return hashlib.sha256(run_id.encode()).hexdigest()[:32]


def span_id(run_id: str, index: int) -> str:
    """16 hex digits, the same at every export; index 0 is the run itself."""
    return hashlib.sha256(f"{run_id}\0{index}".encode()).hexdigest()[:16]
