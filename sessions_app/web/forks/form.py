"""The form of a fork: what it begins with, and what was typed read into an order (core/fork/order.py).

A change counts when its card is ticked. Whatever is wrong is said at the input that it stands in, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sessions_app.core.fork.changes import ForkError, read_changes
from sessions_app.core.fork.expectations import read_expectation
from sessions_app.core.fork.order import read_breakpoints, read_order
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.web.forks.changes import CARDS, RULES
from sessions_app.web.forks.expected import read_expected
from sessions_app.web.forks.inputs import TOP, Refused, Typed, Written, number_of, text_of, words_of
from sessions_app.web.forks.recorded import Recorded

BREAKPOINTS = (1, 2, 3)
BREAKPOINT_KINDS = ("step", "tool", "when")
SAMPLES = 10
"""How often a live model is asked unless somebody says otherwise."""
NAMES = (
    *(f"use_{card}" for card in CARDS),
    *("instructions", "message", "message_index", "message_of", "message_as", "model", "settings"),
    *("result", "result_step", "result_of", "result_as", "result_type", "result_crashes", "preset"),
    *("answer_text", "answer_calls", "patch", "clock", "agent", "agent_tools"),
    *(f"rule_{part}_{row}" for row in RULES for part in ("when", "text")),
    *("hypothesis", "expect_kind", "expect_text", "expect_tool", "expect_n"),
    *(f"break_{part}_{row}" for row in BREAKPOINTS for part in ("kind", "value")),
    *("sampling", "samples", "live_model", "on_difference"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The order as it was typed. It may be given when there are no errors."""

    order: JsonObject
    errors: dict[str, str] = field(default_factory=dict)
    """By the name of the input, or `TOP`."""
    places: dict[str, Written] = field(default_factory=dict)
    """The parts of the order by their path, such as `changes[0]`."""

    def refused(self, error: ForkError) -> dict[str, str]:
        """An error that was found later, by whoever took the order, at its input."""
        for path, written in self.places.items():
            if error.field == path or error.field.startswith((f"{path}.", f"{path}[")):
                return {written.input_of(error.field[len(path) :].lstrip(".")): words_of(error)}
        return {_DIRECT.get(error.field, TOP): words_of(error)}


_DIRECT = {"hypothesis": "hypothesis", "at_step": "step", "agent": "agent"}


# --- what it begins with -----------------------------------------------------------------------


def initial(recorded: Recorded) -> dict[str, str]:
    """Each input holds what was recorded, so that only the difference has to be typed."""
    request, tool = recorded.request, recorded.tool
    return {
        "instructions": request.instructions.editable,
        **message_input(recorded),
        "model": request.model or "",
        "settings": request.settings.editable,
        **result_input(recorded),
        "result_step": str(tool.row.index) if tool.row else "",
        "answer_text": request.answer_text.editable,
        "answer_calls": request.answer_calls.editable,
        "expect_kind": "words",
        "samples": str(SAMPLES),
        **{f"break_kind_{row}": BREAKPOINT_KINDS[0] for row in BREAKPOINTS},
    }


def message_input(recorded: Recorded) -> dict[str, str]:
    """The message that is offered, and which one it is."""
    at = "" if recorded.request.message_index is None else str(recorded.request.message_index)
    message = recorded.request.message
    return {"message": message.editable, "message_as": message.form, "message_index": at, "message_of": at}


def result_input(recorded: Recorded) -> dict[str, str]:
    at = str(recorded.tool.row.index) if recorded.tool.row else ""
    value = recorded.tool.value
    return {"result": value.editable, "result_as": value.form, "result_step": at, "result_of": at}


# --- reading -----------------------------------------------------------------------------------


def read_form(typed: Typed, recorded: Recorded) -> Reading:
    reader = _Reader(typed, recorded)
    reader.changes()
    reader.words()
    reader.expectation()
    reader.breakpoints()
    reader.sampling()
    reader.difference()
    return Reading(order=reader.order, errors=reader.errors, places=reader.places)


