"""Recorded answers that a fork may borrow: of other recorded runs of the same project.

Forks and replays lend nothing: what a person, a rule or the team's code gave there was not recorded, and what a live
model or a live tool said is a sample. Each function asks a fixed number of queries. Newest means the run that was
stored last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db.models import QuerySet

from sessions_app import models
from sessions_app.core.compare.json_diff import differences
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native_steps import read_step
from sessions_app.core.packed_nodes import Reference
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.fixture_book import is_same_call, recorded_arguments
from sessions_app.core.run import ErrorInfo, ModelCall, Step, ToolCall, is_answered_by_tool
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.content_keys import answered, is_answer, is_response, requested
from sessions_app.mapping.contents_by_key import contents_by_key
from sessions_app.mapping.pieces import open_pieces, step_texts
from sessions_app.mapping.references import payload_references, read_references_of
from sessions_app.mapping.rows import clean, value_key
from sessions_app.mapping.stored import reference
from sessions_app.queries.steps import GonePayload, StoredOrGone

CANDIDATES = 5
"""Runs with an equal step that are looked at, newest first: the bytes of an answer may be gone."""
NEAR_CALLS = 200
"""Calls of the same run, and of other runs, among which the nearest are looked for."""
NEAR_RUNS = 100
_PATHS = 50
"""Differing arguments that are told of a call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Borrowed:
    """Where an answer was recorded."""

    run_id: str
    session_id: str
    step: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BorrowedModelAnswer(Borrowed):
    """`response` is the answer message as JSON text."""

    response: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BorrowedToolAnswer(Borrowed):
    """The recorded call with its result, outcome, metadata and content."""

    call: ToolCall
    error: ErrorInfo | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Nearest(Borrowed):
    """A recorded call of the same tool with other arguments."""

    arguments: JsonValue
    differs: list[str]
    """Paths such as `args.user_id`, at most 50; empty for equal arguments."""
    is_same_run: bool

    def to_json(self) -> JsonObject:
        return {
            "run_id": self.run_id,
            "session_id": self.session_id,
            "step": self.step,
            "arguments": self.arguments,
            "differs": self.differs,
            "is_same_run": self.is_same_run,
        }


def model_answer(project_id: int, key: bytes, *, not_in: Collection[int]) -> BorrowedModelAnswer | None:
    """The newest answer to an equal request. `not_in` holds primary keys of runs; four queries."""
    equal = [
        (run, step)
        for run, step in _lent(_holders(project_id, requested(key), not_in))
        if step.request_key == key and is_response(step)
    ]
    for (run, row), step in _read(equal[:CANDIDATES]):
        response = step.call.response if isinstance(step.call, ModelCall) else None
        if response is not None and response.is_json and not _is_gone(response):
            return BorrowedModelAnswer(**_place(run, row), response=response.as_text())
    return None


def tool_answer(
    project_id: int, tool_name: str, arguments: JsonValue, *, not_in: Collection[int]
) -> BorrowedToolAnswer | None:
    """The newest success of the same tool with these arguments, to the letter. `not_in` holds primary keys of runs;
    four queries."""
    arguments_key = value_key(Payload.of_json(recorded_arguments(Payload.of_json(arguments))))
    if arguments_key is None:
        return None
    holders = _holders(project_id, answered(clean(tool_name), arguments_key), not_in)
    equal = [
        (run, step)
        for run, step in _calls_of(tool_name, _lent(holders))
        if step.arguments_key == arguments_key and is_answer(step)
    ]
    for (run, row), step in _read(equal[:CANDIDATES]):
        call = step.call
        if not isinstance(call, ToolCall) or call.tool_name != tool_name or _is_gone(call.arguments):
            continue
        if is_same_call(call, arguments) and _has_answer(call):
            return BorrowedToolAnswer(**_place(run, row), call=call, error=step.error)
    return None


def nearest_calls(
    project_id: int, run: models.Run, tool_name: str, arguments: JsonValue, *, limit: int = 3
) -> list[Nearest]:
    """Answered calls of the tool, those with the fewest differing arguments first; of equally near ones those of the
    same run, then the newest. Equal calls with equal answers are told once. Three queries, four for a fork."""
    own = (
        [(run, step) for step in run.steps if step.source in ("recorded", "live")]
        if run.project_id == project_id
        else []
    )
    calls = [*_answered_calls(tool_name, own), *_answered_calls(tool_name, _lent(_callers(project_id, run, tool_name)))]
    asked = recorded_arguments(Payload.of_json(arguments))
    found = [
        Nearest(**_place(*found), arguments=args, differs=_paths(args, asked), is_same_run=found[0].pk == run.pk)
        for found, args in _with_arguments(_distinct(_named(tool_name, calls)))
    ]
    return sorted(found, key=lambda near: (len(near.differs), not near.is_same_run))[:limit]


