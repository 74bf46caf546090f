"""Steps for pages: a part of a long run at a time, and always the same number of queries."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile

from sessions_app import models
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native_steps import read_step
from sessions_app.core.history import History
from sessions_app.core.packed_nodes import NumberedLink, Reference, name_of
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.run import Step
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.content_keys import answered
from sessions_app.mapping.contents_by_key import contents_by_key
from sessions_app.mapping.pieces import step_texts
from sessions_app.mapping.references import payload_references, read_references
from sessions_app.mapping.run_contents import read_history
from sessions_app.mapping.stored import long_text, reference, text_in
from sessions_app.models.replays import ReplayState

ROWS = 200
MARKS = 2000
"""Failed steps that the ruler draws."""
SAME_CALLS = 100
"""Runs with an equal call are counted up to here."""


@dataclass(frozen=True, kw_only=True)
class GonePayload(Payload):
    """Stands for bytes that are no longer stored; the page that meets one says so and goes on."""

    name: str

    @cached_property
    def digest(self) -> str:
        return self.name


class StoredOrGone:
    """Reads a stored step without its history, which may be longer than everything else together."""

    def __init__(self, contents: dict[Reference, bytes]) -> None:
        self._contents = contents

    def payload(self, slice_: bytes, path: str) -> Payload:
        found, media_type = reference(slice_)
        content = self._contents.get(found)
        if content is None:
            return GonePayload(name=name_of(found), content=b"", media_type=media_type)
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


@dataclass(frozen=True, kw_only=True)
class RowPage:
    """A page of rows; the steps before and after it are named by an index that lies on the page next to it."""

    rows: Sequence[StepSummary]
    before: int | None
    after: int | None
    following: int
    """Rows of the next page."""


def listed_steps(run: models.Run, shown: int, *, without_inner: bool) -> Sequence[StepSummary]:
    """The steps that a list has: all, or those that are no inner ones and the one that is shown beside it."""
    if not without_inner:
        return run.steps
    return [step for step in run.steps if not is_inner(step) or step.index == shown]


def is_inner(step: StepSummary) -> bool:
    """What a framework does between its calls; a failure is never left out of a list."""
    return step.kind == "other" and not step.has_error


def has_outer(run: models.Run) -> bool:
    return first_listed(run) is not None


def row_page(listed: Sequence[StepSummary], index: int) -> RowPage:
    """The page that holds this step, or the one before it in the list."""
    at = max(sum(step.index <= index for step in listed) - 1, 0) // ROWS * ROWS
    rows, following = listed[at : at + ROWS], listed[at + ROWS : at + 2 * ROWS]
    return RowPage(
        rows=rows,
        before=rows[0].index - 1 if at else None,
        after=following[0].index if following else None,
        following=len(following),
    )


def inner_steps(run: models.Run, shown: int) -> dict[int, int | None]:
    """The steps that are left out, each with its parent."""
    return {step.index: step.parent for step in run.steps if is_inner(step) and step.index != shown}


def inner_count(run: models.Run, last: int) -> int:
    """Of the steps up to this one."""
    return sum(is_inner(step) for step in run.steps[:last])


def first_listed(run: models.Run) -> int | None:
    """The first step that is no inner one."""
    return next((step.index for step in run.steps if not is_inner(step)), None)


def neighbours(run: models.Run, index: int, *, without_inner: bool) -> dict[str, int | None]:
    """The steps before and after this one in the list."""
    listed = [step.index for step in run.steps if not without_inner or not is_inner(step)]
    above, below = _around(listed, index)
    return {"step_above": above, "step_below": below}


def followed_by(run: models.Run, row: StepSummary) -> StepSummary | None:
    """What came of it: of a tool's answer the next request of a model, of anything else the next step."""
    later = (step for step in run.steps[row.index :] if row.kind != "tool" or step.kind == "model")
    return next(later, None)


def failed_indices(run: models.Run) -> list[int]:
    return [step.index for step in run.steps if step.has_failed][:MARKS]


def failed_neighbours(run: models.Run, index: int) -> dict[str, int | None]:
    """The failed steps next to this one."""
    above, below = _around([step.index for step in run.steps if step.has_failed], index)
    return {"next_failed": below, "previous_failed": above}


def _around(indices: Sequence[int], index: int) -> tuple[int | None, int | None]:
    """The last one before this, and the first one after it."""
    before, after = bisect_left(indices, index), bisect_right(indices, index)
    return indices[before - 1] if before else None, indices[after] if after < len(indices) else None


def step_body(run: models.Run, row: StepSummary) -> Step:
    """What was recorded of a step, but for its message history. Never fails for payloads that are gone."""
    (text,) = step_texts(run.content, [row])
    stored = StoredOrGone(read_references(run.content, payload_references(text)))
    return read_step(Fields(text), row.index, stored)


