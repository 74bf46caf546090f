"""Entries in a zip archive of which every byte is determined: stored, in order of name, without dates or comments.

Reading takes exactly what writing gives and nothing else, so there is no place for paths, links, encryption, compressed
bombs, doubled names, or bytes beside the entries. Source of the layout: PKWARE's APPNOTE.TXT, 4.3.7.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Mapping

from sessions_app.core.errors import RecordError, RecordTooLarge

MAX_ENTRIES = 1024
_NAME = re.compile(r"[a-z]+(/[0-9]{4})?\.json|README\.txt")
_LOCAL = struct.Struct("<4s5H3L2H")
_LOCAL_MARK, _CENTRAL_MARK = b"PK\x03\x04", b"PK\x01\x02"
_LONGEST_NAME = 64


def is_archive(content: bytes) -> bool:
    """Whether it begins as a zip archive does; no JSON does."""
    return content.startswith(b"PK")


def write_archive(entries: Mapping[str, bytes]) -> bytes:
    """The same entries always give the same bytes."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(entries):
            about = zipfile.ZipInfo(name)
            about.create_system = 3
            about.external_attr = 0o644 << 16
            archive.writestr(about, entries[name])
    return into.getvalue()


def read_archive(content: bytes, max_bytes: int) -> dict[str, bytes]:
    """What `write_archive` was given; raises `RecordError` naming the entry. `check_bytes` is still to be asked."""
    if len(content) > max_bytes:
        raise RecordTooLarge(f"The case file has {len(content)} bytes; the limit is {max_bytes}.")
    entries: dict[str, bytes] = {}
    position = 0
    while not content.startswith(_CENTRAL_MARK, position):
        name, start, end = _entry(content, position)
        if name in entries:
            raise RecordError(f"{name} stands twice in the case file.", field=name)
        if len(entries) == MAX_ENTRIES:
            raise RecordTooLarge(f"The case file has more than {MAX_ENTRIES} entries.")
        entries[name] = content[start:end]
        position = end
    return entries


def _entry(content: bytes, position: int) -> tuple[str, int, int]:
    """Name, and where its bytes begin and end."""
    if not content.startswith(_LOCAL_MARK, position) or position + _LOCAL.size > len(content):
        raise RecordError(f"The case file is no archive of ours at byte {position}: expected an entry.")
    _, _, flags, method, _, _, _, _, size, name_length, extra = _LOCAL.unpack_from(content, position)
    at = position + _LOCAL.size
    name = content[at : at + min(name_length, _LONGEST_NAME)].decode("utf-8", errors="replace")
    start = at + name_length + extra
    if name_length > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise RecordError(f"{name!r} is no name of an entry of a case file.", field=name)
    if flags or method or extra:
        raise RecordError(
            f"{name} is compressed, encrypted or has extra fields; a case file has none of it.", field=name
        )
    if start + size > len(content):
        raise RecordError(f"{name} says that it has {size} bytes; the case file ends before them.", field=name)
    return name, start, start + size


def check_bytes(content: bytes, entries: Mapping[str, bytes]) -> None:
    """Refuse an archive that differs from what these entries give, naming the place of the first difference."""
    expected = write_archive(entries)
    if expected == content:
        return
    pairs = enumerate(zip(expected, content, strict=False))
    at = next((i for i, (left, right) in pairs if left != right), min(len(expected), len(content)))
    name = _around(at, entries)
    raise RecordError(f"The archive's own bytes were changed at byte {at}, {name}.", field=name)


def _around(at: int, entries: Mapping[str, bytes]) -> str:
    position = 0
    for name in sorted(entries):
        position += _LOCAL.size + len(name) + len(entries[name])
        if at < position:
            return f"in the entry {name}"
    return "in the list of entries"
