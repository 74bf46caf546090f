"""What is new in each request to a model, so that no history is compared twice."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.history import History, nodes
from sessions_app.core.partial_histories import with_whole_histories
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMessages:
    """The messages that a history adds to one that the run held before."""

    history: History
    added: tuple[Payload, ...]
    behind: int | None
    """How many histories of the run are newer than the one that it goes on from; None for one that begins anew."""

    @property
    def start(self) -> int:
        """Position of the first added message in the history."""
        return self.history.length - len(self.added)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMessages:
    """A run's messages, each where it first appears."""

    requests: dict[int, NewMessages]
    """By step index; model steps whose history was captured."""
    final: NewMessages | None


def messages_of(run: Run) -> RunMessages:
    """One pass; rewritten histories have no known beginning and are new as a whole."""
    run = with_whole_histories(run)
    known = {run.prior.digest: 0} if run.prior else {}
    requests, newest = {}, 0
    for number, (step, call) in enumerate(run.model_calls, start=1):
        if call.history is not None:
            requests[step.index] = _added(call.history, known, newest)
        for held in (call.history, call.output_history):
            if held is not None:
                known[held.digest] = newest = number
    final = None if run.final is None else _added(run.final, known, newest)
    return RunMessages(requests=requests, final=final)


def _added(history: History, known: dict[str, int], newest: int) -> NewMessages:
    """`known` holds the number of the model call that each history belongs to, `newest` the last of them."""
    added, behind = [], None
    for node in nodes(history):
        if node.digest in known:
            behind = newest - known[node.digest]
            break
        added.append(node.message)
    return NewMessages(history=history, added=tuple(reversed(added)), behind=behind)
