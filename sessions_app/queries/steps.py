"""Steps for pages: a part of a long run at a time, and always the same number of queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile

from django.db.models import Max

from sessions_app import models
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native_steps import read_step
from sessions_app.core.history import History, Link
from sessions_app.core.payload import Payload
from sessions_app.core.run import Step
from sessions_app.mapping import payloads
from sessions_app.mapping.details import details, details_of
from sessions_app.mapping.references import payload_references
from sessions_app.mapping.run_contents import Digest, hex_of, read_history
from sessions_app.mapping.stored import long_text, reference, text_in
from sessions_app.models.replays import ReplayState

ROWS = 200
MARKS = 2000
"""Failed steps that the ruler draws."""
SAME_CALLS = 100
"""Equal calls elsewhere are counted up to here."""


@dataclass(frozen=True, kw_only=True)
class GonePayload(Payload):
    """Stands for bytes that are no longer stored; the page that meets one says so and goes on."""

    name: str

    @cached_property
    def digest(self) -> str:
        return self.name


class StoredOrGone:
    """Reads a stored step without its history, which may be longer than everything else together."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self._contents = contents

    def payload(self, slice_: bytes, path: str) -> Payload:
        digest, media_type = reference(slice_)
        content = self._contents.get(digest)
        if content is None:
            return GonePayload(name=digest, content=b"", media_type=media_type)
        return Payload(content=content, media_type=media_type)

    def text(self, fields: Fields, name: str) -> str | None:
        """None, which is "not captured", for one that is gone."""
        slice_ = long_text(fields, name)
        if slice_ is None:
            return fields.text(name)
        payload = self.payload(slice_, fields.at(name))
        return None if isinstance(payload, GonePayload) else text_in(payload)

    def shared(self, table: str, slice_: bytes, path: str) -> Payload:
        return self.payload(slice_, path)

    def history(self, slice_: bytes | None, path: str) -> History | None:
        return None

    def step_read(self, step: Step) -> None:
        """Nothing to remember."""


def last_index(run: models.Run) -> int:
    """How many steps the run has, those of kind `other` included."""
    return run.steps.aggregate(last=Max("index"))["last"] or 0


def rows_around(run: models.Run, index: int) -> list[models.Step]:
    """The page of rows that holds this step."""
    first = (max(index, 1) - 1) // ROWS * ROWS + 1
    rows = run.steps.filter(index__gte=first, index__lt=first + ROWS)
    return list(rows.order_by("index"))


@dataclass(frozen=True, kw_only=True)
class RowPage:
    """A page of rows; the steps before and after it are named by an index that lies on the page next to it."""

    rows: list[models.Step]
    before: int | None
    after: int | None
    following: int
    """Rows of the next page."""


def row_page(run: models.Run, index: int, last: int) -> RowPage:
    rows = rows_around(run, index)
    first, end = rows[0].index, rows[-1].index
    return RowPage(
        rows=rows,
        before=first - 1 if first > 1 else None,
        after=end + 1 if end < last else None,
        following=min(ROWS, last - end),
    )


def row_page_without_inner(run: models.Run, index: int, shown: int) -> RowPage:
    """As `row_page`, of the steps that are not of kind `other`, and of the step that is shown beside the list."""
    listed = run.steps.exclude(kind="other") | run.steps.filter(index=shown)
    at = max(listed.filter(index__lte=index).count() - 1, 0) // ROWS * ROWS
    rows = list(listed.order_by("index")[at : at + ROWS])
    following = list(listed.order_by("index").values_list("index", flat=True)[at + ROWS : at + 2 * ROWS])
    return RowPage(
        rows=rows,
        before=rows[0].index - 1 if at else None,
        after=following[0] if following else None,
        following=len(following),
    )


def inner_steps(run: models.Run, shown: int) -> dict[int, int | None]:
    """The steps that are left out, each with its parent."""
    return dict(run.steps.filter(kind="other").exclude(index=shown).values_list("index", "parent"))


def inner_count(run: models.Run) -> int:
    return run.steps.filter(kind="other").count()


def first_listed(run: models.Run) -> int | None:
    """The first step that is not of kind `other`."""
    return run.steps.exclude(kind="other").order_by("index").values_list("index", flat=True).first()


def neighbours(run: models.Run, index: int, last: int, *, without_inner: bool) -> dict[str, int | None]:
    """The steps before and after this one in the list."""
    if not without_inner:
        return {"step_above": index - 1 if index > 1 else None, "step_below": index + 1 if index < last else None}
    listed = run.steps.exclude(kind="other").values_list("index", flat=True)
    return {
        "step_above": listed.filter(index__lt=index).order_by("-index").first(),
        "step_below": listed.filter(index__gt=index).order_by("index").first(),
    }


def failed_indices(run: models.Run) -> list[int]:
    return list(run.steps.filter(has_error=True).order_by("index").values_list("index", flat=True)[:MARKS])


