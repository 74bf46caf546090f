"""Rows to runs and steps, in a fixed number of queries whatever the length of the run."""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app import models
from sessions_app.core.errors import HistoryMissing, PayloadMissing
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import read_header
from sessions_app.core.formats.native_steps import read_step
from sessions_app.core.history import History
from sessions_app.core.packed_nodes import NumberedLink, Reference
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import Run, StateChange, Step
from sessions_app.core.state import PatchError, apply_patch, changed_keys
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.pieces import step_texts
from sessions_app.mapping.references import payload_references, read_references
from sessions_app.mapping.run_contents import read_history
from sessions_app.mapping.stored import Lookup, WithoutHistories, reference


def load_run(row: models.Run) -> Run:
    """The whole run as it was stored. Raises `StoredBytesMissing` when bytes are gone."""
    return load_content(row.content)


def load_content(content: models.RunContent) -> Run:
    """The same of what was recorded of a run at one time."""
    texts = step_texts(content, content.steps)
    heads = {content.prior_node, content.final_node}
    heads.update(node for step in content.steps for node in (step.input_node, step.output_node))
    lookup, histories = _fetch(content, [content.intact_header, *texts], heads)
    return read_header(
        header_of(content),
        lookup,
        prior=_at(content.prior_node, histories),
        steps=tuple(read_step(Fields(text), index, lookup) for index, text in enumerate(texts, start=1)),
        final=_at(content.final_node, histories),
    )


def load_step(row: models.Run, index: int) -> Step:
    """One step, which must be there, with its payloads and, for a model call, its history."""
    step = row.steps[index - 1]
    (text,) = step_texts(row.content, [step])
    lookup, _ = _fetch(row.content, [text], {step.input_node, step.output_node})
    return read_step(Fields(text), index, lookup)


States = tuple[JsonValue, JsonValue, list[str]]
"""Input state, output state and what changed, as `+docs −plan`."""


def load_facts(row: models.Run) -> Run:
    """The run without steps and histories; queries as `read_references` says."""
    header = row.content.intact_header
    contents = read_references(row.content, payload_references(header))
    lookup = Lookup(contents, {})
    return read_header(header_of(row.content), lookup, prior=None, steps=(), final=None)


def header_of(content: models.RunContent) -> Fields:
    """Without what says that it is a header: that is no fact of the run, and would be kept as an unknown field."""
    fields = Fields(content.intact_header)
    for name in ("format", "version"):
        fields.slice(name)
    return fields


def load_steps(row: models.Run, *, after: int, limit: int) -> tuple[list[Step], list[States], bool]:
    """A page of steps without their histories, the states around them, and whether it is the last page."""
    texts = step_texts(row.content, row.steps[after : after + limit])
    wanted = {each for text in texts for each in payload_references(text)}
    lookup = WithoutHistories(read_references(row.content, wanted))
    steps = [read_step(Fields(text), index, lookup) for index, text in enumerate(texts, start=after + 1)]
    return steps, _states(row, steps), len(row.steps) <= after + limit


def _states(row: models.Run, steps: list[Step]) -> list[States]:
    """States are kept as changes, so those of a page need all changes before it."""
    if not steps:
        return []
    walk = _StateWalk(initial_state(row))
    for change in _changes_before(row, steps[0].index):
        walk.take(change)
    return [(*walk.take(step.state), changed_keys(step)) for step in steps]


class _StateWalk:
    """The state from step to step; not known any more once a recorded change does not fit it."""

    def __init__(self, state: JsonValue) -> None:
        self._state = state
        self._is_known = True

    def take(self, change: StateChange | None) -> tuple[JsonValue, JsonValue]:
        """The states before and after a step."""
        if change is None:
            return self._state, self._state
        before = self._changed(change.before)
        return before, self._changed(change.after)

    def _changed(self, operations: tuple[JsonObject, ...]) -> JsonValue:
        if self._is_known:
            try:
                self._state = apply_patch({} if self._state is None else self._state, operations)
            except PatchError:
                self._is_known, self._state = False, None
        return self._state


def initial_state(row: models.Run) -> JsonValue:
    """None when none was recorded. Raises `PayloadMissing` when its bytes are gone; one query at most."""
    slice_ = header_of(row.content).slice("initial_state")
    if slice_ is None:
        return None
    return stored_payload(row.content, slice_).value


def stored_payload(content: models.RunContent, slice_: bytes) -> Payload:
    """The payload that a stored header or step refers to with this. Raises `PayloadMissing`."""
    found, media_type = reference(slice_)
    contents = read_references(content, [found])
    if found not in contents:
        raise PayloadMissing(found)
    return Payload(content=contents[found], media_type=media_type)


def steps_with_state(row: models.Run) -> list[StepSummary]:
    """The steps that said something of the state, in order; none of their payloads has to be read for it."""
    return [step for step in row.steps if step.has_state]


def state_change(detail: Fields) -> StateChange | None:
    """What a stored step says of the state."""
    state = detail.child("state")
    if state is None:
        return None
    return StateChange(before=tuple(state.value("before") or ()), after=tuple(state.value("after") or ()))


def _changes_before(row: models.Run, index: int) -> list[StateChange]:
    before = [step for step in steps_with_state(row) if step.index < index]
    changes = (state_change(Fields(text)) for text in step_texts(row.content, before))
    return [change for change in changes if change is not None]


def _fetch(
    content: models.RunContent, texts: list[bytes], heads: Iterable[int | None]
) -> tuple[Lookup, dict[int, History]]:
    links = read_history(content, heads)
    wanted = {each for text in texts for each in payload_references(text)}
    wanted |= {message for _, message in links.values()}
    contents = read_references(content, wanted)
    histories = _histories(links, contents)
    return Lookup(contents, histories), histories


def _at(node: int | None, histories: dict[int, History]) -> History | None:
    if node is not None and node not in histories:
        raise HistoryMissing
    return histories[node] if node is not None else None


def _histories(links: dict[int, NumberedLink], contents: dict[Reference, bytes]) -> dict[int, History]:
    """Without recursion: chains are long, and each link stands behind the one it follows."""
    built: dict[int, History] = {}
    for number, (parent, message) in links.items():
        if parent is not None and parent not in built:
            raise HistoryMissing
        if message not in contents:
            raise PayloadMissing(message)
        built[number] = History(None if parent is None else built[parent], Payload(content=contents[message]))
    return built
