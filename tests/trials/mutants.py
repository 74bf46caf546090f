"""A mutant is a recording with one thing changed, and what must be said of it.

What must be said comes from the meaning of the record alone: from what a replay makes anew (requests, calls of tools,
the outcome) and from what it is given (answers of models and tools, prompts).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.trials.reading_records import Json, RecordReader

Noticed = Literal["replay", "judge", "comparison", "nobody", "anybody", "undecided"]
"""Who must notice it.

- `replay`: the record contradicts itself, and a replay finds out.
- `judge`: the verdict at ingest says so already.
- `comparison`: the record is whole; only beside the original it is another one.
- `nobody`: there is no difference.
- `anybody`: a difference or none, as long as the replay ends as the judge said.
- `undecided`: only code that is not there could tell whether the record contradicts itself.

Whatever it is, what is reproduced must not differ from its replay when the two are compared.
"""


@dataclass(frozen=True)
class Place:
    """Where a difference is first. `steps` of the mutant; of `paths` one is the beginning; empty means any."""

    steps: frozenset[int] = frozenset()
    paths: tuple[str, ...] = ()
    otherwise: Place | None = None
    """Just as good."""

    def holds(self, step: int | None, path: str | None) -> bool:
        in_step = not self.steps or step in self.steps
        is_here = in_step and (not self.paths or (path or "").startswith(self.paths))
        return is_here or (self.otherwise is not None and self.otherwise.holds(step, path))

    def __or__(self, other: Place) -> Place:
        return replace(self, otherwise=other if self.otherwise is None else self.otherwise | other)

    def __str__(self) -> str:
        steps = f"step {' or '.join(map(str, sorted(self.steps)))}" if self.steps else "any step"
        here = f"{steps}, {' or '.join(self.paths) or 'any path'}"
        return f"{here}; or {self.otherwise}" if self.otherwise else here


def at(*steps: int, paths: tuple[str, ...] | str = ()) -> Place:
    return Place(frozenset(steps), (paths,) if isinstance(paths, str) else paths)


@dataclass(frozen=True, kw_only=True)
class Expected:
    by: Noticed
    place: Place = Place()
    """Of the replay's divergence."""
    compared: Place | None = None
    """Of the first difference between the original and the mutant; None when there is none."""
    is_comparable: bool = True
    """False where nothing is asked of that comparison."""
    verdicts: frozenset[str] = frozenset()
    """Of the judge; empty for any."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    kind: str
    what: str
    content: bytes
    expected: Expected
    run: str = field(default="")


Change = Callable[[RecordReader], object]
"""Changes the record that it is given."""
Maker = Callable[[Json], Iterator[tuple[str, Json, Expected]]]


@dataclass(frozen=True)
class Kind:
    name: str
    make: Maker

    def mutants(self, record: Json, run: str) -> Iterator[Mutant]:
        for what, changed, expected in self.make(record):
            content = json.dumps(changed, ensure_ascii=False).encode()
            yield Mutant(kind=self.name, what=what, content=content, expected=expected, run=run)


KINDS: list[Kind] = []
"""Of a record in our own format."""
SAVED_KINDS: list[Kind] = []
"""Of what short scripts save."""


def kind(name: str) -> Callable[[Maker], Maker]:
    """A maker of mutants of that kind."""

    def put(make: Maker) -> Maker:
        KINDS.append(Kind(name, make))
        return make

    return put


def changed(record: Json, change: Change) -> Json:
    """A copy of the record with one thing changed."""
    copy = RecordReader(record)
    change(copy)
    return copy.record