# --- which steps -------------------------------------------------------------------------------

_Found = tuple[models.Run, StepSummary]
"""A step and the run that it stands in."""


def _holders(project_id: int, key: int, not_in: Collection[int]) -> QuerySet[models.Run]:
    """The newest recorded runs with a step of this key."""
    runs = models.Run.objects.filter(content__in=contents_by_key([project_id], [key]), origin="recorded")
    return _read_for_steps(runs.exclude(pk__in=not_in))[:CANDIDATES]


def _callers(project_id: int, run: models.Run, tool_name: str) -> QuerySet[models.Run]:
    """The newest other recorded runs that called the tool."""
    named = [clean(tool_name)[:512]]
    runs = models.Run.objects.filter(project_id=project_id, tool_names__contains=named, origin="recorded")
    return _read_for_steps(runs.exclude(pk=run.pk))[:NEAR_RUNS]


def _read_for_steps(runs: QuerySet[models.Run]) -> QuerySet[models.Run]:
    """Newest first, with no more than what saying where their steps stand needs."""
    of_contents = ("content__project", "content__outline", "content__base", "content__base_steps")
    shown = runs.select_related("content", "session").only("run_id", "origin", "session__session_id", *of_contents)
    return shown.order_by("-pk")


def _lent(runs: Iterable[models.Run]) -> Iterator[_Found]:
    """Of each run the last step first."""
    for run in runs:
        for step in reversed(run.content.own_steps):
            if step.source == "recorded":
                yield run, step


def _calls_of(tool_name: str, steps: Iterable[_Found]) -> Iterator[_Found]:
    """Nearly: whoever reads them looks at the exact name."""
    name = clean(tool_name)
    return ((run, step) for run, step in steps if step.kind == "tool" and (step.tool_name or step.name) == name)


def _answered_calls(tool_name: str, steps: Iterable[_Found]) -> Iterator[_Found]:
    calls = _calls_of(tool_name, steps)
    return islice((c for c in calls if c[1].result_key is not None or c[1].outcome == "crashed"), NEAR_CALLS)


_Call = tuple[_Found, bytes]
"""A step, and its text."""


def _texts(found: Sequence[_Found]) -> list[bytes]:
    open_pieces((run.content, step.text) for run, step in found)
    return [step_texts(run.content, [step])[0] for run, step in found]


def _named(tool_name: str, found: Sequence[_Found]) -> list[_Call]:
    read = zip(found, _texts(found), strict=True)
    return [(call, text) for call, text in read if Fields(text).text("tool_name") == tool_name]


def _distinct(calls: Sequence[_Call]) -> list[_Call]:
    first: dict[tuple[bytes | None, ...], _Call] = {}
    for (run, step), text in calls:
        first.setdefault((step.arguments_key, step.result_key), ((run, step), text))
    return list(first.values())


# --- reading them ------------------------------------------------------------------------------


def _read(found: Sequence[_Found]) -> Iterator[tuple[_Found, Step]]:
    texts = _texts(found)
    read = _read_all([(run.content, payload_references(text)) for (run, _), text in zip(found, texts, strict=True)])
    for each, text, stored in zip(found, texts, read, strict=True):
        yield each, read_step(Fields(text), each[1].index, stored)


def _with_arguments(calls: Sequence[_Call]) -> list[tuple[_Found, JsonValue]]:
    """Without their results, which may be long; those whose arguments are gone are left out."""
    slices = [(found, Fields(text).written("arguments")) for found, text in calls]
    stored = _read_all([(run.content, _named_in(slice_)) for (run, _), slice_ in slices])
    read = [
        (found, None if slice_ is None else each.payload(slice_, "arguments"))
        for (found, slice_), each in zip(slices, stored, strict=True)
    ]
    return [(found, recorded_arguments(args)) for found, args in read if not _is_gone(args)]


def _named_in(slice_: bytes | None) -> set[Reference]:
    return set() if slice_ is None else {reference(slice_)[0]}


def _read_all(wanted: Sequence[tuple[models.RunContent, set[Reference]]]) -> list[StoredOrGone]:
    return [StoredOrGone(contents) for contents in read_references_of(wanted)]


def _place(run: models.Run, step: StepSummary) -> JsonObject:
    return {"run_id": run.run_id, "session_id": run.session.session_id, "step": step.index}


def _is_gone(payload: Payload | None) -> bool:
    return isinstance(payload, GonePayload)


def _has_answer(call: ToolCall) -> bool:
    return not any(map(_is_gone, (call.result, call.metadata, call.content))) and is_answered_by_tool(call)


def _paths(recorded: JsonValue, asked: JsonValue) -> list[str]:
    return [found.path for found in islice(differences(recorded, asked, path="args"), _PATHS)]
