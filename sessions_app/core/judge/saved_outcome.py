"""What a saved file says beside its messages: that the run failed, or that an item is not what it looks like."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from sessions_app.core.formats.openai_items import unread_items
from sessions_app.core.judge.reading import main_models, step_name, value_of
from sessions_app.core.judge.reasons import Reason, reason_at, reason_at_end
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import OPENAI_ITEMS, SESSION_FILE, Run


def saved_outcome_gaps(run: Run) -> Iterator[Reason]:
    """All steps can be replayed; which of the two is what happened cannot be told."""
    if run.source_format in (SESSION_FILE, OPENAI_ITEMS):
        yield from islice(_failures(run), 1)
    if run.source_format == OPENAI_ITEMS:
        yield from islice(_items(run), 1)
        yield from islice(_unread(run), 1)
        yield from islice(_calls_without_arguments(run), 1)


# --- that it failed ----------------------------------------------------------------------------

_FAILED = frozenset({"error", "failed", "failure", "incomplete", "cancelled"})


def _failures(run: Run) -> Iterator[Reason]:
    for name in ("error", "status", "success"):
        said = run.extra.get(f"{run.source_format}.{name}", run.extra.get(name))
        if run.output is not None and _is_failure(name, said):
            message = f"The run has a final output, and `{name}` says that it failed."
            yield reason_at_end(run, "outcome_contradicts", message)


def _is_failure(name: str, said: JsonValue) -> bool:
    if name == "status":
        return isinstance(said, str) and said.lower() in _FAILED
    return said is False if name == "success" else bool(said)


# --- items of the OpenAI Agents SDK ------------------------------------------------------------


def _items(run: Run) -> Iterator[Reason]:
    items = run.extra.get("items")
    for position, item in enumerate(items if isinstance(items, list) else ()):
        raw = item.get("raw", item) if isinstance(item, dict) else None
        words = _beside(item, raw) if isinstance(raw, dict) else None
        if words is not None:
            yield reason_at_end(run, "items_contradicted", f"The run's items[{position}] {words}.")


def _unread(run: Run) -> Iterator[Reason]:
    """The model was told of it, or said it, and no message holds it."""
    models = main_models(run)
    given = ((place, len(models)) for place, _ in unread_items(run.extra.get("input_items"), name="input"))
    for place, requests in chain(given, unread_items(run.extra.get("items"))):
        message = f"The run's {place}, which a replay cannot repeat."
        if models and requests:
            yield reason_at(run, "items_not_read", message, models[-requests:][0][0])
        else:
            yield reason_at_end(run, "items_not_read", message)


def _calls_without_arguments(run: Run) -> Iterator[Reason]:
    """A model that gives none writes `{}`."""
    for step, call in run.tool_calls:
        if value_of(call.arguments) is None:
            message = f"The arguments of {step_name(step)} were not recorded."
            yield reason_at(run, "items_not_read", message, step)


def _beside(item: JsonObject, raw: JsonObject) -> str | None:
    """What of the item speaks against its text, its call or its answer."""
    if raw.get("status") == "incomplete":
        return "is marked as incomplete"
    if raw.get("role") == "assistant" and any(map(_is_refusal, _pieces(raw))):
        return "holds a refusal, which a replay does not repeat"
    if _is_of_other_kind(item.get("type"), raw.get("type")):
        return f"is a {item['type']} and holds a {raw['type']}"
    returned, told = item.get("output"), raw.get("output")
    if isinstance(returned, str) and isinstance(told, str) and returned != told:
        return "says in `output` something else than in `raw.output`"
    return None


def _pieces(raw: JsonObject) -> list[JsonValue]:
    content = raw.get("content")
    return content if isinstance(content, list) else []


def _is_refusal(piece: JsonValue) -> bool:
    return isinstance(piece, dict) and piece.get("type") == "refusal"


_NAMES = {
    "message": {"MessageOutputItem"},
    "function_call": {"ToolCallItem", "HandoffCallItem", "ToolApprovalItem"},
    "function_call_output": {"ToolCallOutputItem", "HandoffOutputItem"},
}
"""How the SDK calls what holds each; it has other names for what is not listed here."""


def _is_of_other_kind(name: JsonValue, kind: JsonValue) -> bool:
    known = any(name in names for names in _NAMES.values())
    return isinstance(kind, str) and kind in _NAMES and known and name not in _NAMES[kind]
