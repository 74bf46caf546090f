"""Putting a case together, and opening one after everything in it was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sessions_app.core.case_file.archive import check_bytes, read_archive, write_archive
from sessions_app.core.case_file.manifest import NAME, checked_manifest, write_manifest
from sessions_app.core.errors import RecordError
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject, compact_json
from sessions_app.core.redaction import BUILT_IN_RULES
from sessions_app.core.redaction.placeholders import PLACEHOLDER

MADE_BY = "agent-replay"
README = """\
This is a case file: recordings of AI agent runs, sealed.

records/0001.json   the run that the case is about, in the format agent-replay.run
records/0002.json … the run that it came from and its replays, as many as fit
report.json         what is known of the run: what it did, its anomalies, whether its replays agree
redaction.json      which secrets were replaced before anything was stored
manifest.json       the SHA-256 of every entry, and the seal over all of them

To open it, post it to another installation: POST /api/v1/runs with a key of a project. Nothing is taken in unless every
byte is as it was sealed. The seal does not show who made the file; for that, keep the seal where the file is not.
"""
_RECORD = "records/{:04}.json"
_OTHERS = ("README.txt", "redaction.json", "report.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A case file whose every byte was checked."""

    runs: tuple[str, ...]
    """Ids of its runs; the first is the one that the case is about."""
    records: tuple[bytes, ...]
    """Native records of these runs, in the same order."""
    report: bytes
    """JSON."""
    seal: str
    """SHA-256, 64 hex digits."""


def make_case(records: Mapping[str, bytes], report: JsonObject) -> bytes:
    """`records` are native records by run id, that of the case first. The same runs give the same bytes."""
    entries = {_RECORD.format(n): content for n, content in enumerate(records.values(), start=1)}
    entries |= {
        "README.txt": README.encode(),
        "redaction.json": compact_json(_redaction(records.values())),
        "report.json": compact_json(report),
    }
    manifest = write_manifest(entries, runs=list(records), made_by=MADE_BY)
    return write_archive({**entries, NAME: manifest})


def open_case(content: bytes, limits: Limits = Limits()) -> Case:
    """Raises `RecordError` naming the entry that was changed, or what no case file has."""
    entries = read_archive(content, limits.max_bytes)
    manifest = checked_manifest(entries)
    check_bytes(content, entries)
    runs: list[str] = manifest["runs"]
    return Case(
        runs=tuple(runs),
        records=tuple(_records(entries, runs)),
        report=entries["report.json"],
        seal=manifest["seal"],
    )


def _records(entries: Mapping[str, bytes], runs: Sequence[str]) -> list[bytes]:
    """Those that the manifest counts; a case has these and its other entries, and nothing else."""
    names = [_RECORD.format(n) for n in range(1, len(runs) + 1)]
    if not runs or entries.keys() != {*names, *_OTHERS, NAME}:
        raise RecordError("The case file does not hold one record for each of its runs.", field=NAME)
    return [entries[name] for name in names]


def _redaction(records: Iterable[bytes]) -> JsonObject:
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(found[1:-10] for found in PLACEHOLDER.findall(record.decode()))
    return {
        "redacted": "when the recordings were taken in, before anything was stored",
        "rules": [rule.name for rule in BUILT_IN_RULES],
        "placeholders": dict(sorted(counts.items())),
    }
