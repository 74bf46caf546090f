"""Whether a fork fits the run that it is to be made of. Every error names the field of the order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from sessions_app import models
from sessions_app.core.fork.changes import (
    Change,
    ForkError,
    NewDecision,
    NewInstructions,
    NewMessage,
    NewModel,
    NewModelAnswer,
    NewState,
    NewToolResult,
    Rule,
)
from sessions_app.core.fork.decisions import is_held_back
from sessions_app.core.fork.order import Order
from sessions_app.core.payload import JsonValue, compact_json
from sessions_app.core.registrations import IGNORES_STATE
from sessions_app.core.run import (
    ATTEMPT,
    ModelCall,
    Run,
    ToolCall,
    is_answered_by_tool,
    main_steps,
)
from sessions_app.core.state import PatchError, apply_patch
from sessions_app.mapping.load import load_step, load_steps
from sessions_app.models.replays import ReplayMode
from sessions_app.queries.decisions import decision_on
from sessions_app.queries.run_shapes import shape_of
from sessions_app.queries.steps import chain_of
from sessions_app.services.registered_agents import ignores_state

_SHOWN_STEPS = 10
_MAX_STATE_BYTES = 64 * 1024 * 1024
_Stepped = TypeVar("_Stepped", NewDecision, NewMessage, NewModelAnswer, NewState, NewToolResult)


class Parent:
    """The run that is to be forked, read as far as the checks need it."""

    def __init__(self, row: models.Run) -> None:
        self.row = row

    @cached_property
    def kinds(self) -> dict[int, str]:
        """Kind by index of every step."""
        return {step.index: step.kind for step in self._skeleton.steps}

    @cached_property
    def main(self) -> set[int]:
        """Indices of the steps of the agent's own loop."""
        return {step.index for step in main_steps(self._skeleton)}

    def decision_on(self, index: int) -> JsonValue:
        """What was decided on the call of this step, when the run was continued or while it went on."""
        return decision_on(self.row, index)

    def is_attempt(self, index: int) -> bool:
        """Whether this step failed and was made again outside of the loop, which was told of the last one alone."""
        step = self.row.steps[index - 1]
        if self.kinds[index] == "tool":
            return ATTEMPT in load_step(self.row, index).extra
        requests = [each for each in self.row.steps if each.index in self.main and each.kind == "model"]
        again = next((each for each in requests if each.index > index), None)
        has_failed = step.has_error and step.result_key is None and step.input_node is not None
        return has_failed and again is not None and again.input_node == step.input_node

    @cached_property
    def _skeleton(self) -> Run:
        return shape_of(self.row)

    def begins_with_request(self, at_step: int) -> bool:
        """Whether the next step of the loop from here on is a request to the model."""
        following = (self.kinds[index] for index in sorted(self.main) if index >= at_step)
        return next((kind for kind in following if kind in ("model", "tool")), None) == "model"

    @property
    def request_steps(self) -> str:
        """Those at which a request to the model was made; of many the first few."""
        steps = [str(index) for index in sorted(self.main) if self.kinds[index] == "model"]
        return ", ".join([*steps[:_SHOWN_STEPS], *(["…"] if len(steps) > _SHOWN_STEPS else [])])

    def has_model_answers(self) -> bool:
        return any(step.kind == "model" and step.result_key is not None for step in self.row.steps)


def check_fork(row: models.Run, order: Order, mode: str) -> None:
    """Raises `ForkError`, and `PayloadMissing` when bytes of a step that is to be changed are gone."""
    parent = Parent(row)
    if not parent.has_model_answers():
        raise ForkError("The run holds no model answer, so it cannot be continued.", field="run_id")
    at_step = _check_step(parent, order, mode)
    _check_expectation(order, mode)
    if mode == ReplayMode.RESUME and order.changes:
        raise ForkError("A run that is resumed has no changes; ask for a fork.", field="changes")
    if mode == ReplayMode.FORK and not order.changes:
        raise ForkError("A fork needs at least one change.", field="changes")
    _check_doubles(order.changes)
    _check_beside_decisions(order.changes)
    for position, change in enumerate(order.changes):
        if order.agent is not None and isinstance(change, NewInstructions | NewMessage | NewModel):
            words = "The team's own code decides what it sends to its model; change that in the code"
            raise ForkError(f"{words}.", field=f"changes[{position}]")
        if type(change) in _CHECKS:
            _check_change(parent, change, at_step, f"changes[{position}]")
        if isinstance(change, NewState):
            _check_reader(parent, order, change, at_step, f"changes[{position}]")