def failed_neighbours(run: models.Run, index: int) -> dict[str, int | None]:
    """The failed steps next to this one."""
    failed = run.steps.filter(has_error=True).values_list("index", flat=True)
    return {
        "next_failed": failed.filter(index__gt=index).order_by("index").first(),
        "previous_failed": failed.filter(index__lt=index).order_by("-index").first(),
    }


def step_row(run: models.Run, index: int) -> models.Step | None:
    return run.steps.filter(index=index).first()


def step_body(row: models.Step, project_id: int) -> Step:
    """What was recorded of a step, but for its message history. Never fails for payloads that are gone."""
    (text,) = details_of([row])
    contents = payloads.read_many(project_id, payload_references(text))
    return read_step(Fields(text), row.index, StoredOrGone(contents))


def state_details(run: models.Run, until: int) -> list[tuple[int, bytes]]:
    """Index and stored text of the steps that changed the state, in order."""
    changed = run.steps.filter(index__lte=until, state_changes__isnull=False)
    return details(changed.order_by("index"))


def same_calls(row: models.Step, project_id: int) -> int:
    """Equal calls in other recorded runs of the project, counted up to `SAME_CALLS`."""
    if row.arguments_key is None:
        return 0
    same = models.Step.objects.filter(
        content__run__project_id=project_id,
        content__run__origin="recorded",
        arguments_key=row.arguments_key,
        name=row.name,
    ).exclude(content_id=row.content_id)
    return len(same.values_list("index")[:SAME_CALLS])


def replays_done(row: models.Step) -> int:
    """Replays of the step's run that came to their end, and so could use its answer."""
    return models.Replay.objects.filter(content_id=row.content_id, state=ReplayState.DONE).count()


# --- messages ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The digests of a history, oldest first; the messages themselves are read part by part."""

    nodes: tuple[str, ...]
    messages: tuple[str, ...]

    def shared_with(self, other: Chain) -> int:
        """How many messages both begin with."""
        pairs = zip(self.nodes, other.nodes, strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(self.nodes), len(other.nodes)))


def chain_of(run: models.Run, head: Digest | None) -> Chain:
    return chains_of(run, head)[0]


def chains_of(run: models.Run, *heads: Digest | None) -> list[Chain]:
    """The histories that end in these nodes, as far as they are still stored."""
    ends = list(map(hex_of, heads))
    links = read_history(run.content, ends)
    return [_chain(end, links) for end in ends]


def _chain(head: str | None, links: Mapping[str, Link]) -> Chain:
    nodes = [*_back_from(head, links)][::-1]
    return Chain(nodes=tuple(nodes), messages=tuple(links[node][1] for node in nodes))


def _back_from(head: str | None, links: Mapping[str, Link]) -> Iterator[str]:
    while head is not None and head in links:
        yield head
        head = links[head][0]


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The newest messages of a history, oldest first, back to a node or to a number of them."""

    messages: tuple[str, ...]
    has_earlier: bool
    reached_stop: bool
    """Whether the history goes on from the node that was asked for."""
    was_cut: bool
    """There may be more messages before the node was reached."""


def tail_of(run: models.Run, head: Digest, *, stop: Digest | None, limit: int) -> Tail:
    end, until = hex_of(head), hex_of(stop)
    links = read_history(run.content, [end])
    tail = [*islice(takewhile(lambda node: node != until, _back_from(end, links)), limit)]
    before = links[tail[-1]][0] if tail else end
    return Tail(
        messages=tuple(links[node][1] for node in reversed(tail)),
        has_earlier=before is not None,
        reached_stop=before is not None and before == until,
        was_cut=before is not None and before != until,
    )


def request_before(run: models.Run, index: int) -> bytes | None:
    """The last message of the previous request to the model."""
    rows = run.steps.filter(kind="model", index__lt=index, input_node__isnull=False)
    found = rows.order_by("-index").values_list("input_node", flat=True).first()
    return None if found is None else bytes(found)


def read_messages(project_id: int, digests: Iterable[str]) -> list[Payload]:
    """In the order asked for; one query."""
    wanted = list(digests)
    contents = payloads.read_many(project_id, set(wanted))
    return [
        Payload(content=contents[digest]) if digest in contents else GonePayload(name=digest, content=b"")
        for digest in wanted
    ]


def requests(run: models.Run, index: int) -> tuple[models.Step | None, models.Step | None, models.Step | None]:
    """The model step at or before this one (or the first), the one before it, and the one after it."""
    model_steps = run.steps.filter(kind="model")
    earlier = [*model_steps.filter(index__lte=max(index, 1)).order_by("-index")[:2], None, None]
    later = [*model_steps.filter(index__gt=max(index, 1)).order_by("index")[:2], None, None]
    if earlier[0] is None:
        return later[0], None, later[1]
    return earlier[0], earlier[1], later[0]
