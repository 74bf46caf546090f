"""The native record as the store keeps it: payloads and histories stand as digests.

A payload is written as `{"sha256": …, "type": …}`, and so is a long text as its JSON; a history as `{"node": …}`.
Everything else of a step or a header is the text of the native record, so both have one reader and one writer.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessions_app.core.errors import PayloadMissing
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.json_writer import object_text, scalar
from sessions_app.core.history import History, Link, nodes
from sessions_app.core.payload import JSON, Payload
from sessions_app.core.run import Step

_LONG_TEXT = 256
"""Bytes of JSON; the instructions of an agent are mostly longer, and the same in all its runs."""


class Collector:
    """Writes digests and gathers the payloads and history nodes that they stand for."""

    def __init__(self) -> None:
        self.payloads: dict[str, Payload] = {}
        self.nodes: dict[str, History] = {}

    def payload(self, payload: Payload) -> bytes:
        self.payloads.setdefault(payload.digest, payload)
        media_type = None if payload.media_type == JSON else scalar(payload.media_type)
        return object_text([("sha256", scalar(payload.digest)), ("type", media_type)])

    def text(self, text: str | None) -> bytes | None:
        written = scalar(text)
        return written if written is None or len(written) < _LONG_TEXT else self.payload(Payload(content=written))

    def shared(self, table: str, payload: Payload) -> bytes:
        return self.payload(payload)

    def history(self, history: History | None) -> bytes | None:
        if history is None:
            return None
        self.add_nodes(history)
        return object_text([("node", scalar(history.digest))])

    def add_nodes(self, history: History | None) -> None:
        for node in nodes(history):
            if node.digest in self.nodes:
                return
            self.nodes[node.digest] = node
            self.payloads.setdefault(node.message.digest, node.message)

    def links(self) -> dict[str, Link]:
        """The nodes as rows hold them."""
        return {
            digest: (node.parent.digest if node.parent else None, node.message.digest)
            for digest, node in self.nodes.items()
        }

    def step_written(self, step: Step) -> None:
        """Nothing to remember: nodes name themselves."""


class Lookup:
    """Reads what `Collector` wrote, from payloads and histories that were fetched beforehand."""

    def __init__(self, contents: Mapping[str, bytes], histories: Mapping[str, History]) -> None:
        self._contents = contents
        self._histories = histories

    def payload(self, slice_: bytes, path: str) -> Payload:
        digest, media_type = reference(slice_)
        if digest not in self._contents:
            raise PayloadMissing(digest)
        return Payload(content=self._contents[digest], media_type=media_type)

    def text(self, fields: Fields, name: str) -> str | None:
        slice_ = long_text(fields, name)
        return fields.text(name) if slice_ is None else text_in(self.payload(slice_, fields.at(name)))

    def shared(self, table: str, slice_: bytes, path: str) -> Payload:
        return self.payload(slice_, path)

    def history(self, slice_: bytes | None, path: str) -> History | None:
        digest = node_of(slice_)
        if digest is None:
            return None
        if digest not in self._histories:
            raise PayloadMissing(digest)
        return self._histories[digest]

    def step_read(self, step: Step) -> None:
        """Nothing to remember: nodes name themselves."""


class WithoutHistories(Lookup):
    """For pages that show steps and not what stood in front of them."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        super().__init__(contents, {})

    def history(self, slice_: bytes | None, path: str) -> History | None:
        return None


def long_text(fields: Fields, name: str) -> bytes | None:
    """The reference to a text that is kept as a payload; None for one that stands there itself, and for no text."""
    slice_ = fields.slice(name)
    return slice_ if slice_ is not None and slice_.startswith(b"{") else None


def text_in(payload: Payload) -> str:
    return str(payload.value)


def reference(slice_: bytes) -> tuple[str, str]:
    """Digest and media type of a stored payload."""
    fields = Fields(slice_)
    return fields.required("sha256", fields.text), fields.text("type") or JSON


def node_of(slice_: bytes | None) -> str | None:
    return None if slice_ is None else Fields(slice_).text("node")
