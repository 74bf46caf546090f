"""Where a fork begins: the history that it goes on from, and what of the recording lies before and after it.

What lies before is given again as it was recorded. Where that does not lead to the fork's step, the loop is started
with the recorded messages up to there: those that end in the request of a model step, or in the answer whose calls are
open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sessions_app.core.errors import ReplayProductError
from sessions_app.core.fork.changes import NewDecision, NewInstructions, NewMessage, NewModel
from sessions_app.core.fork.instructions import Instructions, carried_instructions
from sessions_app.core.fork.lint import lint_history
from sessions_app.core.fork.order import Order
from sessions_app.core.history import History, extend, messages, nodes
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan, make_plan
from sessions_app.core.run import Run, main_steps


class CannotFork(ReplayProductError):
    """A run cannot go on from this step; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewPrompt:
    """Other instructions than the recorded ones."""

    text: str
    since: int
    """How many requests lie before the first that has them."""
    is_system_prompt: bool
    """Whether they stand in a message of the history, where the recorded ones do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForkPlan:
    """What the loop is started with, and what is known of the rest."""

    replay: ReplayPlan
    """Of the whole recording, with the fork's settings from its step on."""
    cursor: int
    """How many model requests lie before it."""
    history: History
    """What it goes on from, edited."""
    recorded: History
    """The same as it was recorded."""
    kept: int
    """Steps up to this index are as recorded."""
    instructions: NewPrompt | None
    """None leaves them."""
    model: str | None

    @property
    def run(self) -> Run:
        return self.replay.run

    @property
    def is_unedited(self) -> bool:
        return self.history == self.recorded

    @property
    def begins_with_calls(self) -> bool:
        """Whether it goes on from a recorded answer, as it was recorded, and not from a request."""
        return self.is_unedited and self._ends_with == "response"

    @property
    def asking(self) -> Payload:
        """The answer whose calls are open where it begins, as it was given: a later request may tell it otherwise."""
        given = self.replay.answers[self.cursor - 1].response if self.cursor else None
        return given or self.history.message

    @property
    def begins_with_request(self) -> bool:
        return bool(self._ends_with == "request")

    @property
    def asks_as_recorded(self) -> bool:
        """Whether its first request is the recorded one, but for the model and its settings."""
        return self.is_unedited and self.instructions is None

    @property
    def _ends_with(self) -> JsonValue:
        return self.history.message.value.get("kind")

    @property
    def lint(self) -> list[str]:
        """What the framework will not take as it stands in an edited history."""
        return [] if self.is_unedited else lint_history([m.value for m in messages(self.history)])


def plan_fork(run: Run, order: Order) -> ForkPlan:
    """Raises `CannotFork`."""
    assert order.at_step is not None
    plan, at = make_plan(run), order.at_step
    if not plan.answers:
        raise CannotFork("The recording holds no model answers.")
    cursor = sum(answer.step < at for answer in plan.answers)
    is_behind = cursor > 0 or _is_continued(run)
    asks_first = not is_behind or not _has_open_calls(run, plan, cursor, at)
    recorded, kept = _from_request(plan, cursor) if asks_first else _from_calls(plan, cursor)
    model = next((c for c in order.changes if isinstance(c, NewModel)), NewModel())
    return ForkPlan(
        replay=replace(
            plan, answers=_with_settings(plan.answers, cursor, model.settings), decisions=_decisions(run, order)
        ),
        cursor=cursor,
        history=_edited(recorded, order, plan, cursor, asks_first),
        recorded=recorded,
        kept=kept,
        instructions=_instructions(plan, cursor, order),
        model=model.model,
    )


def _instructions(plan: ReplayPlan, cursor: int, order: Order) -> NewPrompt | None:
    """None where all requests from here on have these already."""
    wanted = next((c.value for c in order.changes if isinstance(c, NewInstructions)), None)
    known, asked = Instructions(), [answer.history for answer in plan.answers[cursor:] or plan.answers[-1:]]
    if wanted is None or all(each is not None and known.of(each) == wanted for each in asked):
        return None
    is_carried = asked[0] is None or carried_instructions(asked[0].message.value) is not None
    is_system_prompt = not is_carried and asked[0] is not None and known.of(asked[0]) is not None
    return NewPrompt(text=wanted, since=cursor, is_system_prompt=is_system_prompt)


def _decisions(run: Run, order: Order) -> dict[str, str | None]:
    calls = {step.index: call.call_id for step, call in run.tool_calls}
    changes = (change for change in order.changes if isinstance(change, NewDecision))
    return {call_id: change.denial for change in changes if (call_id := calls.get(change.step)) is not None}