def _check_reader(parent: Parent, order: Order, change: NewState, at_step: int, field: str) -> None:
    """A registered agent begins with a state, at a request."""
    if not _reads_state(order):
        raise ForkError(_UNREAD_STATE, field=field)
    if order.agent is None:
        return
    if not parent.begins_with_request(at_step):
        words = f"Your own code can only get a changed state at a model request, not at step {at_step}. Fork at one of"
        raise ForkError(f"{words} the steps {parent.request_steps}.", field="at_step")
    if change.step > at_step:
        words = f"Your own code is given the changed state where the fork begins; set at_step to {change.step}"
        raise ForkError(f"{words}.", field=f"{field}.step")


def check_code_reads_state(order: Order) -> None:
    """Asks the team's code, where it can be loaded here; its process is started for a changed state alone."""
    changed = [position for position, change in enumerate(order.changes) if isinstance(change, NewState)]
    if changed and order.agent is not None and ignores_state(order.agent):
        raise ForkError(IGNORES_STATE, field=f"changes[{changed[0]}]")


def _reads_state(order: Order) -> bool:
    conditions = [change.when for change in order.changes if isinstance(change, Rule)]
    conditions += [stop.when for stop in order.breakpoints if stop.when is not None]
    paths = [comparison.path for condition in conditions for comparison in condition.comparisons]
    return order.agent is not None or any(path[:1] == ("state",) for path in paths)


_UNREAD_STATE = (
    "Nothing in this fork would read the changed state: a rebuilt agent runs none of your code. Fork with a registered "
    "agent that builds its dependencies from a state, or add a rule that uses the state."
)


def _check_step(parent: Parent, order: Order, mode: str) -> int:
    """A run that is resumed may go on after its last step."""
    last = len(parent.kinds) + (mode == ReplayMode.RESUME)
    if order.at_step is None:
        raise ForkError("at_step is needed: the step from which to go on.", field="at_step")
    if order.at_step > last:
        raise ForkError(f"There is no step {order.at_step}; the run has {len(parent.kinds)}.", field="at_step")
    return order.at_step


def _check_expectation(order: Order, mode: str) -> None:
    """Only samples are counted by whether they ended as expected."""
    if mode == ReplayMode.SAMPLING and order.expect is None:
        raise ForkError("expect is needed: samples are counted by whether they end as expected.", field="expect")


def _check_doubles(changes: tuple[Change, ...]) -> None:
    """Of two changes of one thing it would not be clear which one holds. Rules have an order."""
    seen = set()
    for position, change in enumerate(changes):
        what = (type(change), getattr(change, "step", None), getattr(change, "index", None))
        if what in seen and not isinstance(change, Rule):
            raise ForkError("The same thing is changed twice.", field=f"changes[{position}]")
        seen.add(what)


def _check_beside_decisions(changes: tuple[Change, ...]) -> None:
    """With an edited history the loop no longer begins where the calls wait."""
    if not any(isinstance(change, NewDecision) for change in changes):
        return
    for position, change in enumerate(changes):
        if isinstance(change, NewInstructions | NewMessage):
            raise ForkError("No approval can be changed together with this change.", field=f"changes[{position}]")


def _check_change(parent: Parent, change: Any, at_step: int, field: str) -> None:
    kind = parent.kinds.get(change.step)
    if kind is None:
        raise ForkError(f"There is no step {change.step}; the run has {len(parent.kinds)}.", field=f"{field}.step")
    if change.step < at_step:
        words = f"Step {change.step} comes before step {at_step}, from which the fork goes on"
        raise ForkError(f"{words}; what came before stays as it was recorded.", field=f"{field}.step")
    _CHECKS[type(change)](parent, change, at_step, field)


