"""Counting brackets and commas of JSON before it is parsed: a few MB of `{},` would become millions of objects.

What is counted here is right up to the first place where the text stops being JSON, and no parser builds anything
behind that place.
"""

from __future__ import annotations

from itertools import accumulate

from sessions_app.core.otlp.errors import OtlpError, OtlpTooLarge
from sessions_app.core.otlp.limits import OtlpLimits

_CHUNK = 64 * 1024
"""Bytes that are split at a time: the pieces weigh many times as much."""
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"{}[]")
_DEPTH = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}


def check_json(body: bytes, limits: OtlpLimits) -> None:
    """Raises `OtlpTooLarge` or `OtlpError` for what is too much or too deep."""
    marks = _outside_texts(body)
    if sum(map(marks.count, (b"{", b"[", b","))) > limits.max_json_tokens:
        raise OtlpTooLarge("the body holds too many values; send smaller batches")
    brackets = marks.translate(None, _NO_BRACKETS)
    if max(accumulate(map(_DEPTH.__getitem__, brackets)), default=0) > limits.max_json_depth:
        raise OtlpError(f"the body is nested deeper than {limits.max_json_depth} levels")


def _outside_texts(body: bytes) -> bytes:
    """All that stands between texts. Escaped quotes go first, so that the others are where texts begin and end."""
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in body else body
    inside, outside = 0, []
    for at in range(0, len(bare), _CHUNK):
        pieces = bare[at : at + _CHUNK].split(b'"')
        outside.append(b"".join(pieces[inside::2]))
        inside ^= (len(pieces) - 1) & 1
    return b"".join(outside)