def state_details(run: models.Run, until: int) -> list[tuple[int, bytes]]:
    """Index and stored text of the steps that changed the state, in order."""
    changed = [step for step in run.steps[:until] if step.state_changes is not None]
    texts = step_texts(run.content, changed)
    return [(step.index, text) for step, text in zip(changed, texts, strict=True)]


def runs_with_same_call(run: models.Run, row: StepSummary) -> int:
    """Other recorded runs of the project in which an equal call succeeded, counted up to `SAME_CALLS`."""
    if row.kind != "tool" or row.arguments_key is None:
        return 0
    key = answered(row.tool_name or row.name, row.arguments_key)
    runs = models.Run.objects.filter(origin="recorded", content__in=contents_by_key([run.project_id], [key]))
    return len(runs.exclude(pk=run.pk).values_list("pk")[:SAME_CALLS])


def replays_done(run: models.Run, index: int) -> int:
    """Replays of the run that used the answer of a step: they got past it, and did not replace it."""
    done = models.Replay.objects.filter(content=run.content_id, state=ReplayState.DONE)
    read = done.only("order", "verdict", "divergence", "stopped_at")
    return sum(not _replaces(each.order.get("changes") or [], index) and _is_past(each, index) for each in read)


def _is_past(replay: models.Replay, index: int) -> bool:
    """One that differs went on; any other difference is where it stopped."""
    stop = replay.stopped_at or (replay.divergence if replay.verdict != "diverged" else None)
    return not stop or index < (stop.get("step") or 0)


def _replaces(changes: list[JsonObject], index: int) -> bool:
    return any(change.get("kind") == "tool_result" and change.get("step") == index for change in changes)


# --- messages ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A history, oldest first, by its numbers; the messages themselves are read part by part."""

    nodes: tuple[int, ...]
    messages: tuple[Reference, ...]

    def shared_with(self, other: Chain) -> int:
        """How many messages both begin with."""
        pairs = zip(self.nodes, other.nodes, strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(self.nodes), len(other.nodes)))


def chain_of(run: models.Run, head: int | None) -> Chain:
    return chains_of(run, head)[0]


def chains_of(run: models.Run, *heads: int | None) -> list[Chain]:
    """The histories that end in these nodes, as far as they are still stored."""
    links = read_history(run.content, heads)
    return [_chain(head, links) for head in heads]


def _chain(head: int | None, links: Mapping[int, NumberedLink]) -> Chain:
    nodes = [*_back_from(head, links)][::-1]
    return Chain(nodes=tuple(nodes), messages=tuple(links[node][1] for node in nodes))


def _back_from(head: int | None, links: Mapping[int, NumberedLink]) -> Iterator[int]:
    while head is not None and head in links:
        yield head
        head = links[head][0]


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The newest messages of a history, oldest first, back to a node or to a number of them."""

    messages: tuple[Reference, ...]
    has_earlier: bool
    reached_stop: bool
    """Whether the history goes on from the node that was asked for."""
    was_cut: bool
    """There may be more messages before the node was reached."""


def tail_of(run: models.Run, head: int, *, stop: int | None, limit: int) -> Tail:
    links = read_history(run.content, [head])
    tail = [*islice(takewhile(lambda node: node != stop, _back_from(head, links)), limit)]
    before = links[tail[-1]][0] if tail else head
    return Tail(
        messages=tuple(links[node][1] for node in reversed(tail)),
        has_earlier=before is not None,
        reached_stop=before is not None and before == stop,
        was_cut=before is not None and before != stop,
    )


def request_before(run: models.Run, index: int) -> int | None:
    """The last message of the previous request to the model."""
    nodes = (step.input_node for step in reversed(run.steps[: index - 1]) if step.kind == "model")
    return next((node for node in nodes if node is not None), None)


def read_messages(run: models.Run, references: Iterable[Reference]) -> list[Payload]:
    """In the order asked for; queries as `read_references` says."""
    wanted = list(references)
    contents = read_references(run.content, wanted)
    return [
        Payload(content=contents[each]) if each in contents else GonePayload(name=name_of(each), content=b"")
        for each in wanted
    ]


def requests(run: models.Run, index: int) -> tuple[StepSummary | None, StepSummary | None, StepSummary | None]:
    """The model step at or before this one (or the first), the one before it, and the one after it."""
    model_steps = [step for step in run.steps if step.kind == "model"]
    at = max(sum(step.index <= index for step in model_steps) - 1, 0)
    before, here, after = [None, *model_steps, None, None][at : at + 3]
    return here, before, after
