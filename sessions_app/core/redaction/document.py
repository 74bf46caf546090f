"""One pass over one JSON document: which tokens change, and how.

Works on the text and not on parsed values: only tokens that hold a secret change, and white space,
the spelling of numbers and the order of keys stay as they were received. Strings that hold JSON
again (tool arguments often do) are read the same way, and their edits carried out to the document.
"""

import binascii
import json
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Sequence

from .edits import Edit, apply_edits, compose_edits, escape_edits, shift_edits
from .placeholders import Placeholders, is_placeholder
from .rules import FieldRule, Rule, TextRule
from .scanner import (
    NUMBER,
    Region,
    Scalar,
    Scanner,
    decode_string,
    field_meanings,
    outermost_regions,
)
from .text_hits import find_hits

DEEPEST_JSON_IN_STRING = 5
MOST_LOOKS = 8
"""A hit taken out can uncover another. A text that still has some then is taken out as a whole."""
_REMEMBERED = 4_000_000
"""Characters of strings that are remembered; then all are forgotten."""

_check_json = json.JSONDecoder(parse_int=str, parse_float=str).decode


class DocumentPass:
    """Knows the rules, and remembers what it found in strings and keys that come again."""

    def __init__(self, secret: bytes, rules: Sequence[Rule]) -> None:
        self._placeholders = Placeholders(secret)
        self._text_rules = [rule for rule in rules if isinstance(rule, TextRule)]
        self._meanings = field_meanings(tuple(rule for rule in rules if isinstance(rule, FieldRule)))
        self._known: list[dict[str, list[Edit]]] = [{} for _ in range(DEEPEST_JSON_IN_STRING + 1)]
        self._room = _REMEMBERED

    def document_edits(self, text: str, depth: int) -> list[Edit]:
        """Edits of a JSON text that lies `depth` strings deep."""
        scanner = Scanner(text, self._meanings, self._known[depth])
        edits = [edit for scalar in scanner.scan() for edit in self._scalar_edits(scalar, depth)]
        regions = outermost_regions(scanner.late)
        if not regions:
            return edits
        inside = [
            edit
            for region in regions
            for scalar in scanner.scan_region(region)
            for edit in self._scalar_edits(scalar, depth)
        ]
        return sorted(_edits_outside(edits, regions) + inside)

    def text_edits(self, text: str, depth: int) -> list[Edit]:
        """Edits of the text of a string, which may be JSON itself."""
        edits: list[Edit] = []
        for _ in range(MOST_LOOKS):
            current = apply_edits(text, edits)
            is_json = depth < DEEPEST_JSON_IN_STRING and holds_json(current)
            if is_json:
                found = self.document_edits(current, depth + 1)
            else:
                found = find_hits(current, self._text_rules, self._placeholders)
            edits = compose_edits(edits, found) if edits else found
            if is_json or not found:
                return edits
        return [self._replacement(0, len(text), "secret", text)]

    def _scalar_edits(self, scalar: Scalar, depth: int) -> list[Edit]:
        if scalar.kind == NUMBER:
            return self._number_edits(scalar)
        if scalar.secret:
            return self._secret_edits(scalar)
        if scalar.base64 and (text := _base64_text(scalar.raw)) is not None:
            return self._base64_edits(scalar, text, depth)
        found = self._string_edits(scalar.raw, depth)
        return shift_edits(found, scalar.start) if found else found

    def _number_edits(self, scalar: Scalar) -> list[Edit]:
        """A number that is replaced becomes a string."""
        if scalar.secret:
            found = [self._replacement(0, len(scalar.raw), scalar.secret, scalar.raw)]
        else:
            found = find_hits(scalar.raw, self._text_rules, self._placeholders)
        return [
            edit._replace(start=scalar.start, end=scalar.end, text=f'"{edit.text}"')
            for edit in found
            if (edit.start, edit.end) == (0, len(scalar.raw))
        ]

    def _secret_edits(self, scalar: Scalar) -> list[Edit]:
        value = decode_string(scalar.raw)
        if not value or is_placeholder(value):
            return []
        return [self._replacement(scalar.start, scalar.end, scalar.secret, value)]

    def _base64_edits(self, scalar: Scalar, text: str, depth: int) -> list[Edit]:
        found = self.text_edits(text, depth)
        if not found:
            return []
        encoded = b64encode(apply_edits(text, found).encode()).decode()
        rules = tuple(name for edit in found for name in edit.rules)
        return [Edit(scalar.start, scalar.end, encoded, rules)]

    def _string_edits(self, raw: str, depth: int) -> list[Edit]:
        known = self._known[depth].get(raw)
        if known is None:
            known = escape_edits(raw, self.text_edits(decode_string(raw), depth))
            self._remember(raw, depth, known)
        return known

    def _remember(self, raw: str, depth: int, edits: list[Edit]) -> None:
        self._room -= len(raw)
        if self._room < 0:
            for known in self._known:
                known.clear()
            self._room = _REMEMBERED
        self._known[depth][raw] = edits

    def _replacement(self, start: int, end: int, rule_name: str, value: str) -> Edit:
        return Edit(start, end, self._placeholders.of(rule_name, value), (rule_name,))


def _edits_outside(edits: Sequence[Edit], regions: Sequence[Region]) -> list[Edit]:
    starts = [region.start for region in regions]

    def is_outside(edit: Edit) -> bool:
        index = bisect_right(starts, edit.start) - 1
        return index < 0 or edit.start >= regions[index].end

    return [edit for edit in edits if is_outside(edit)]


def holds_json(text: str) -> bool:
    """Whether the text is a JSON object, list or string; a quick look at its ends comes first."""
    stripped = text.strip(" \t\r\n")
    if stripped[:1] + stripped[-1:] not in ("{}", "[]", '""') or len(stripped) < 2:
        return False
    try:
        _check_json(stripped)
    except (ValueError, RecursionError):
        return False
    return True


def _base64_text(raw: str) -> str | None:
    """The text that base64 holds; None when it is something else, which is left alone."""
    try:
        return b64decode(decode_string(raw), validate=True).decode()
    except (ValueError, binascii.Error):
        return None