class _Reader:
    """Gathers the order and everything that is wrong with it."""

    def __init__(self, typed: Typed, recorded: Recorded) -> None:
        self._typed = typed
        self._recorded = recorded
        self.order: JsonObject = {"at_step": recorded.start.row.index, "changes": []}
        self.errors = {name: "This holds a NUL character." for name, text in typed.items() if "\x00" in text}
        self.places: dict[str, Written] = {}

    def changes(self) -> None:
        used = [card for card in CARDS if self._typed.get(f"use_{card}")]
        if not used and not self._typed.get("sampling"):
            self._refuse("changes", "Tick at least one change: a fork that changes nothing is a replay.")
        for card in used:
            self._try(self._card, card)
        if "agent" in used and self._typed.get("agent_tools"):
            self.order["tools"] = {"run": True}

    def _card(self, card: str) -> None:
        for written in CARDS[card](self._typed, self._recorded):
            self._try(self._change, written)

    def _change(self, written: Written) -> None:
        self._check(written, "changes[0]", read_changes)
        self.places[f"changes[{len(self.order['changes'])}]"] = written
        self.order["changes"].append(written.value)

    def words(self) -> None:
        if hypothesis := text_of(self._typed, "hypothesis").strip():
            self.order["hypothesis"] = hypothesis

    def expectation(self) -> None:
        self._try(self._expectation)

    def _expectation(self) -> None:
        written = read_expected(self._typed, is_json=self._recorded.output_is_json)
        if written is None:
            return
        self._check(written, "expect", lambda items: read_expectation(*items))
        self.order["expect"] = written.value
        self.places["expect"] = written

    def breakpoints(self) -> None:
        found = list(read_breakpoint_rows(self._typed))
        for position, written in enumerate(found):
            self._try(self._check, written, "breakpoints[0]", read_breakpoints)
            self.places[f"breakpoints[{position}]"] = written
        if found:
            self.order["breakpoints"] = [written.value for written in found]

    def sampling(self) -> None:
        if not self._typed.get("sampling"):
            return
        written = Written(value=number_of(text_of(self._typed, "samples").strip()), inputs={"": "samples"})
        self._try(self._check, written, "samples", lambda items: read_order({"samples": items[0]}))
        self.order["samples"], self.places["samples"] = written.value, written
        self._ask(text_of(self._typed, "live_model"), "samples")
        self._refuse_beside_samples()

    def difference(self) -> None:
        """Who answers a request to the model that was not recorded; nobody unless it is said. `live:` names a model."""
        chosen, _, model = text_of(self._typed, "on_difference").partition(":")
        if chosen:
            written = Written(value=chosen, inputs={"": "on_difference"})
            self._try(self._check, written, "on_difference", lambda items: read_order({"on_difference": items[0]}))
            self.order["on_difference"], self.places["on_difference"] = chosen, written
            self._ask(model, "on_difference")

    def _ask(self, model: str, name: str) -> None:
        """The model that a sampling asks goes before that of a difference: there is none in a sampling."""
        if model and "live_model" not in self.order:
            self.order["live_model"], self.places["live_model"] = model, Written(value=model, inputs={"": name})

    def _refuse_beside_samples(self) -> None:
        """A sample cannot wait for anybody, and the team's own code would ask the live model from its beginning."""
        if "breakpoints" in self.order:
            self._refuse(self.places["breakpoints[0]"].inputs[""], "A sampling does not pause; leave this empty.")
        if any(change["kind"] == "agent" for change in self.order["changes"]):
            self._refuse("agent", "A sampling runs the agent rebuilt from the recording; do not use this change.")

    def _check(self, written: Written, path: str, read: Callable[[list[JsonValue]], object]) -> None:
        """Raises what the reader of orders says, at the input."""
        try:
            read([written.value])
        except ForkError as error:
            raise Refused(written.input_of(error.field.removeprefix(path).lstrip(".")), words_of(error)) from None

    def _try(self, work: Callable[..., object], *arguments: object) -> None:
        try:
            work(*arguments)
        except Refused as refused:
            self._refuse(refused.name, refused.message)

    def _refuse(self, name: str, message: str) -> None:
        self.errors.setdefault(name, message)


def read_breakpoint_rows(typed: Typed) -> Iterator[Written]:
    """Rows that were left empty are none."""
    for row in BREAKPOINTS:
        text, kind = text_of(typed, f"break_value_{row}").strip(), typed.get(f"break_kind_{row}", "")
        if text:
            value = number_of(text) if kind == "step" else text
            yield Written(value={kind: value}, inputs={"": f"break_value_{row}"})
