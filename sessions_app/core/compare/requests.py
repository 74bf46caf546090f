"""What is new in each request to a model, so that no history is compared twice."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.history import History, nodes
from sessions_app.core.payload import Payload
from sessions_app.core.run import ModelCall, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMessages:
    """The messages that a history adds to one that the run held before."""

    history: History
    added: tuple[Payload, ...]

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
    known = {run.prior.digest} if run.prior else set()
    requests = {}
    for step, call in run.model_calls:
        if call.history is not None:
            requests[step.index] = _added(call.history, known)
            known.add(call.history.digest)
        _remember_output(call, known)
    final = None if run.final is None else _added(run.final, known)
    return RunMessages(requests=requests, final=final)


def _added(history: History, known: set[str]) -> NewMessages:
    added = []
    for node in nodes(history):
        if node.digest in known:
            break
        added.append(node.message)
    return NewMessages(history=history, added=tuple(reversed(added)))


def _remember_output(call: ModelCall, known: set[str]) -> None:
    output = call.output_history
    if output is not None:
        known.add(output.digest)
