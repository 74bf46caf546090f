"""What spans around calls of models tell of them once more, and otherwise: the whole conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from sessions_app.core.assembly.tree import Node
from sessions_app.core.conventions.told_twice import said_in
from sessions_app.core.spans.reading import ResultPart


def conversations_told_otherwise(nodes: Sequence[Node]) -> Iterator[Node]:
    """Spans whose own copy of the conversation is not that of the last request around which they stand."""
    asked = [node for node in nodes if node.kind == "model" and node.reading.messages]
    for node in nodes:
        if _has_results(node):
            inside = [model for model in asked if node in model.above()]
            own = [model for model in inside if _agent_of(model) is node]
            if inside and not any(_agrees(node, each[-1]) for each in (own, inside) if each):
                yield node


def _has_results(node: Node) -> bool:
    """Some spans sum up a whole run as its prompt and its answer: only the results of tools tell that it is not so."""
    parts = (part for message in node.reading.conversation or () for part in message.parts)
    return any(isinstance(part, ResultPart) for part in parts)


def _agent_of(model: Node) -> Node | None:
    return next((node for node in model.above() if node.reading.conversation), None)


def _agrees(node: Node, model: Node) -> bool:
    """Behind the model's answer stands at most what tools gave for it."""
    conversation, answer = node.reading.conversation or (), model.reading.answer
    sent = said_in((*(model.reading.messages or ()), *(() if answer is None else (answer,))))
    tools = len(list(takewhile(lambda message: message.role == "tool", reversed(conversation))))
    ended = said_in(conversation[: len(conversation) - tools])
    return said_in(conversation)[: len(sent)] == sent and len(ended) <= len(sent)
