"""Calls that look something up and change nothing, as the recording or the name of the tool says."""

from __future__ import annotations

import re

from sessions_app.core.run import Step, ToolCall

_READS = re.compile(
    r"(?:get|list|find|search|look_?up|read|fetch|check|query|show|describe|track|view|poll|wait|await|watch|monitor|count)(?:_|[A-Z]|$)"
    r"|\w*(?:status|stats|statistics|metrics)$|\w+_(?:lookup|search|query|whois)$|whois"
)


def looks_up(step: Step, call: ToolCall) -> bool:
    kind = step.extra.get("tool_kind")
    return kind == "read" or (kind != "write" and _READS.match(call.tool_name) is not None)
