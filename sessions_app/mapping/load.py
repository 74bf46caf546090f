"""Rows to runs and steps, in a fixed number of queries whatever the length of the run."""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app import models
from sessions_app.core.errors import PayloadMissing
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import read_header
from sessions_app.core.formats.native_steps import read_step
from sessions_app.core.history import History, Link
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import Run, StateChange, Step
from sessions_app.core.state import PatchError, apply_patch, changed_keys
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping import payloads
from sessions_app.mapping.details import details
from sessions_app.mapping.references import payload_references
from sessions_app.mapping.run_contents import Digest, hex_of, read_history
from sessions_app.mapping.stored import Lookup, WithoutHistories, reference


def load_run(row: models.Run) -> Run:
    """The whole run as it was stored. Raises `StoredBytesMissing` when bytes are gone."""
    return load_content(row.content)


def load_content(content: models.RunContent) -> Run:
    """The same of what was recorded of a run at one time."""
    texts = details(content, content.steps)
    heads = {content.prior_node, content.final_node}
    heads.update(node for step in content.steps for node in (step.input_node, step.output_node))
    lookup, histories = _fetch(content, [bytes(content.header), *texts], heads)
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
    (text,) = details(row.content, [step])
    lookup, _ = _fetch(row.content, [text], {step.input_node, step.output_node})
    return read_step(Fields(text), index, lookup)


States = tuple[JsonValue, JsonValue, list[str]]
"""Input state, output state and what changed, as `+docs −plan`."""


def load_facts(row: models.Run) -> Run:
    """The run without steps and histories: one query."""
    header = bytes(row.content.header)
    contents = payloads.read_many(row.project_id, payload_references(header))
    lookup = Lookup(contents, {})
    return read_header(header_of(row.content), lookup, prior=None, steps=(), final=None)


def header_of(content: models.RunContent) -> Fields:
    """Without what says that it is a header: that is no fact of the run, and would be kept as an unknown field."""
    fields = Fields(bytes(content.header))
    for name in ("format", "version"):
        fields.slice(name)
    return fields


def load_steps(row: models.Run, *, after: int, limit: int) -> tuple[list[Step], list[States], bool]:
    """A page of steps without their histories, the states around them, and whether it is the last page."""
    texts = details(row.content, row.steps[after : after + limit])
    wanted = {digest for text in texts for digest in payload_references(text)}
    lookup = WithoutHistories(payloads.read_many(row.project_id, wanted))
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
    digest, media_type = reference(slice_)
    return Payload(content=payloads.read(row.project_id, digest), media_type=media_type).value


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
    changes = (state_change(Fields(text)) for text in details(row.content, before))
    return [change for change in changes if change is not None]


def _fetch(
    content: models.RunContent, texts: list[bytes], heads: Iterable[Digest | None]
) -> tuple[Lookup, dict[str, History]]:
    chain = read_history(content, map(hex_of, heads))
    wanted = {digest for text in texts for digest in payload_references(text)}
    wanted |= {message for _, message in chain.values()}
    contents = payloads.read_many(content.project_id, wanted)
    histories = _histories(chain, contents)
    return Lookup(contents, histories), histories


def _at(node: Digest | None, histories: dict[str, History]) -> History | None:
    digest = hex_of(node)
    if digest is not None and digest not in histories:
        raise PayloadMissing(digest)
    return histories[digest] if digest is not None else None


def _histories(chain: dict[str, Link], contents: dict[str, bytes]) -> dict[str, History]:
    """Builds each node after its parent, without recursion: chains are long."""
    built: dict[str, History] = {}
    for digest in chain:
        path: list[str] = []
        at: str | None = digest
        while at is not None and at not in built:
            if at not in chain:
                raise PayloadMissing(at)
            path.append(at)
            at = chain[at][0]
        for node in reversed(path):
            parent, message = chain[node]
            built[node] = _node(built[parent] if parent else None, message, contents)
    return built


def _node(parent: History | None, message: str, contents: dict[str, bytes]) -> History:
    if message not in contents:
        raise PayloadMissing(message)
    return History(parent, Payload(content=contents[message]))