def _has_open_calls(run: Run, plan: ReplayPlan, cursor: int, at: int) -> bool:
    """Whether calls that the answer before asked for are still to be made at this step."""
    first = plan.answers[cursor - 1].step if cursor else 0
    following = plan.answers[cursor].step if cursor < len(plan.answers) else len(run.steps) + 1
    between = [step.index for step in main_steps(run) if step.kind == "tool" and first < step.index < following]
    if between:
        return at <= between[-1]
    return cursor == 0 or (cursor == len(plan.answers) and _asks_for_calls(plan.answers[cursor - 1]))


def _asks_for_calls(answer: PlannedAnswer) -> bool:
    parts = answer.response.value.get("parts") or [] if answer.response else []
    return any(part.get("part_kind") == "tool-call" for part in parts)


def _from_request(plan: ReplayPlan, cursor: int) -> tuple[History, int]:
    if cursor >= len(plan.answers):
        raise CannotFork("The run had already ended before this step.")
    answer = plan.answers[cursor]
    if answer.history is None:
        raise CannotFork(f"The request of step {answer.step} was not captured.")
    return answer.history, answer.step - 1


def _is_continued(run: Run) -> bool:
    """Whether it began with approvals for calls of an earlier run."""
    return run.deferred is not None and run.prior is not None


def _from_calls(plan: ReplayPlan, cursor: int) -> tuple[History, int]:
    if cursor == 0 and plan.run.prior is not None:
        return plan.run.prior, 0
    answer = plan.answers[cursor - 1]
    if answer.history is None or answer.response is None:
        raise CannotFork(f"The request of step {answer.step} was not captured.")
    return _as_kept(answer, History(answer.history, answer.response)), answer.step


def _as_kept(answer: PlannedAnswer, history: History) -> History:
    """In the spelling of the messages behind it, where they go on from the request."""
    if answer.after is None:
        return history
    there = next((node for node in nodes(answer.after) if node.length == history.length), history)
    return there if there.parent == history.parent else history


def _with_settings(
    answers: tuple[PlannedAnswer, ...], cursor: int, settings: JsonObject | None
) -> tuple[PlannedAnswer, ...]:
    if settings is None:
        return answers
    changed = (replace(answer, settings={**(answer.settings or {}), **settings}) for answer in answers[cursor:])
    return (*answers[:cursor], *changed)


# --- edited histories --------------------------------------------------------------------------


def _edited(history: History, order: Order, plan: ReplayPlan, cursor: int, asks_first: bool) -> History:
    edits = [change for change in order.changes if isinstance(change, NewMessage)]
    for edit in edits:
        if not asks_first or edit.step != plan.answers[cursor].step:
            raise CannotFork(f"Messages can be changed where the fork begins; step {edit.step} lies elsewhere.")
        if edit.index >= history.length:
            raise CannotFork(
                f"The request of step {edit.step} has {history.length} messages, none of index {edit.index}."
            )
    return _replaced(history, {edit.index: edit.value for edit in edits})


def edited_message(value: str | JsonObject, message: JsonValue) -> JsonValue:
    return value if isinstance(value, dict) else _with_text(message, value)


def _with_text(message: JsonValue, text: str) -> JsonValue:
    """The text of the message's prompt, or of its first part that has one; a message without any gets one, such as an
    answer that only asks for calls."""
    parts = list(message.get("parts") or [])
    kinds = [part.get("part_kind") if "content" in part else None for part in parts]
    for kind in ("user-prompt", "text", "tool-return", *filter(None, kinds)):
        if kind in kinds:
            at = kinds.index(kind)
            parts[at] = {**parts[at], "content": text}
            return {**message, "parts": parts}
    kind = "text" if message.get("kind") == "response" else "user-prompt"
    return {**message, "parts": [{"part_kind": kind, "content": text}, *parts]}


def _replaced(history: History, edits: dict[int, str | JsonObject]) -> History:
    """Messages before the first edit stay the very same nodes."""
    if not edits:
        return history
    listed, node = messages(history), history
    while node.parent is not None and node.length > min(edits) + 1:
        node = node.parent
    rest = [
        Payload.of_json(edited_message(edits[index], message.value)) if index in edits else message
        for index, message in enumerate(listed[min(edits) :], start=min(edits))
    ]
    found = extend(node.parent, rest)
    assert found is not None
    return found
