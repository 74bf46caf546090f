"""Recorded answers that a fork may borrow: of other runs of the same project, and only what a model or a tool said.

An answer that a person, a rule or the team's code gave in a fork is never lent. Each function asks a fixed number of
queries. Newest means the run that was stored last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db.models import F, Q, QuerySet

from sessions_app import models
from sessions_app.core.compare.json_diff import differences
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native_steps import read_step
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.run import ErrorInfo, ModelCall, Step, ToolCall, is_answered_by_tool
from sessions_app.mapping import payloads
from sessions_app.mapping.details import details_of
from sessions_app.mapping.references import payload_references
from sessions_app.mapping.rows import clean
from sessions_app.mapping.stored import reference
from sessions_app.queries.steps import GonePayload, StoredOrGone

CANDIDATES = 5
"""Equal steps that are looked at, newest first: the bytes of an answer may be gone, or no answer at all."""
NEAR_CALLS = 200
"""Calls of the same run, and of other runs, among which the nearest are looked for."""
NEAR_RUNS = 100
_PATHS = 50
"""Differing arguments that are told of a call."""
_LENT = Q(source="live") | Q(source="recorded", content__run__origin="recorded")
"""What a fork repeats of its parent is the parent's to lend."""


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
    """The newest answer to an equal request. `not_in` holds primary keys of runs; three queries."""
    asked = _lent(project_id, not_in).filter(kind="model", request_key=key, has_error=False)
    for row, step in _read(project_id, asked.exclude(output_node=F("input_node"))[:CANDIDATES]):
        response = step.call.response if isinstance(step.call, ModelCall) else None
        if response is not None and response.is_json and not _is_gone(response):
            return BorrowedModelAnswer(**_place(row), response=response.as_text())
    return None


def tool_answer(
    project_id: int, tool_name: str, arguments_key: bytes, *, not_in: Collection[int]
) -> BorrowedToolAnswer | None:
    """The newest success of the same tool with equal arguments. `arguments_key` is what `mapping.rows.value_key`
    gives, `not_in` holds primary keys of runs; three queries."""
    called = _calls_of(tool_name, _lent(project_id, not_in)).filter(arguments_key=arguments_key, has_error=False)
    answered = called.filter(Q(outcome="success") | Q(outcome=None), result_key__isnull=False)
    for row, step in _read(project_id, answered[:CANDIDATES]):
        call = step.call
        if isinstance(call, ToolCall) and call.tool_name == tool_name and _has_answer(call):
            return BorrowedToolAnswer(**_place(row), call=call, error=step.error)
    return None


def nearest_calls(
    project_id: int, run: models.Run, tool_name: str, arguments: JsonValue, *, limit: int = 3
) -> list[Nearest]:
    """Answered calls of the tool, those with the fewest differing arguments first; of equally near ones those of the
    same run, then the newest. Equal calls with equal answers are told once. Four queries."""
    rows = [*_own_calls(project_id, run, tool_name), *_calls_elsewhere(project_id, run, tool_name)]
    asked = recorded_arguments(Payload.of_json(arguments))
    found = [
        Nearest(**_place(row), arguments=args, differs=_paths(args, asked), is_same_run=row.content.run.pk == run.pk)
        for row, args in _with_arguments(project_id, _distinct(_named(tool_name, rows)))
    ]
    return sorted(found, key=lambda near: (len(near.differs), not near.is_same_run))[:limit]


# --- which steps -------------------------------------------------------------------------------


def _lent(project_id: int, not_in: Collection[int]) -> QuerySet[models.Step]:
    """Newest first."""
    lent = models.Step.objects.filter(_LENT, content__run__project_id=project_id).exclude(content__run__in=not_in)
    return _placed(lent.order_by("-content__run", "-index"))


