"""Find in the steps of one run: a bounded walk over what was recorded, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native_steps import read_error
from sessions_app.core.packed_nodes import Reference
from sessions_app.core.search.find_terms import FindTerms, as_read
from sessions_app.core.search.snippets import Pieces, pieces_of
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.pieces import read_pieces, step_texts
from sessions_app.mapping.references import payload_references, read_references
from sessions_app.models import Run, StoredPayload

STEPS = 20_000
BYTES = 64 * 1024 * 1024
CHUNK = 500
"""Steps of one part; each part is four queries."""
_SEARCHED = ("arguments", "result", "response", "content", "metadata", "query", "chunks", "http")
"""Fields of a stored step that hold what was asked and answered. Tool lists and settings are the same in every step."""


@dataclass(kw_only=True, slots=True)
class Hits:
    """Where it was found, and how far was looked."""

    counts: dict[int, int] = field(default_factory=dict)
    """Hits by step, in the order of the steps."""
    snippets: dict[int, Pieces] = field(default_factory=dict)
    """By step, where the phrase is first."""
    searched: int = 0
    """Steps that were looked at."""
    size: int = 0
    """Bytes of payloads that were looked at."""
    gone: int = 0
    """Payloads whose bytes are no longer stored."""
    stopped_before: int | None = None
    """The step at which a limit was reached."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def find_in_run(run: Run, terms: FindTerms) -> Hits:
    hits = Hits()
    if terms.problem or not terms.text:
        return hits
    rows = [row for row in run.steps if _is_meant(row, terms)]
    if not terms.needs_payloads:
        return _of_rows([row.index for row in rows[: STEPS + 1]], hits)
    walk = _Walk(run, terms, hits)
    for start in range(0, min(len(rows), STEPS), CHUNK):
        walk.look_at(rows[start : min(start + CHUNK, STEPS)])
        if hits.stopped_before is not None:
            return hits
    if len(rows) > STEPS:
        hits.stopped_before = rows[STEPS].index
    return hits


def _is_meant(row: StepSummary, terms: FindTerms) -> bool:
    return (not terms.kind or terms.kind == row.kind) and (row.has_failed or not terms.is_error)


def _of_rows(indices: list[int], hits: Hits) -> Hits:
    hits.counts = dict.fromkeys(indices[:STEPS], 1)
    hits.searched = len(hits.counts)
    hits.stopped_before = indices[STEPS] if len(indices) > STEPS else None
    return hits


class _Walk:
    """Equal payloads are read once a part, and counted once a run."""

    def __init__(self, run: Run, terms: FindTerms, hits: Hits) -> None:
        self._run = run
        self._terms = terms
        self._hits = hits
        self._times: dict[Reference, int] = {}
        self._pieces: dict[Reference, Pieces] = {}
        self._argument_fits: dict[Reference, bool] = {}

    def look_at(self, rows: Sequence[StepSummary]) -> None:
        texts = step_texts(self._run.content, rows)
        found = [_Searched.of(row, text) for row, text in zip(rows, texts, strict=True)]
        wanted = {name for each in found for name in each.payloads} - self._times.keys()
        sizes = self._sizes(wanted)
        fitting, stop = self._within_limit(found, sizes)
        arguments = {each.arguments for each in found if each.arguments is not None}
        self._read(fitting, arguments)
        self._hits.gone += len(wanted - sizes.keys())
        for each in found[:stop]:
            self._hits.searched += 1
            if count := self._count(each):
                self._hits.counts[each.row.index] = count
                self._hits.snippets[each.row.index] = self._snippet(each)
        if stop < len(found):
            self._hits.stopped_before = found[stop].row.index

    def _sizes(self, wanted: set[Reference]) -> dict[Reference, int]:
        """Of those that are stored. Pieces are short: they are read for it."""
        pieces = read_pieces(self._run.content, [each for each in wanted if isinstance(each, int)])
        apart = [bytes.fromhex(each) for each in wanted if isinstance(each, str)]
        rows = StoredPayload.objects.filter(project_id=self._run.project_id, digest__in=apart)
        sizes = {bytes(digest).hex(): size for digest, size in rows.values_list("digest", "size")}
        return {piece: len(content) for piece, content in pieces.items()} | sizes

    def _within_limit(self, found: list[_Searched], sizes: dict[Reference, int]) -> tuple[set[Reference], int]:
        """The payloads to read, and how many of the rows they are enough for."""
        fitting: set[Reference] = set()
        for i, each in enumerate(found):
            fresh = (each.payloads & sizes.keys()) - fitting
            size = sum(sizes[name] for name in fresh)
            if self._hits.size + size > BYTES:
                return fitting, i
            self._hits.size += size
            fitting |= fresh
        return fitting, len(found)

    def _read(self, payloads: set[Reference], arguments: set[Reference]) -> None:
        for name, content in read_references(self._run.content, payloads).items():
            text = as_read(content.decode(errors="replace"))
            if times := self._terms.times_in(text):
                self._pieces[name] = pieces_of(text, self._terms.phrase)
            self._times[name] = times
            if self._terms.arguments and name in arguments:
                self._argument_fits[name] = all(each.matches(content) for each in self._terms.arguments)

    def _count(self, each: _Searched) -> int:
        terms = self._terms
        if terms.arguments and (each.arguments is None or not self._argument_fits.get(each.arguments)):
            return 0
        if not terms.phrase:
            return 1
        times = sum(self._times.get(name, 0) for name in each.payloads)
        return times + sum(terms.times_in(text) for text in _words(each))

    def _snippet(self, each: _Searched) -> Pieces:
        """Of the payloads of a step the first as they are spelled, else of its error."""
        found = (self._pieces.get(name, ()) for name in sorted(each.payloads, key=str))
        return next(filter(None, found), ()) or next(
            filter(None, (pieces_of(text, self._terms.phrase) for text in _words(each))), ()
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Searched:
    """A step that is looked at."""

    row: StepSummary
    text: bytes
    arguments: Reference | None
    payloads: set[Reference]
    """Of all that is searched."""

    @classmethod
    def of(cls, row: StepSummary, text: bytes) -> _Searched:
        fields = Fields(text)
        slices = {name: fields.slice(name) for name in _SEARCHED}
        arguments = payload_references(slices["arguments"] or b"")
        payloads = {name for said in slices.values() if said for name in payload_references(said)}
        return cls(row=row, text=text, arguments=next(iter(arguments), None), payloads=payloads)


def _words(each: _Searched) -> Iterator[str]:
    """What of a step is no payload: its name, and its error."""
    yield each.row.name
    try:
        error = read_error(Fields(each.text), "error")
    except RecordError:
        return
    if error is not None:
        yield from (text for text in (error.type, error.message) if text)
        yield from _texts(error.extra)


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
