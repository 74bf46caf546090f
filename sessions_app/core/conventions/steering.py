"""Exceptions by which frameworks change course; a span that ended with one did not fail."""

from __future__ import annotations

from sessions_app.core.run import ErrorInfo

_STEERING = frozenset({"ParentCommand", "GraphInterrupt", "GraphBubbleUp", "NodeInterrupt"})
"""`langgraph.errors`: a handoff to another graph, a pause for a person, and their base class."""


def is_steering(error: ErrorInfo | None) -> bool:
    return error is not None and (error.type or "").rpartition(".")[2] in _STEERING
