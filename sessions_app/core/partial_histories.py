"""Histories that begin in the middle: they go on from a request that was not captured."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.history import History, nodes
from sessions_app.core.run import ModelCall, Run, Step


def with_whole_histories(run: Run) -> Run:
    """The run without those that begin in the middle, for nothing can be held against them."""
    if all(call.history is not None for _, call in run.model_calls):
        return run
    steps = tuple(_without_partial_history(step) for step in run.steps)
    return replace(run, steps=steps, final=None if _is_partial(run.final) else run.final)


def steps_in_the_middle(run: Run) -> frozenset[int]:
    """The steps of such histories."""
    if all(call.history is not None for _, call in run.model_calls):
        return frozenset()
    return frozenset(step.index for step, call in run.model_calls if _is_partial(call.history))


def _without_partial_history(step: Step) -> Step:
    if not isinstance(step.call, ModelCall) or not _is_partial(step.call.history):
        return step
    return replace(step, call=replace(step.call, history=None))


def _is_partial(history: History | None) -> bool:
    first = next((node for node in nodes(history) if node.length == 1), None)
    message = first.message.value if first is not None else None
    return isinstance(message, dict) and message.get("kind") == "response"
