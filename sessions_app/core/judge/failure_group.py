"""Which failure a run is one of: runs that failed in the same place with the same error have the same fingerprint."""

from __future__ import annotations

import re
from hashlib import sha256

from sessions_app.core.judge.anomalies import has_failed
from sessions_app.core.run import ErrorInfo, OtherCall, Run, ToolCall

LENGTH = 10
"""Hexadecimal digits of a fingerprint: few enough to be typed."""
_WORDS = 200
"""Characters of an error's message that tell it apart from others."""
_VARIES = re.compile(
    r"https?://\S+"  # addresses hold ids
    r"|'[^']{0,80}'|\"[^\"]{0,80}\"|`[^`]{0,80}`"
    r"|\b(?=\w*\d)[\w.-]{6,}\b"  # ids
    r"|\d+(?:[.,:]\d+)*"
)


def failure_group(run: Run) -> str | None:
    """None for a run that did not fail."""
    if run.status not in ("error", "cut_off") and run.error is None:
        return None
    shape = "\x00".join((run.status if run.status == "cut_off" else "error", _place(run), _error(run)))
    return sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def _place(run: Run) -> str:
    """What failed last, by its kind and name; its number differs from run to run. A failure in the middle of a run
    that ended in an error of its own may have nothing to do with it."""
    steps = [step for step in run.steps if not isinstance(step.call, OtherCall)]
    looked_at = steps if run.error is None else steps[-1:]
    failed = next((step for step in reversed(looked_at) if has_failed(step)), None)
    if failed is None:
        return ""
    return f"tool {failed.call.tool_name}" if isinstance(failed.call, ToolCall) else failed.kind


def _error(run: Run) -> str:
    errors = [run.error, *(step.error for step in reversed(run.steps))]
    return next((_shape(error) for error in errors if error is not None), "")


def _shape(error: ErrorInfo) -> str:
    """Without what differs from one time to the next: numbers, ids, addresses, what stands in quotes."""
    words = _VARIES.sub("…", (error.message or "")[:_WORDS])
    return f"{error.type or ''}: {' '.join(words.lower().split())}"
