"""What the templates of the fork's form need: inputs with what stands in them, and the cards of changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sessions_app.core.fork.expectations import read_expectation
from sessions_app.core.fork.foretell import Foretold, foretell
from sessions_app.core.fork.order import read_order
from sessions_app.core.fork.presets import Preset
from sessions_app.core.fork.words import describe
from sessions_app.core.payload import JsonObject
from sessions_app.core.step_summary import StepSummary
from sessions_app.queries import steps
from sessions_app.queries.recorded_steps import StoredSteps
from sessions_app.services.fork_checks import Parent
from sessions_app.web.forks.changes import CARDS, RULES, ticked_presets
from sessions_app.web.forks.form import BREAKPOINT_KINDS, BREAKPOINTS
from sessions_app.web.forks.inputs import TOP, Typed
from sessions_app.web.forks.outlook import later_calls, offered_agents, sources, tools_of
from sessions_app.web.forks.recorded import Recorded
from sessions_app.web.forks.values import spelled

_ROWS = (3, 18)
"""Lines of a text area, at least and at most."""
_PRESET_TEXT = 16 * 1024
"""Characters of a preset that the page carries, for the script that shows it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """One input and what stands in it."""

    name: str
    value: str = ""
    error: str = ""

    @property
    def area(self) -> str:
        """For a text area, which swallows the first line end."""
        return f"\n{self.value}"

    @property
    def rows(self) -> int:
        return min(max(self.value.count("\n") + 1, _ROWS[0]), _ROWS[1])


def inputs_of(names: Iterable[str], typed: Typed, errors: Mapping[str, str]) -> dict[str, Input]:
    return {name: Input(name=name, value=typed.get(name, ""), error=errors.get(name, "")) for name in names}


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """One kind of change. It is unfolded where it fits the step, is used, or holds an error."""

    key: str
    title: str
    icon: str
    hint: str
    template: str
    is_used: bool
    is_open: bool


_CARD_WORDS = {
    "instructions": ("Instructions", "align-justify", "the system prompt, from this step on"),
    "message": ("A message", "message-square", "one of the messages sent to the model"),
    "model": ("Model and settings", "sliders-horizontal", "from this step on"),
    "result": ("The tool's answer", "wrench", "what the tool returns"),
    "answer": ("The model's next answer", "hand", "written by hand"),
    "state": ("State", "database", "a JSON Patch for the state the step begins with"),
    "clock": ("Clock", "clock", "the time that the agent sees"),
    "rule": ("Rules", "split", "when … the model answers …"),
    "agent": ("Version of the agent", "code", "your own code instead of the recording"),
}
_FITTING = {"model": ("instructions", "answer"), "tool": ("result",)}


def cards_of(kind: str, typed: Typed, errors: Mapping[str, str]) -> list[Card]:
    """What fits the step comes first."""
    fitting = _FITTING.get(kind, ())
    return [_card(key, kind, typed, errors) for key in sorted(CARDS, key=lambda key: key not in fitting)]


def _card(key: str, kind: str, typed: Typed, errors: Mapping[str, str]) -> Card:
    title, icon, hint = _CARD_WORDS[key]
    is_used = bool(typed.get(f"use_{key}"))
    return Card(
        key=key,
        title=title,
        icon=icon,
        hint=hint,
        template=f"forks/_change_{key}.html",
        is_used=is_used,
        is_open=is_used or key in _FITTING.get(kind, ()) or any(name in errors for name in _INPUTS[key]),
    )


