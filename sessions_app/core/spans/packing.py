"""Spans as they are stored: what comes again and again is kept once.

Each span of a model call carries the whole conversation so far, so a trace of n calls repeats its messages n times. A
text that is a JSON list, or an object that holds lists, becomes its elements in a hash chain (core/history.py), and a
skeleton in which `["~0"]` stands for the first list. Attributes with numbers (`llm.input_messages.0.message.role`)
become chains likewise. Unpacking gives every text back to the letter.

    {"~": skeleton, "lists": [[node, separator], …]}     a text with lists taken out
    {"~text": payload}                                   a long text
    {"~list": node}                                      a real list
    {"~value": …}                                        an object that would be taken for one of these
    {"~numbered": {prefix: node}}                        among the attributes: those with numbers

Payloads and nodes are named by their position in a list of digests that is kept beside: digests must not go through
redaction, which could take one for a card number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from sessions_app.core.embedded_json import is_shallow
from sessions_app.core.history import Link, node_digest
from sessions_app.core.payload import JsonObject, JsonValue, compact_json, sha256_hex
from sessions_app.core.spans.sizes import said_bytes
from sessions_app.core.spans.span import Attributes

LONG = 200
"""Characters from which a text is looked at."""
_WHOLE = 400
"""Characters from which a text without lists is kept by its digest."""
_WORTH_A_LINK = 32
"""Bytes that the elements of a list have on average where it becomes a chain."""
_SEPARATORS = (", ", ",", ",\n")
_NUMBERED = re.compile(r"^(.{1,200}?)\.(\d{1,6})\.(.+)$", re.DOTALL)
_MIN_NUMBERED = 2


@dataclass
class Pieces:
    """What packed attributes refer to."""

    payloads: dict[str, bytes] = field(default_factory=dict)
    """Redacted bytes by digest."""
    nodes: dict[str, Link] = field(default_factory=dict)

    def add(self, other: Pieces) -> None:
        self.payloads.update(other.payloads)
        self.nodes.update(other.nodes)


class References:
    """The digests that a batch names, each by its position."""

    def __init__(self, digests: Iterable[str] = ()) -> None:
        self.digests = list(digests)
        self._positions = {digest: position for position, digest in enumerate(self.digests)}

    def position(self, digest: str) -> int:
        known = self._positions.get(digest)
        if known is None:
            known = self._positions[digest] = len(self.digests)
            self.digests.append(digest)
        return known


@dataclass(frozen=True, slots=True)
class _Grown:
    """The text of a list that was packed, which a later one may begin with."""

    content: bytes
    node: str
    separator: str

    def rows_after(self, content: bytes) -> list[bytes] | None:
        """The elements that the longer list adds; None when it is not this one with more at its end."""
        begun = len(self.content) - 1
        separator = self.separator.encode()
        if not content.startswith(separator, begun) or not content.startswith(self.content[:-1]):
            return None
        added = b"[" + content[begun + len(separator) :]
        if _MARK in added:
            return None
        try:
            rows = [bytes(raw) for raw in _ROWS.decode(added)]
        except (ValueError, RecursionError):
            return None
        return rows if rows and b"[" + separator.join(rows) + b"]" == added else None


class Packer:
    """Packs the attributes of one request.

    `redact` takes bytes, and whether they are a JSON document or a text; `is_secret` the name of an attribute.
    """

    def __init__(self, redact: Callable[[bytes, bool], bytes], is_secret: Callable[[str], bool]) -> None:
        self.pieces = Pieces()
        self.nodes = References()
        self.payloads = References()
        self._redact = redact
        self._is_secret = is_secret
        self._digests: dict[bytes, str] = {}
        self._grown: dict[str, _Grown] = {}
        self.said_bytes = 0

    def attributes(self, said: Attributes) -> JsonObject:
        """The attributes with long values packed; those whose name says that they are secret stay as they are."""
        self.said_bytes += said_bytes(said)
        plain, numbered = _numbered(said)
        packed = {
            _escaped(name): value if self._is_secret(name) else self._value(name, value)
            for name, value in plain.items()
        }
        if numbered:
            packed["~numbered"] = {prefix: self._chain_at(rows) for prefix, rows in numbered.items()}
        return packed

    def _value(self, name: str, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return value if len(value) < LONG else self.text(name, value)
        if isinstance(value, list) and len(value) > 1:
            rows = [compact_json(item) for item in value]
            return {"~list": self._chain_at(rows)} if _is_worth_links(rows) else value
        if isinstance(value, dict) and any(key.startswith("~") for key in value):
            return {"~value": value}
        return value

    def text(self, name: str, text: str) -> JsonValue:
        """The text of this attribute, as it stands in a packed span."""
        content = text.encode("utf-8", "replace")
        if (grown := self._grown_list(name, content)) is not None:
            return grown
        skeleton, lists = _skeleton(content)
        if lists:
            chains = [(self._chain(rows), separator) for rows, separator in lists]
            if skeleton == _ONE_LIST:
                self._grown[name] = _Grown(content, *chains[0])
            return self._with_lists(skeleton.decode(), chains)
        if len(text) < _WHOLE:
            return text
        return {"~text": self.payloads.position(self._piece(content, is_json=_is_json(content)))}

    def _grown_list(self, name: str, content: bytes) -> JsonValue:
        """A list that goes on where the last one of this name ended: only what is new is read. None for any other."""
        last = self._grown.get(name)
        rows = last.rows_after(content) if last else None
        if last is None or rows is None or not _is_worth_links(rows, at_least=0):
            return None
        node = self._chain(rows, last.node)
        self._grown[name] = _Grown(content, node, last.separator)
        return self._with_lists(_ONE_LIST.decode(), [(node, last.separator)])

    def _with_lists(self, skeleton: str, chains: list[tuple[str, str]]) -> JsonValue:
        return {"~": skeleton, "lists": [[self.nodes.position(node), separator] for node, separator in chains]}

    def redacted(self, document: bytes) -> bytes:
        """A whole JSON document without its secrets."""
        return self._redact(document, True)

    def _chain_at(self, rows: list[bytes]) -> int:
        return self.nodes.position(self._chain(rows))

    def _chain(self, rows: list[bytes], start: str | None = None) -> str:
        node = start
        for row in rows:
            element = self._piece(row, is_json=True)
            parent, node = node, node_digest(node, element)
            self.pieces.nodes[node] = (parent, element)
        return node or ""

    def _piece(self, content: bytes, *, is_json: bool) -> str:
        known = self._digests.get(content)
        if known is None:
            redacted = self._redact(content, is_json)
            known = self._digests[content] = sha256_hex(redacted)
            self.pieces.payloads[known] = redacted
        return known


def _is_worth_links(rows: list[bytes], *, at_least: int = LONG) -> bool:
    """A link of a chain takes more bytes than a short element: a list of those stays as it is."""
    size = sum(map(len, rows))
    return size >= max(at_least, _WORTH_A_LINK * len(rows))


def _escaped(name: str) -> str:
    """Names of our own begin with one `~`."""
    return f"~~{name}" if name.startswith("~") else name


def _is_json(content: bytes) -> bool:
    if content[:1] not in b'{["':
        return False
    try:
        msgspec.json.decode(content)
    except (ValueError, RecursionError):
        return False
    return True


_MARK = b'["~'
_ONE_LIST = b'["~0"]'
"""The skeleton of a text that is nothing but a list."""
_ROWS = msgspec.json.Decoder(list[msgspec.Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _skeleton(content: bytes) -> tuple[bytes, list[tuple[list[bytes], str]]]:
    """The text with its lists taken out, and those lists; no lists where it cannot be put together again exactly."""
    if _MARK in content:
        return content, []
    try:
        if content[:1] == b"[":
            members = [content]
        elif content[:1] == b"{":
            members = [bytes(raw) for raw in _MEMBERS.decode(content).values() if bytes(raw)[:1] == b"["]
        else:
            return content, []
        found = [(member, split) for member in members if len(member) >= LONG and (split := _split(member))]
    except (ValueError, RecursionError):
        return content, []
    return _taken_out(content, found)


def _taken_out(
    content: bytes, found: list[tuple[bytes, tuple[list[bytes], str]]]
) -> tuple[bytes, list[tuple[list[bytes], str]]]:
    skeleton = b""
    lists: list[tuple[list[bytes], str]] = []
    for member, split in found:
        before, hit, after = content.partition(member)
        if hit:
            skeleton += before + f'["~{len(lists)}"]'.encode()
            lists.append(split)
            content = after
    return skeleton + content, lists


def _split(text: bytes) -> tuple[list[bytes], str] | None:
    """The elements of a JSON list and what stands between them; None when that is not always the same, and for a list
    of short elements."""
    rows = [bytes(raw) for raw in _ROWS.decode(text)]
    for separator in _SEPARATORS:
        if rows and b"[" + separator.encode().join(rows) + b"]" == text:
            return (rows, separator) if _is_worth_links(rows) else None
    return None


def _numbered(said: Attributes) -> tuple[Attributes, dict[str, list[bytes]]]:
    """Attributes that count from 0 without a gap, as one JSON object for each number."""
    groups: dict[str, dict[int, JsonObject]] = {}
    for name, value in said.items():
        match = _NUMBERED.match(name)
        if match is not None:
            groups.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = value
    whole = {prefix: rows for prefix, rows in groups.items() if _is_whole(prefix, rows, said)}
    taken = {f"{prefix}.{n}.{rest}" for prefix, rows in whole.items() for n, row in rows.items() for rest in row}
    plain = {name: value for name, value in said.items() if name not in taken}
    return plain, {prefix: [compact_json(rows[n]) for n in range(len(rows))] for prefix, rows in whole.items()}


def _is_whole(prefix: str, rows: dict[int, JsonObject], said: Attributes) -> bool:
    """Also the names must come back as they were: `a.00.b` counts as 0 and is another name."""
    if len(rows) < _MIN_NUMBERED or max(rows) != len(rows) - 1 or prefix.startswith("~"):
        return False
    return all(f"{prefix}.{n}.{rest}" in said for n, row in rows.items() for rest in row)


# --- back --------------------------------------------------------------------------------------


class Unpacker:
    """Gives packed attributes back; lists whose text nobody needs stay lists, which share their elements."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._lists: dict[str, list[JsonValue]] = {}
        self._values: dict[str, JsonValue] = {}
        self._texts: dict[str, str] = {}

    def of(self, *, nodes: list[str], payloads: list[str], exact: bool) -> BatchUnpacker:
        """For one batch, with the digests that it names. With `exact` every text comes back as it was; without, a text
        that is nothing but a list is given as that list."""
        return BatchUnpacker(self, nodes, payloads, exact)

    def text(self, digest: str) -> str:
        if digest not in self._texts:
            self._texts[digest] = self._pieces.payloads[digest].decode("utf-8", "replace")
        return self._texts[digest]

    def same_text(self, text: str) -> str:
        """An equal text that was given before, so that it is the same object."""
        return self._texts.setdefault(text, text)

    def rows(self, node: str) -> list[bytes]:
        """The elements of a chain as they were spelled."""
        elements, at = [], node or None
        while at:
            at, element = self._pieces.nodes[at]
            elements.append(self._pieces.payloads[element])
        return elements[::-1]

    def parsed(self, node: str) -> list[JsonValue]:
        """Shares the elements of the list of an earlier node, as far as that is known, and all of that of the same."""
        if node in self._lists:
            return self._lists[node]
        path, at = [], node
        while at and at not in self._lists:
            path.append(at)
            at = self._pieces.nodes[at][0] or ""
        rows = [*self._lists.get(at, []), *(self._element(self._pieces.nodes[each][1]) for each in reversed(path))]
        self._lists[node] = rows
        return rows

    def _element(self, digest: str) -> JsonValue:
        if digest not in self._values:
            self._values[digest] = _loaded(self._pieces.payloads[digest])
        return self._values[digest]


