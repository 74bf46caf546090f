"""The spans of a trace as a tree, each with what its conventions say of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sessions_app.core.conventions.merging import merged
from sessions_app.core.conventions.reading_order import read_span
from sessions_app.core.spans.reading import CallPart, ChatMessage, Reading
from sessions_app.core.spans.span import Span

_FAR = 1 << 80
"""Later than any time: where a span without a start stands."""


@dataclass(eq=False)
class Node:
    """A span in its place."""

    span: Span
    reading: Reading
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    twins: list[Span] = field(default_factory=list)
    """Spans that told of the same operation and were taken together with this one."""
    is_adopted: bool = False
    """Whether the span around it was lost, and it stands inside of one that is there."""

    @property
    def kind(self) -> str:
        return self.reading.kind or "other"

    @property
    def start(self) -> int:
        return self.span.start_ns or _FAR

    def above(self) -> Iterator[Node]:
        """The nodes around this one, from the inside out."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def forest(spans: Sequence[Span]) -> list[Node]:
    """The topmost nodes in order of time: spans without a parent, and those whose parent is not there.

    Where the trace's topmost span is there, others whose parent is not stand inside of what was open around them.

    The order of `spans` does not matter.
    """
    ordered = sorted(spans, key=lambda span: (span.start_ns or _FAR, span.span_id))
    nodes = {span.span_id: Node(span, read_span(span)) for span in ordered}
    for node in nodes.values():
        node.parent = nodes.get(node.span.parent_id or "")
    _break_circles(nodes.values())
    _adopt(list(nodes.values()))
    for node in nodes.values():
        if node.parent is not None:
            node.parent.children.append(node)
    return [node for node in nodes.values() if node.parent is None]


def _adopt(nodes: list[Node]) -> None:
    """Those that name one lost span stay together, inside of the shortest span that was open around all of them."""
    tops = [node for node in nodes if node.span.parent_id is None]
    open_around = [node for node in nodes if node.kind not in _WITHOUT_CHILDREN and node.span.start_ns is not None]
    by_length = sorted(open_around, key=_length)
    for children in _by_lost_parent(nodes).values() if tops else ():
        around = next((other for other in by_length if _encloses(other, children)), tops[0])
        for child in children:
            child.parent, child.is_adopted = around, True


_WITHOUT_CHILDREN = frozenset({"model", "retrieval", "embedding", "handoff"})


def _by_lost_parent(nodes: list[Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes:
        if node.parent is None and node.span.parent_id is not None:
            found.setdefault(node.span.parent_id, []).append(node)
    return found


def _encloses(outer: Node, children: list[Node]) -> bool:
    """In time, and without being inside of any of them."""
    above = {id(node) for node in (outer, *outer.above())}
    return not any(id(child) in above or not _covers(outer, child) for child in children)


def _length(node: Node) -> int:
    return (node.span.end_ns or _FAR) - node.start


def _break_circles(nodes: Iterable[Node]) -> None:
    """Spans that claim to be inside each other: the first of them counts as topmost."""
    settled: set[int] = set()
    for node in nodes:
        path: list[Node] = []
        at: Node | None = node
        while at is not None and id(at) not in settled:
            settled.add(id(at))
            path.append(at)
            at = at.parent
        if at is not None and at in path:
            at.parent = None


def walk(roots: Sequence[Node]) -> Iterator[Node]:
    """Each node before those inside it, without recursion: trees may be deep."""
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def in_order_of_time(roots: Sequence[Node]) -> list[Node]:
    """All nodes in the order in which they began; none before the one around it, whatever the clocks say."""
    began: dict[int, int] = {}
    ordered = list(walk(roots))
    for node in ordered:
        outer = began[id(node.parent)] if node.parent is not None else 0
        began[id(node)] = max(outer, node.span.start_ns or outer)
    return sorted(ordered, key=lambda node: began[id(node)])


# --- twins -------------------------------------------------------------------------------------

_OWN_WORK = frozenset({"tool", "agent", "retrieval"})


def join_twins(roots: list[Node]) -> None:
    """One call of a model may be told by several spans: an SDK's own and an instrumentation's around it, or beside it
    in a trace of its own."""
    _join_other_traces(roots)
    for node in list(walk(roots)):
        if node.kind == "model":
            other = _model_around(node) or _model_beside(node)
            if other is not None:
                _join(other, node)


def _join_other_traces(roots: list[Node]) -> None:
    """What only the provider's id of the answer connects."""
    others = [node for node in roots[1:] if node.kind == "model" and node.reading.response_id]
    models = [node for node in walk(roots) if node.kind == "model" and node.reading.response_id] if others else []
    by_response: dict[str | None, list[Node]] = defaultdict(list)
    for node in models:
        by_response[node.reading.response_id].append(node)
    for node in others:
        first = next(each for each in by_response[node.reading.response_id] if each is node or _is_told_by(each, node))
        if first is not node:
            roots.remove(node)
            _join(first, node)


def _is_told_by(first: Node, node: Node) -> bool:
    """Whether it was told of at the same time in another trace."""
    one, other = first.span, node.span
    is_at_once = first.start <= (other.end_ns or _FAR) and node.start <= (one.end_ns or _FAR)
    return one.trace_id != other.trace_id and is_at_once


def _model_around(node: Node) -> Node | None:
    for outer in node.above():
        if outer.kind == "model":
            return outer
        if outer.kind in _OWN_WORK:
            return None
    return None


def _model_beside(node: Node) -> Node | None:
    """A neighbour that tells the same call: with contents, where this one has none, or with the same answer."""
    if node.parent is None:
        return None
    for other in node.parent.children:
        if other is not node and other.kind == "model" and _covers(other, node) and _is_same_call(other, node):
            return other
    return None


def _is_same_call(other: Node, node: Node) -> bool:
    left, right = other.reading, node.reading
    if not _has_content(right):
        return _has_content(left)
    if left.convention == right.convention or left.answer is None or right.answer is None:
        return False
    if left.response_id and right.response_id:
        return left.response_id == right.response_id
    return _said(left.answer) == _said(right.answer)


def _said(answer: ChatMessage) -> tuple[str, list[str]]:
    return answer.words().strip(), [part.tool_name for part in answer.parts if isinstance(part, CallPart)]


def _has_content(reading: Reading) -> bool:
    return reading.messages is not None or reading.answer is not None


def _covers(outer: Node, inner: Node) -> bool:
    ends = outer.span.end_ns, inner.span.end_ns
    return None not in ends and outer.start <= inner.start and inner.span.end_ns <= outer.span.end_ns  # type: ignore[operator]


def _join(kept: Node, twin: Node) -> None:
    """What the kept one says counts, unless only the other has contents."""
    readings = [kept.reading, twin.reading]
    if _has_content(twin.reading) and not _has_content(kept.reading):
        readings.reverse()
    error, is_harmless = kept.reading.error, kept.reading.is_error_harmless
    kept.reading = merged(readings)
    if kept.span.status != "error" and kept.reading.answer is not None:
        # An attempt inside failed, and another one answered.
        kept.reading.error, kept.reading.is_error_harmless = error, is_harmless
    kept.twins += [twin.span, *twin.twins]
    outer = kept if twin.parent is None else twin.parent
    if twin.parent is not None:
        outer.children.remove(twin)
    for child in twin.children:
        child.parent = outer
    outer.children += twin.children
    outer.children.sort(key=lambda node: (node.start, node.span.span_id))
