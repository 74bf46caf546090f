"""Nine things that can make a second run differ, and what holds each of them still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sessions_app.core.judge.grading import retrievals_of
from sessions_app.core.judge.kit_environment import is_set, model_facts, setting_words
from sessions_app.core.judge.kit_side_effects import tool_counts, without_answer
from sessions_app.core.judge.reading import TIMES, count, main_models, own_tools, status_code
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, Step

State = Literal["pinned", "recorded", "uncontrolled", "not_captured"]
STATE_WORDS: dict[State, str] = {
    "pinned": "pinned",
    "recorded": "recorded",
    "uncontrolled": "uncontrolled",
    "not_captured": "not captured",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """Whether the record holds something, and its values in words."""

    is_held: bool
    values: str
    otherwise: State = "not_captured"
    """The state when it is not held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetRow:
    """One source of chance and its state."""

    key: str
    title: str
    state: State
    values: str

    def to_json(self) -> JsonObject:
        return {
            "key": self.key,
            "title": self.title,
            "state": self.state,
            "values": self.values,
        }


def nondeterminism_budget(run: Run, replayed: bool) -> tuple[BudgetRow, ...]:
    """A replay plays the model's answers, the tools' answers and the clock from the record.

    What the record does not hold cannot be pinned by a replay; it is then not controlled.
    """
    return tuple(_row(entry, run, replayed) for entry in BUDGET)


def _row(entry: tuple[str, str, Settles, Inspect], run: Run, replayed: bool) -> BudgetRow:
    key, title, settles, inspect = entry
    held = inspect(run)
    if held.is_held:
        return BudgetRow(key=key, title=title, state="pinned" if replayed else "recorded", values=held.values)
    if replayed and (settled := settles(run)):
        return BudgetRow(key=key, title=title, state="pinned", values=settled)
    return BudgetRow(key=key, title=title, state="uncontrolled" if replayed else held.otherwise, values=held.values)


def _by_model_answers(run: Run) -> str | None:
    """Recorded answers leave the model nothing to choose, whatever its settings were."""
    models = main_models(run)
    is_settled = bool(models) and all(call.response or step.error for step, call in models)
    return "by the recorded answers of the model" if is_settled else None


def _by_tool_answers(run: Run) -> str | None:
    """Frozen answers come at any load as they came then."""
    return "by the recorded answers of the tools" if _tool_results(run).is_held else None


def _by_nothing_else(run: Run) -> None:
    return None


def _sampling(run: Run) -> Held:
    names = ("temperature", "top_p")
    values = ", ".join(setting_words(run, name) for name in names)
    return Held(is_held=all(_is_set(run, name) for name in names), values=values, otherwise=_unless_set(values))


def _seed(run: Run) -> Held:
    values = setting_words(run, "seed")
    return Held(is_held=_is_set(run, "seed"), values=values, otherwise=_unless_set(values))


def _unless_set(values: str) -> State:
    """Of what nobody set, the record holds that nobody did."""
    return "not_captured" if "not captured" in values else "uncontrolled"


def _is_set(run: Run, name: str) -> bool:
    models = main_models(run)
    return bool(models) and all(is_set(call, name) for _, call in models)


def _model_version(run: Run) -> Held:
    calls = [call for _, call in main_models(run)]
    pairs = dict.fromkeys((call.model, call.answered_model) for call in calls)
    said = " / ".join(_asked_and_got(asked or run.model, got) for asked, got in pairs)
    is_held = bool(calls) and all(call.answered_model for call in calls)
    return Held(is_held=is_held, values=said or "no model call")


def _asked_and_got(asked: str | None, got: str | None) -> str:
    if asked and got:
        return f"{asked} → {got}"
    return got or (f"{asked}, what answered not captured" if asked else "not captured")


def _routing(run: Run) -> Held:
    facts = model_facts(run)
    words = [f"{name} {facts[name] or 'not captured'}" for name in ("provider", "region")]
    is_held = all(facts[name] for name in ("provider", "region"))
    return Held(is_held=is_held, values=", ".join(words))


def _races(run: Run) -> Held:
    groups: dict[int | None, list[Step]] = {}
    for step, _ in own_tools(run):
        groups.setdefault(step.parent, []).append(step)
    parallel = [group for parent, group in groups.items() if parent is not None and len(group) > 1]
    if not parallel:
        return Held(is_held=True, values="no parallel calls")
    timed = [group for group in parallel if all(step.ended_at for step in group)]
    overlaps = sum(1 for group in timed if _overlaps(group))
    values = f"{count(len(parallel), 'parallel batch', 'parallel batches')}, {overlaps} overlapping"
    if len(timed) < len(parallel):
        values += f", {len(parallel) - len(timed)} without times"
    return Held(is_held=len(timed) == len(parallel), values=values)


def _overlaps(group: list[Step]) -> bool:
    spans = sorted((s.started_at, end) for s in group if s.started_at and (end := s.ended_at))
    return any(second[0] < first[1] for first, second in pairwise(spans))


def _tool_results(run: Run) -> Held:
    tools = own_tools(run)
    if not tools:
        return Held(is_held=True, values="no tool was called")
    _, answered, expected = tool_counts(run)
    values = f"{answered} of {count(expected, 'answer')} recorded{without_answer(len(tools) - expected)}"
    return Held(is_held=answered >= expected, values=values)


def _retrieval(run: Run) -> Held:
    calls = [call for _, call in retrievals_of(run)]
    if not calls:
        return Held(is_held=True, values="no retrieval step")
    have = sum(1 for call in calls if call.chunks is not None)
    versions = {v for call in calls for v in (call.index_version, call.embedding_version) if v}
    values = ", ".join([f"{have} of {count(len(calls), 'search', 'searches')} with chunks", *sorted(versions)])
    return Held(is_held=have == len(calls), values=values)


def _load(run: Run) -> Held:
    """The weather of the day shows in the status codes of the answers."""
    tools = own_tools(run)
    codes = [code for step, _ in tools if (code := status_code(step)) is not None]
    if not tools:
        return Held(is_held=True, values="no tool was called")
    said = ", ".join(f"HTTP {code} {TIMES} {n}" for code, n in sorted(Counter(codes).items()))
    values = said or "status codes not captured"
    return Held(is_held=len(codes) == len(tools), values=values, otherwise="uncontrolled")


def _clock(run: Run) -> Held:
    if run.started_at is None:
        return Held(is_held=False, values="not captured")
    return Held(is_held=True, values=run.started_at.isoformat())


Settles = Callable[[Run], str | None]
Inspect = Callable[[Run], Held]
BUDGET: tuple[tuple[str, str, Settles, Inspect], ...] = (
    ("sampling", "Temperature and top_p", _by_model_answers, _sampling),
    ("seed", "Seed", _by_model_answers, _seed),
    ("model_version", "Model version", _by_model_answers, _model_version),
    ("routing", "Provider and region", _by_model_answers, _routing),
    ("tool_latency", "Order of parallel tools", _by_nothing_else, _races),
    ("tool_results", "Tool results", _by_nothing_else, _tool_results),
    ("retrieval", "Freshness of retrieval", _by_nothing_else, _retrieval),
    ("load", "Load at that time of day", _by_tool_answers, _load),
    ("clock", "Clock", _by_nothing_else, _clock),
)
"""Key, title, what else holds it in a replay, in words, and what the record says."""