def _loaded(content: bytes) -> JsonValue:
    """What Python cannot read, such as a number of 5,000 digits, stays text; so does what is too deep for a record."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")
    return value if is_shallow(value) else content.decode("utf-8", "replace")


class BatchUnpacker:
    """Gives the attributes of one batch back."""

    def __init__(self, unpacker: Unpacker, nodes: list[str], payloads: list[str], exact: bool) -> None:
        self._all = unpacker
        self._nodes = nodes
        self._payloads = payloads
        self._exact = exact

    def attributes(self, packed: JsonObject) -> Attributes:
        said = {name.removeprefix("~~"): self._value(value) for name, value in packed.items() if name != "~numbered"}
        for prefix, node in (packed.get("~numbered") or {}).items():
            for position, row in enumerate(self._all.parsed(self._nodes[node])):
                said.update({f"{prefix}.{position}.{rest}": value for rest, value in row.items()})
        return said

    def _value(self, value: JsonValue) -> JsonValue:
        if not isinstance(value, dict):
            return value
        if "~text" in value:
            return self._all.text(self._payloads[value["~text"]])
        if "~list" in value:
            return self._all.parsed(self._nodes[value["~list"]])
        return self._with_lists(value) if "~" in value else value.get("~value", value)

    def _with_lists(self, value: JsonObject) -> JsonValue:
        if not self._exact and value["~"] == _ONE_LIST.decode():
            return self._all.parsed(self._nodes[value["lists"][0][0]])
        text: str = value["~"]
        for number, (node, separator) in enumerate(value["lists"]):
            rows = separator.encode().join(self._all.rows(self._nodes[node])).decode("utf-8", "replace")
            text = text.replace(f'["~{number}"]', f"[{rows}]", 1)
        return text if self._exact else self._all.same_text(text)
