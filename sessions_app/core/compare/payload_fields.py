"""Fields that are held as payloads, compared by digest first and by value only where they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sessions_app.core.compare.json_diff import (
    MISSING,
    Difference,
    Missing,
    Tally,
    differences,
)
from sessions_app.core.compare.partial import TRUNCATED_KEY
from sessions_app.core.compare.sequence import equal_ends
from sessions_app.core.compare.strict import (
    count_leaves,
    count_leaves_of_text,
    read_json,
    read_json_text,
)
from sessions_app.core.compare.volatile import SAME_JSON, VolatileRules, rule_for
from sessions_app.core.payload import JsonValue, Payload

_TRUNCATED = TRUNCATED_KEY.encode()


class FieldComparer:
    """Compares the fields of two runs and keeps one tally of all of it.

    Payloads with equal digests are not read: their fields are counted from the bytes, once for each
    digest.
    """

    def __init__(self, rules: VolatileRules, tally: Tally) -> None:
        self.rules = rules
        self.tally = tally
        self._counts: dict[tuple[str, bool], int] = {}

    def values(self, path: str, left: JsonValue, right: JsonValue) -> Iterator[Difference]:
        """None means that the producer did not capture the field; nothing is said of two of them."""
        if left is None and right is None:
            return iter(())
        if left is None or right is None:
            return iter([_not_captured(path, left, right, is_left=left is None)])
        return self.present(path, left, right)

    def present(self, path: str, left: JsonValue, right: JsonValue) -> Iterator[Difference]:
        return (found for found in self._all(path, left, right) if not _says_the_same(found))

    def _all(self, path: str, left: JsonValue, right: JsonValue) -> Iterator[Difference]:
        return differences(left, right, ignore=self.rules, path=path, tally=self.tally)

    def payloads(
        self,
        path: str,
        left: Payload | Missing | None,
        right: Payload | Missing | None,
        *,
        as_fields: bool = False,
        spelling: str = SAME_JSON,
    ) -> Iterator[Difference]:
        """`MISSING` for a field that is known not to be there. `as_fields` reads a text that spells
        an object or list as that; that it was spelled otherwise is the rule of this note."""
        if isinstance(left, Payload) and isinstance(right, Payload):
            if self._counted_as_equal(left, right, as_fields=as_fields):
                return iter(())
            if as_fields or (left.is_json and right.is_json):
                return self._values_and_spelling(path, left, right, as_fields, spelling)
            return self.present(path, _read(left, as_fields), _read(right, as_fields))
        if not isinstance(left, Payload) and not isinstance(right, Payload):
            return iter(())
        one, other = _read_any(left, as_fields), _read_any(right, as_fields)
        if left is None or right is None:
            return iter([_not_captured(path, one, other, is_left=left is None)])
        return self.present(path, one, other)

    def _values_and_spelling(
        self, path: str, left: Payload, right: Payload, as_fields: bool, spelling: str
    ) -> Iterator[Difference]:
        """Two documents are two recordings, also where their values are the same."""
        one, other = _read(left, as_fields), _read(right, as_fields)
        ignored, is_other = self.tally.ignored.total(), False
        for found in self._all(path, one, other):
            is_other = True
            if not _says_the_same(found):
                yield found
        if is_other or self.tally.ignored.total() > ignored or left == right:
            return
        rule = rule_for(self.rules, path, one, other, spelling)
        if rule is None:
            texts = left.as_text(), right.as_text()
            yield Difference(path=path, left=texts[0], right=texts[1], status="changed", note=spelling)
        else:
            self.tally.ignored[rule.key] += 1

    def optional_lists(
        self, path: str, left: Sequence[Payload] | None, right: Sequence[Payload] | None
    ) -> Iterator[Difference]:
        """None for a list that was not captured."""
        if left is None or right is None:
            return self.values(path, _items(left), _items(right))
        return self.lists(path, left, right, (0, 0))

    def lists(
        self, path: str, left: Sequence[Payload], right: Sequence[Payload], starts: tuple[int, int]
    ) -> Iterator[Difference]:
        """Position by position after equal beginnings and ends; `starts` are the first positions."""
        head, tail = equal_ends([p.digest for p in left], [p.digest for p in right])
        for payload in (*left[:head], *left[len(left) - tail :]):
            self.count(payload)
        yield from self._middles(
            path,
            left[head : len(left) - tail],
            right[head : len(right) - tail],
            (starts[0] + head, starts[1] + head),
        )

    def _middles(
        self, path: str, left: Sequence[Payload], right: Sequence[Payload], starts: tuple[int, int]
    ) -> Iterator[Difference]:
        for k in range(max(len(left), len(right))):
            one = left[k] if k < len(left) else MISSING
            other = right[k] if k < len(right) else MISSING
            position = (starts[1] if one is MISSING else starts[0]) + k
            yield from self.payloads(f"{path}[{position}]", one, other)

    def _counted_as_equal(self, left: Payload, right: Payload, *, as_fields: bool) -> bool:
        if left.digest != right.digest or left.media_type != right.media_type:
            return False
        if _TRUNCATED in left.content:
            return False
        self.count(left, as_fields=as_fields)
        return True

    def count(self, payload: Payload, *, as_fields: bool = False) -> None:
        """Add the fields of a payload that is the same on both sides."""
        key = payload.digest, as_fields
        if key not in self._counts:
            self._counts[key] = _leaves(payload, as_fields)
        self.tally.compared += self._counts[key]


def _leaves(payload: Payload, as_fields: bool) -> int:
    content = payload.content.lstrip()
    if payload.is_json and not content.startswith(b'"'):
        return count_leaves_of_text(content)
    return count_leaves(_read(payload, as_fields)) if as_fields else 1


_OF_LIBRARY = re.compile(
    r"(settings|parameters(\.output_object|\.\w+_tools\[\d+\])?|(response|(request\.)?messages\[\d+\])(\.parts\[\d+\])?)"
    r"\.\w+"
)
"""Members of objects that no tool, model or person wrote."""


def _says_the_same(found: Difference) -> bool:
    """A field that is null says no more than one that is absent (docs/record-format.md)."""
    is_untold = all(side is None or side is MISSING for side in (found.left, found.right))
    return is_untold and _OF_LIBRARY.fullmatch(found.path) is not None


def _items(payloads: Sequence[Payload] | None) -> JsonValue:
    return None if payloads is None else [_read(payload, False) for payload in payloads]


def _read_any(payload: Payload | Missing | None, as_fields: bool) -> JsonValue:
    return _read(payload, as_fields) if isinstance(payload, Payload) else payload


def _read(payload: Payload, as_fields: bool) -> JsonValue:
    value = _read_json(payload) if payload.is_json else _read_other(payload)
    fields = read_json_text(value) if as_fields and isinstance(value, str) else None
    return value if fields is None else fields


def _read_json(payload: Payload) -> JsonValue:
    """What cannot be read without loss is compared as the text it is."""
    try:
        return read_json(payload.content)
    except ValueError:
        return payload.as_text()


def _read_other(payload: Payload) -> JsonValue:
    if payload.is_text:
        return payload.as_text()
    return {"bytes": payload.size, "sha256": payload.digest, "media_type": payload.media_type}


def _not_captured(path: str, left: JsonValue, right: JsonValue, *, is_left: bool) -> Difference:
    return Difference(
        path=path,
        left=MISSING if is_left else left,
        right=right if is_left else MISSING,
        status="not_comparable",
        note=f"not captured on the {'left' if is_left else 'right'}",
    )
