"""Reading request bodies within limits, whatever their length says and however they are packed."""

from __future__ import annotations

import zlib

import zstandard
from django.conf import settings
from django.http import HttpRequest

from sessions_app.api.errors import Refused
from sessions_app.services.body_streams import drain, stream_of

_MAX_MEMBERS = 1000
"""Of one gzip body. Each costs a copy of what follows it, and a member may be 20 bytes of nothing."""

_PIECE = 512
"""Bytes of zstd that are inflated at a time: 16 MiB of zeros at most."""


def read_body(request: HttpRequest) -> bytes:
    """The inflated body. Too much is refused before it is read or inflated as a whole."""
    limit = settings.REPLAY_MAX_BODY_BYTES
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return _read(request, settings.REPLAY_MAX_INFLATED_BYTES)
    if encoding not in _INFLATERS:
        raise Refused(
            415, "unknown_encoding", f"Content-Encoding {encoding[:40]!r} is not known; use gzip, zstd or none."
        )
    return _inflate(encoding, _read(request, limit))


def _read(request: HttpRequest, limit: int) -> bytes:
    length = request.headers.get("Content-Length", "")
    stream = stream_of(request, has_length=bool(length))
    if length.isdecimal() and int(length) > limit:
        drain(stream)
        raise _too_large(limit)
    body = stream.read(limit + 1)
    if len(body) > limit:
        drain(stream)
        raise _too_large(limit)
    if length.isdecimal() and len(body) < int(length):
        raise Refused(400, "cut_off", "The body is shorter than its Content-Length.")
    return body


def _inflate(encoding: str, packed: bytes) -> bytes:
    limit = settings.REPLAY_MAX_INFLATED_BYTES
    try:
        body = _INFLATERS[encoding](packed, limit)
    except (zlib.error, zstandard.ZstdError, EOFError):
        raise Refused(400, "bad_encoding", f"The body is not valid {encoding}.") from None
    if len(body) > limit:
        raise _too_large(limit)
    return body


def _gunzip(packed: bytes, limit: int) -> bytes:
    """All members of the stream; trailing junk is an error. Inflates one byte over the limit at most."""
    body = b""
    for _ in range(_MAX_MEMBERS):
        if not packed or len(body) > limit:
            return body
        member = zlib.decompressobj(wbits=31)
        body += member.decompress(packed, limit + 1 - len(body))
        if not member.eof:
            if len(body) <= limit:
                raise EOFError
            return body
        packed = member.unused_data
    raise Refused(413, "too_large", f"The body has more than {_MAX_MEMBERS} gzip members.")


def _zlib(packed: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj()
    body = inflater.decompress(packed, limit + 1)
    if len(body) <= limit and (not inflater.eof or inflater.unused_data):
        raise EOFError
    return body


def _unzstd(packed: bytes, limit: int) -> bytes:
    """All frames of the stream; trailing junk is an error. A piece comes out as a whole, however much that is."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=2**23)
    frame, frames, at, body = unpacker.decompressobj(), 0, 0, bytearray()
    while at < len(packed) and len(body) <= limit:
        if frame.eof:
            frame, frames = unpacker.decompressobj(), _one_more(frames)
        piece = packed[at : at + _PIECE]
        body += frame.decompress(piece)
        at += len(piece) - len(frame.unused_data)
    if packed and not frame.eof and len(body) <= limit:
        raise EOFError
    return bytes(body)


def _one_more(frames: int) -> int:
    if frames >= _MAX_MEMBERS:
        raise Refused(413, "too_large", f"The body has more than {_MAX_MEMBERS} zstd frames.")
    return frames + 1


_INFLATERS = {"gzip": _gunzip, "x-gzip": _gunzip, "deflate": _zlib, "zstd": _unzstd}


def _too_large(limit: int) -> Refused:
    return Refused(413, "too_large", f"The body is larger than {limit} bytes.")
