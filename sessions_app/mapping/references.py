"""Which payloads a stored step or header speaks of."""

from __future__ import annotations

import re

_REFERENCE = re.compile(rb'"sha256":"([0-9a-f]{64})"')


def payload_references(text: bytes) -> set[str]:
    """Digests in a stored text; it is written by us, so the spelling is known.

    Recorded text cannot forge one that matters: a digest that is not stored is not fetched, and one
    that is stored in the project gives nothing away, because only references are ever resolved.
    """
    return {match.decode() for match in _REFERENCE.findall(text)}