_INPUTS = {
    "instructions": ("instructions",),
    "message": ("message", "message_index"),
    "model": ("model", "settings"),
    "result": ("result", "result_step", "result_type", "preset"),
    "answer": ("answer_text", "answer_calls"),
    "state": ("patch",),
    "clock": ("clock",),
    "rule": tuple(f"rule_{part}_{row}" for row in RULES for part in ("when", "text")),
    "agent": ("agent",),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PresetChoice:
    """A preset, with the text that it stands for: None when it is too long for the page."""

    key: str
    title: str
    is_ticked: bool
    form: str = "text"
    text: str | None = None


def preset_choices(recorded: Recorded, typed: Typed) -> list[PresetChoice]:
    """Those that are offered, and what is ticked and is offered no more: it would be lost without a word."""
    ticked = ticked_presets(typed)
    offered = [_preset(each, is_ticked=each.key in ticked) for each in recorded.tool.presets]
    left = [key for key in ticked if key not in {each.key for each in offered}]
    return [*offered, *(PresetChoice(key=key, title=f"{key} (not offered here)", is_ticked=True) for key in left)]


def _preset(preset: Preset, *, is_ticked: bool) -> PresetChoice:
    error, value = preset.change.get("error"), preset.change.get("value")
    if error is not None:
        form, text = "error", error.get("message", "") if isinstance(error, dict) else str(error)
    else:
        form, text = ("text", value) if isinstance(value, str) else ("json", spelled(value))
    is_answer = preset.change["kind"] == "tool_result"
    shown = text if is_answer and len(text) <= _PRESET_TEXT else None
    return PresetChoice(key=preset.key, title=preset.title, is_ticked=is_ticked, form=form, text=shown)


def rows_of(typed: Typed, errors: Mapping[str, str], rows: Iterable[int], *parts: str) -> list[dict[str, Any]]:
    """Inputs that come several times, such as `break_kind_1`; `rule_when` is given as its part `when`."""
    return [
        {"number": row} | {part.split("_")[1]: _numbered(part, row, typed, errors) for part in parts} for row in rows
    ]


def _numbered(part: str, row: int, typed: Typed, errors: Mapping[str, str]) -> Input:
    name = f"{part}_{row}"
    return Input(name=name, value=typed.get(name, ""), error=errors.get(name, ""))


def breakpoint_context(typed: Typed, errors: Mapping[str, str]) -> dict[str, Any]:
    rows = rows_of(typed, errors, BREAKPOINTS, "break_kind", "break_value")
    return {
        "breakpoints": rows,
        "breakpoint_kinds": BREAKPOINT_KINDS,
        "has_breakpoints": any(row["value"].value or row["value"].error for row in rows),
    }


def form_context(names: Iterable[str], typed: Typed, errors: Mapping[str, str], recorded: Recorded) -> dict[str, Any]:
    """All that depends on what was typed."""
    return {
        "f": inputs_of((*names, "changes", "step"), typed, errors),
        "cards": cards_of(recorded.start.row.kind, typed, errors),
        "recorded": recorded,
        "presets": preset_choices(recorded, typed),
        "fork_count": max(len(ticked_presets(typed)), 1) if typed.get("use_result") else 1,
        "rules": rows_of(typed, errors, RULES, "rule_when", "rule_text"),
        "errors": [(name, message) for name, message in errors.items() if name != TOP],
        "top_error": errors.get(TOP, ""),
        "is_unchanged": set(errors) == {"changes"},
        **breakpoint_context(typed, errors),
    }


def outlook_context(parent: Parent, row: StepSummary, *, is_sampling: bool, has_live_model: bool) -> dict[str, Any]:
    """What the fork can count on."""
    run = parent.row
    offered = offered_agents(run)
    return {
        **offered,
        "later": later_calls(parent, row.index),
        "tools": tools_of(run),
        "sources": sources(offered["agents"], is_sampling=is_sampling, has_live_model=has_live_model),
        "last_index": run.content.length,
        "step_choices": steps.row_page(run.steps, row.index).rows,
    }


def foretold(parent: Parent, order: JsonObject, *, is_edited: bool = True) -> Foretold | None:
    """What the fork is going to do; only for an order without errors."""
    run = parent.row
    return foretell(read_order(order), run.steps, parent.main, StoredSteps(run), is_edited=is_edited)


def forks_in_words(parent: Parent, orders: list[JsonObject]) -> dict[str, Any]:
    """The orders of a form as the sentence that it asks for, and where it will stop. Only for orders without errors."""
    told = [words for order in orders if (words := foretold(parent, order))]
    return {
        "foretold": list(dict.fromkeys(each.words for each in told)),
        "forks_in_words": [[describe(change) for change in order["changes"]] for order in orders],
        "expected_in_words": read_expectation(expected).words if (expected := orders[0].get("expect")) else "",
        "samples_in_words": orders[0].get("samples"),
    }
