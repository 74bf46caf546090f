"""Finds what the text rules hit in one text."""

import re
from collections.abc import Sequence

from .edits import Edit
from .placeholders import Placeholders, inside_placeholder
from .rules import TextRule

SHORTEST_HIT = 6
"""`a@b.co`; nothing shorter can hold a secret."""


def find_hits(text: str, rules: Sequence[TextRule], placeholders: Placeholders) -> list[Edit]:
    """What one look at the text finds; where hits overlap the earlier rule wins."""
    if len(text) < SHORTEST_HIT:
        return []
    ranked = [(*span, rank) for rank, rule in enumerate(rules) if rule.may_hit(text) for span in _spans(text, rule)]
    return [
        Edit(start, end, placeholders.of(name, text[start:end]), (name,))
        for start, end, rank in _without_overlaps(ranked)
        for name in (rules[rank].name,)
    ]


def _spans(text: str, rule: TextRule) -> list[tuple[int, int]]:
    return [
        span
        for pattern in rule.patterns
        for match in pattern.finditer(text)
        if rule.accepts(match)
        for span in (_secret_span(match),)
        if not inside_placeholder(text, *span)
    ]


def _secret_span(match: re.Match[str]) -> tuple[int, int]:
    return match.span("secret" if "secret" in match.re.groupindex else 0)


def _without_overlaps(ranked: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """A hit that loses here is found again in the next look, if it still is one."""
    kept: list[tuple[int, int, int]] = []
    for hit in sorted(ranked, key=lambda hit: (hit[0], hit[2], -hit[1])):
        if not kept or hit[0] >= kept[-1][1]:
            kept.append(hit)
        elif hit[2] < kept[-1][2]:
            kept[-1] = hit
    return kept
