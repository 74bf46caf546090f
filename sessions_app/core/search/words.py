"""Words of languages that put no spaces between them: pairs of characters stand for them, in what is searched and in
what is searched for."""

from __future__ import annotations

import re

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f]+")
"""Kana and Han characters in a row."""


def spaced(text: str) -> str:
    """With spaces between the pairs: `注文番号` becomes `注文 文番 番号`."""
    return _UNSPACED.sub(lambda found: f" {' '.join(_pairs(found[0]))} ", text)


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(len(run) - 1, 1))]


def is_one_unspaced(text: str) -> bool:
    """One character, which begins a pair wherever another one follows it."""
    return len(text) == 1 and _UNSPACED.fullmatch(text) is not None


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def with_parts(text: str) -> str:
    """Followed by the words of the names in it: `GatewayTimeout` is found by `gateway` too."""
    parts = _HUMP.sub(" ", text)
    return text if parts == text else f"{text} {parts}"