def _check_kind(parent: Parent, change: _Stepped, field: str, kind: str) -> None:
    found = parent.kinds[change.step]
    if found != kind:
        raise ForkError(f"Step {change.step} is a {found} step; this needs a {kind} step.", field=f"{field}.step")
    if change.step not in parent.main:
        words = f"Step {change.step} ran inside another step, whose answer is recorded as a whole"
        raise ForkError(f"{words}; change that one.", field=f"{field}.step")


def _check_attempt(parent: Parent, change: _Stepped, field: str) -> None:
    if parent.is_attempt(change.step):
        words = f"Step {change.step} failed and was made again, and a fork plays the last attempt only"
        raise ForkError(f"{words}; change that one.", field=f"{field}.step")


def _check_tool_result(parent: Parent, change: NewToolResult, at_step: int, field: str) -> None:
    _check_kind(parent, change, field, "tool")
    _check_attempt(parent, change, field)
    call = load_step(parent.row, change.step).call
    if isinstance(call, ToolCall) and is_held_back(call, _asking(parent, change.step)):
        words = f"The call of step {change.step} still waits for somebody, and no tool was asked"
        raise ForkError(f"{words}; change the model's answer before it.", field=f"{field}.step")
    if isinstance(call, ToolCall) and not is_answered_by_tool(call):
        words = f"Step {change.step} was answered by the framework and not by a tool"
        raise ForkError(f"{words}; change the model's answer before it.", field=f"{field}.step")


def _asking(parent: Parent, index: int) -> ModelCall | None:
    """The answer before this step."""
    requests = [step for step in parent.main if step < index and parent.kinds[step] == "model"]
    call = load_step(parent.row, max(requests)).call if requests else None
    return call if isinstance(call, ModelCall) else None


def _check_decision(parent: Parent, change: NewDecision, at_step: int, field: str) -> None:
    _check_kind(parent, change, field, "tool")
    then = parent.decision_on(change.step)
    if then is None:
        words = f"The recording shows no approval decision for step {change.step}"
        raise ForkError(f"{words}; only a decided call can be approved or denied differently.", field=f"{field}.step")
    if (then == "denied") is (change.denial is not None):
        raise ForkError(f"The call of step {change.step} was already {change.outcome} then.", field=f"{field}.value")


def _check_model_answer(parent: Parent, change: NewModelAnswer, at_step: int, field: str) -> None:
    _check_kind(parent, change, field, "model")
    _check_attempt(parent, change, field)


def _check_message(parent: Parent, change: NewMessage, at_step: int, field: str) -> None:
    _check_kind(parent, change, field, "model")
    between = parent.main & set(range(at_step, change.step))
    if any(parent.kinds[index] in ("model", "tool") for index in between):
        words = f"Messages are changed where the fork begins; set at_step to {change.step}"
        raise ForkError(f"{words} or change another step.", field=f"{field}.step")
    count = len(chain_of(parent.row, parent.row.steps[change.step - 1].input_node).messages)
    if change.index >= count:
        words = f"Step {change.step} was sent {count} messages, counted from 0"
        raise ForkError(f"{words}; there is no message {change.index}.", field=f"{field}.index")


def _check_state(parent: Parent, change: NewState, at_step: int, field: str) -> None:
    [(before, _, _)] = load_steps(parent.row, after=change.step - 1, limit=1)[1]
    if before is None:
        raise ForkError(f"No state is recorded for step {change.step}.", field=f"{field}.step")
    copies = sum(operation.get("op") == "copy" for operation in change.patch)
    if copies and len(compact_json([before, change.patch])) << min(copies, 64) > _MAX_STATE_BYTES:
        raise ForkError("The state could grow too large by copy operations; use add.", field=f"{field}.patch")
    try:
        apply_patch(before, change.patch)
    except PatchError as error:
        raise ForkError(str(error), field=f"{field}.patch[{error.position}]") from None


_CHECKS: dict[type, Callable[[Parent, Any, int, str], None]] = {
    NewToolResult: _check_tool_result,
    NewDecision: _check_decision,
    NewModelAnswer: _check_model_answer,
    NewMessage: _check_message,
    NewState: _check_state,
}
