"""The native record as the store keeps it: payloads and histories stand as references.

A payload is written as `{"piece": number,"type":…}` when it is a piece of the run's content, and as
`{"sha256": …,"type":…}` when it is stored apart, because it is long or many runs have it. So is a long text as its
JSON; a history is `{"node":number}`. Everything else of a step or a header is the text of the native record, so both
have one reader and one writer. Nothing else in them has a space behind a colon that is not inside of a text: what was
recorded cannot look like a reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sessions_app.core.errors import HistoryMissing, PayloadMissing
from sessions_app.core.formats.fields import Fields, names_of
from sessions_app.core.formats.json_writer import object_text, scalar
from sessions_app.core.history import History, nodes
from sessions_app.core.packed_nodes import NumberedLink, Reference
from sessions_app.core.payload import JSON, LONG, Payload, compact_json
from sessions_app.core.run import Step, StepKind
from sessions_app.mapping.content_keys import holding_content

_LONG_TEXT = 256
"""Bytes of JSON; the instructions of an agent are mostly longer, and the same in all its runs."""
_LIKE_A_STEP = re.compile(rb'\{"kind":"(?:%s)"' % "|".join(names_of(StepKind)).encode())
"""Such a payload is a piece of its own: the text of a step, which it may be equal to, is not found by its digest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """What a content that goes on from another one has from it: numbers of pieces by what they hold, and of nodes by
    SHA-256 in hex."""

    pieces: Mapping[bytes | str, int] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    next_piece: int = 0
    next_node: int = 0


class Collector:
    """Writes references, and gathers what they stand for as far as the base of the content does not have it."""

    def __init__(self, base: Numbers = Numbers()) -> None:
        self._base = base
        self._pieces = dict(base.pieces)
        self._nodes = dict(base.nodes)
        self.pieces: list[bytes] = []
        self.links: list[NumberedLink] = []
        self.keys: list[int] = []
        """What the content can be found by: of the payloads among the pieces, and of the last node."""
        self.apart: dict[str, Payload] = {}

    def payload(self, payload: Payload) -> bytes:
        reference = self._reference(payload)
        written = b'"piece": %d' % reference if isinstance(reference, int) else b'"sha256": "%s"' % reference.encode()
        media_type = b"" if payload.media_type == JSON else b',"type":' + compact_json(payload.media_type)
        return b"{" + written + media_type + b"}"

    def _reference(self, payload: Payload) -> Reference:
        if payload.size >= LONG:
            self.apart[payload.digest] = payload
            return payload.digest
        name = f"payload {payload.digest}" if _LIKE_A_STEP.match(payload.content) else payload.content
        if name not in self._pieces:
            self.keys.append(holding_content(payload.content))
        return self._piece(name, payload.content)

    def _piece(self, name: bytes | str, content: bytes) -> int:
        number = self._pieces.setdefault(name, self._base.next_piece + len(self.pieces))
        if number == self._base.next_piece + len(self.pieces):
            self.pieces.append(content)
        return number

    def step_text(self, text: bytes) -> int:
        """The number of the piece that holds it."""
        return self._piece(text, text)

    def text(self, text: str | None) -> bytes | None:
        written = scalar(text)
        return written if written is None or len(written) < _LONG_TEXT else self.payload(Payload(content=written))

    def shared(self, table: str, payload: Payload) -> bytes:
        return self.payload(payload)

    def history(self, history: History | None) -> bytes | None:
        node = self.node(history)
        return None if node is None else object_text([("node", scalar(node))])

    def node(self, history: History | None) -> int | None:
        """The number of its last node."""
        new = []
        for node in nodes(history):
            if node.digest in self._nodes:
                break
            new.append(node)
        for node in reversed(new):
            parent = self._nodes[node.parent.digest] if node.parent else None
            self._nodes[node.digest] = self._base.next_node + len(self.links)
            self.links.append((parent, self._reference(node.message)))
        return None if history is None else self._nodes[history.digest]

    def step_written(self, step: Step) -> None:
        """Nothing to remember: nodes have numbers."""


class Lookup:
    """Reads what `Collector` wrote, from payloads and histories that were fetched beforehand."""

    def __init__(self, contents: Mapping[Reference, bytes], histories: Mapping[int, History]) -> None:
        self._contents = contents
        self._histories = histories

    def payload(self, slice_: bytes, path: str) -> Payload:
        found, media_type = reference(slice_)
        if found not in self._contents:
            raise PayloadMissing(found)
        return Payload(content=self._contents[found], media_type=media_type)

    def text(self, fields: Fields, name: str) -> str | None:
        slice_ = long_text(fields, name)
        return fields.text(name) if slice_ is None else text_in(self.payload(slice_, fields.at(name)))

    def shared(self, table: str, slice_: bytes, path: str) -> Payload:
        return self.payload(slice_, path)

    def history(self, slice_: bytes | None, path: str) -> History | None:
        node = node_of(slice_)
        if node is None:
            return None
        if node not in self._histories:
            raise HistoryMissing
        return self._histories[node]

    def step_read(self, step: Step) -> None:
        """Nothing to remember: nodes have numbers."""


class WithoutHistories(Lookup):
    """For pages that show steps and not what stood in front of them."""

    def __init__(self, contents: Mapping[Reference, bytes]) -> None:
        super().__init__(contents, {})

    def history(self, slice_: bytes | None, path: str) -> History | None:
        return None


def long_text(fields: Fields, name: str) -> bytes | None:
    """The reference to a text that is kept as a payload; None for one that stands there itself, and for no text."""
    slice_ = fields.slice(name)
    return slice_ if slice_ is not None and slice_.startswith(b"{") else None


def text_in(payload: Payload) -> str:
    return str(payload.value)


def reference(slice_: bytes) -> tuple[Reference, str]:
    """Reference and media type of a stored payload."""
    fields = Fields(slice_)
    piece = fields.integer("piece", low=0)
    name = fields.required("sha256", fields.text) if piece is None else piece
    return name, fields.text("type") or JSON


def node_of(slice_: bytes | None) -> int | None:
    return None if slice_ is None else Fields(slice_).integer("node", low=0)