def _placed(steps: QuerySet[models.Step]) -> QuerySet[models.Step]:
    """With no more than what reading them and saying where they stand needs."""
    of_steps = ("content", "index", "arguments_key", "result_key")
    of_runs = ("content__run__run_id", "content__run__session__session_id")
    return steps.select_related("content__run__session").only(*of_steps, *of_runs)


def _calls_of(tool_name: str, steps: QuerySet[models.Step]) -> QuerySet[models.Step]:
    """Nearly: whoever reads them looks at the exact name."""
    name = clean(tool_name)
    return steps.filter(Q(tool_name=name) | Q(tool_name=None, name=name), kind="tool")


def _own_calls(project_id: int, run: models.Run, tool_name: str) -> list[models.Step]:
    own = run.steps.filter(content__project_id=project_id, source__in=("recorded", "live"))
    return _answered_calls(_placed(own.order_by("index")), tool_name)


def _calls_elsewhere(project_id: int, run: models.Run, tool_name: str) -> list[models.Step]:
    holders = models.Run.objects.filter(project_id=project_id, tool_names__contains=[clean(tool_name)[:512]])
    newest = holders.exclude(pk=run.pk).order_by("-pk").values("pk")[:NEAR_RUNS]
    return _answered_calls(_lent(project_id, [run.pk]).filter(content__run__in=newest), tool_name)


def _answered_calls(steps: QuerySet[models.Step], tool_name: str) -> list[models.Step]:
    answered = Q(result_key__isnull=False) | Q(outcome="crashed")
    return list(_calls_of(tool_name, steps).filter(answered)[:NEAR_CALLS])


_Call = tuple[models.Step, bytes]
"""The row of a step, and its text."""


def _named(tool_name: str, rows: Sequence[models.Step]) -> list[_Call]:
    read = zip(rows, details_of(rows), strict=True)
    return [(row, text) for row, text in read if Fields(text).text("tool_name") == tool_name]


def _distinct(calls: Sequence[_Call]) -> list[_Call]:
    first: dict[tuple[bytes | None, ...], _Call] = {}
    for row, text in calls:
        first.setdefault(_said(row), (row, text))
    return list(first.values())


def _said(row: models.Step) -> tuple[bytes | None, ...]:
    keys = (row.arguments_key, row.result_key)
    return tuple(None if key is None else bytes(key) for key in keys)


# --- reading them ------------------------------------------------------------------------------


def _read(project_id: int, found: QuerySet[models.Step]) -> Iterator[tuple[models.Step, Step]]:
    rows = list(found)
    texts = details_of(rows)
    wanted = {digest for text in texts for digest in payload_references(text)}
    stored = StoredOrGone(payloads.read_many(project_id, wanted))
    for row, text in zip(rows, texts, strict=True):
        yield row, read_step(Fields(text), row.index, stored)


def _with_arguments(project_id: int, calls: Sequence[_Call]) -> list[tuple[models.Step, JsonValue]]:
    """Without their results, which may be long; those whose arguments are gone are left out."""
    slices = [(row, Fields(text).written("arguments")) for row, text in calls]
    wanted = {reference(slice_)[0] for _, slice_ in slices if slice_ is not None}
    stored = StoredOrGone(payloads.read_many(project_id, wanted))
    read = [(row, None if slice_ is None else stored.payload(slice_, "arguments")) for row, slice_ in slices]
    return [(row, recorded_arguments(args)) for row, args in read if not _is_gone(args)]


def _place(row: models.Step) -> JsonObject:
    run = row.content.run
    return {"run_id": run.run_id, "session_id": run.session.session_id, "step": row.index}


def _is_gone(payload: Payload | None) -> bool:
    return isinstance(payload, GonePayload)


def _has_answer(call: ToolCall) -> bool:
    return not any(map(_is_gone, (call.result, call.metadata, call.content))) and is_answered_by_tool(call)


def _paths(recorded: JsonValue, asked: JsonValue) -> list[str]:
    return [found.path for found in islice(differences(recorded, asked, path="args"), _PATHS)]
