"""What a case file says of itself: its runs, its entries, and the chain that seals them.

    link 0 = SHA-256 of the manifest's JSON text without `entries` and `seal`
    link n = SHA-256 of link n-1, the entry's name and the entry's SHA-256, with a NUL between them

The seal is the last link. It shows that nothing was changed since; who made the file it does not show: for that, keep
the seal where the file is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sessions_app.core.errors import RecordError
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import JsonObject, JsonValue, compact_json, sha256_hex

FORMAT = "agent-replay.case"
VERSION = 1
NAME = "manifest.json"
_DIGEST = re.compile(r"[0-9a-f]{64}")


def write_manifest(entries: Mapping[str, bytes], *, runs: Sequence[str], made_by: str) -> bytes:
    digests = {name: sha256_hex(entries[name]) for name in sorted(entries)}
    sizes = {name: len(content) for name, content in entries.items()}
    return _text(digests, sizes, runs=runs, made_by=made_by)


def _text(digests: Mapping[str, str], sizes: Mapping[str, int], *, runs: Sequence[str], made_by: str) -> bytes:
    head: JsonObject = {"format": FORMAT, "version": VERSION, "made_by": made_by, "runs": list(runs)}
    link, listed = sha256_hex(compact_json(head)), []
    for name, digest in digests.items():
        link = sha256_hex(f"{link}\0{name}\0{digest}".encode())
        listed.append({"name": name, "size": sizes[name], "sha256": digest, "link": link})
    return compact_json({**head, "entries": listed, "seal": link})


def checked_manifest(entries: Mapping[str, bytes]) -> JsonObject:
    """The manifest of these entries; raises `RecordError` naming the entry that is not as it was sealed."""
    if NAME not in entries:
        raise RecordError(f"The case file has no {NAME}.", field=NAME)
    manifest = _read(entries[NAME])
    others = {name: content for name, content in entries.items() if name != NAME}
    digests = {name: sha256_hex(content) for name, content in others.items()}
    listed = {entry["name"]: entry for entry in manifest["entries"]}
    _check_names(set(listed), set(others))
    for name, entry in listed.items():
        if (entry["sha256"], entry["size"]) != (digests[name], len(others[name])):
            raise RecordError(
                f"{name} was changed: expected SHA-256 {entry['sha256']} of {entry['size']} bytes, "
                f"found {digests[name]} of {len(others[name])}.",
                field=name,
            )
    return manifest


def _check_names(listed: set[str], there: set[str]) -> None:
    for name in sorted(listed - there):
        raise RecordError(f"{name[:80]} is in the manifest and not in the case file.", field=name[:80])
    for name in sorted(there - listed):
        raise RecordError(f"{name} is in the case file and not in the manifest.", field=name)


def _read(content: bytes) -> JsonObject:
    """Only in the one spelling that we write, and with the seal that its own words give."""
    try:
        manifest = load_strict(content)
    except RecordError as error:
        raise _changed(error.message) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _changed(f"expected the format {FORMAT!r}")
    if manifest.get("version") != VERSION:
        said = str(manifest.get("version"))[:40]
        raise RecordError(f"This case file has version {said}; this server reads {VERSION}.", field=NAME)
    entries, runs = _typed(manifest)
    digests = {entry["name"]: entry["sha256"] for entry in entries}
    sizes = {entry["name"]: entry["size"] for entry in entries}
    expected = _text(digests, sizes, runs=runs, made_by=manifest["made_by"])
    if expected != content:
        seal = load_strict(expected)["seal"]
        raise _changed(f"expected the seal {seal}, found {str(manifest.get('seal'))[:64]!r}, or a link differs")
    return manifest


def _typed(manifest: JsonObject) -> tuple[list[JsonObject], list[str]]:
    entries, runs = manifest.get("entries"), manifest.get("runs")
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        raise _changed("its entries cannot be read")
    if not isinstance(runs, list) or not all(isinstance(run, str) for run in runs):
        raise _changed("its runs cannot be read")
    if not isinstance(manifest.get("made_by"), str):
        raise _changed("it does not say what made it")
    return entries, runs


def _is_entry(entry: JsonValue) -> bool:
    if not isinstance(entry, dict) or type(entry.get("size")) is not int:
        return False
    name, digest = entry.get("name"), entry.get("sha256")
    return isinstance(name, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None


def _changed(what: str) -> RecordError:
    return RecordError(f"{NAME} was changed: {what}.", field=NAME)
