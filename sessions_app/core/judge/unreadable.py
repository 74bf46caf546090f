"""Messages that the library which replays cannot read: it refuses a whole list for one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sessions_app.core.judge.reading import seen_messages
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run

REQUEST_PARTS = frozenset(
    {
        "system-prompt",
        "user-prompt",
        "tool-return",
        "retry-feedback",
        "retry-prompt",
        "instruction-baseline",
        "instruction-delta",
        "tool-availability-delta",
        "capability-load-delta",
        "model-settings-delta",
        "compaction",
        "speech",
    }
)
"""Kinds of parts that Pydantic AI 2.68 loads in a request; it refuses a list with any other."""
RESPONSE_PARTS = frozenset(
    {
        "text",
        "thinking",
        "tool-call",
        "builtin-tool-call",
        "builtin-tool-return",
        "file",
        "compaction",
        "speech",
    }
)
"""The same for a model's answer."""
REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("text", "thinking", "file", "user-prompt", "system-prompt", "retry-prompt"), ("content",)),
    **dict.fromkeys(("tool-return", "builtin-tool-return"), ("tool_name", "content")),
    **dict.fromkeys(("tool-call", "builtin-tool-call"), ("tool_name",)),
    "retry-feedback": ("content", "retry"),
}
"""Without these it refuses a part."""
PART_KINDS = {"request": REQUEST_PARTS, "response": RESPONSE_PARTS}


def unreadable_messages(run: Run) -> Iterator[Reason]:
    """The first message that the replaying library would refuse; later ones add nothing."""
    for seen in seen_messages(run):
        problem = _refused(seen.message, seen.parts)
        if problem:
            message = f"{problem} {_place(run, seen.step)}; the replay cannot load that message."
            yield Reason(code="unknown_message_part", message=message, step=seen.step)
            return


def _place(run: Run, step: int) -> str:
    if step == 0:
        return "in the earlier turns"
    return "at the end" if step > len(run.steps) else f"at step {step}"


def _refused(message: JsonObject, parts: list[JsonObject]) -> str | None:
    known = PART_KINDS.get(str(message.get("kind")))
    if known is None:
        return "A message of an unknown kind stands"
    for part in parts:
        kind = str(part.get("part_kind"))
        if kind not in known:
            return f"A message part of the unknown kind {kind[:60]!r} stands"
        if kind == "tool-call" and not isinstance(part.get("args"), str | dict | None):
            return "A call whose arguments are neither an object nor a text stands"
        if kind in ("tool-call", "tool-return") and not isinstance(part.get("tool_name"), str):
            return f"A {kind} part without tool_name stands"
        if kind == "retry-prompt" and not _is_retry(part.get("content")):
            return "A retry prompt that is neither a text nor a list of errors stands"
        lacking = [name for name in REQUIRED_FIELDS.get(kind, ()) if name not in part]
        if lacking:
            return f"A {kind} part without {lacking[0]} stands"
        wrong = _wrong_field(part, kind)
        if wrong:
            return f"A {kind} part whose {wrong} cannot be read stands"
    wrong = "parts" if not isinstance(message.get("parts"), list) else _wrong_field(message, "message")
    return f"A message whose {wrong} cannot be read stands" if wrong else None


def _wrong_field(holder: JsonObject, kind: str) -> str | None:
    """The first field of another type than the library reads. Null is "not captured"."""
    for name, value in holder.items():
        is_readable = _FIELDS.get((kind, name)) or _FIELDS.get(("", name))
        if value is not None and is_readable is not None and not is_readable(value):
            return name
    return None


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str)


def _is_prompt(value: JsonValue) -> bool:
    """A text, or a list of texts and files."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str | dict) for each in value))


def _is_object(value: JsonValue) -> bool:
    return isinstance(value, dict)


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, list)


def _is_time(value: JsonValue) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or (isinstance(value, str) and bool(_TIME.fullmatch(value.strip())))


def _is_usage(value: JsonValue) -> bool:
    """Whole numbers; null is left out, as everywhere."""
    counts = [value.get(name) for name in _COUNTS] if isinstance(value, dict) else [""]
    return all(count is None or (isinstance(count, int | float) and count == int(count)) for count in counts)


def _is_one_of(*words: str) -> Callable[[JsonValue], bool]:
    return lambda value: value in words


_TIME = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T _t].+)?|-?[0-9]+([.][0-9]+)?")
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_TEXTS = (
    *("run_id", "conversation_id", "instructions", "id", "provider_name", "provider_url", "provider_response_id"),
    *("model_name", "model_id", "canonical_system", "history_digest", "signature", "tool_name", "tool_call_id"),
)
_OUTCOMES = ("success", "failed", "denied", "interrupted", "retried")
_FIELDS: dict[tuple[str, str], Callable[[JsonValue], bool]] = {
    **{("", name): _is_text for name in _TEXTS},
    **{("", name): _is_object for name in ("provider_details", "retry", "workspace_ref")},
    **{("", name): _is_list for name in ("failed_attempts", "citations")},
    **{(kind, "content"): _is_text for kind in ("text", "thinking", "system-prompt")},
    ("user-prompt", "content"): _is_prompt,
    ("message", "metadata"): _is_object,
    ("message", "usage"): _is_usage,
    ("message", "state"): _is_one_of("complete", "incomplete", "suspended", "interrupted"),
    ("message", "finish_reason"): _is_one_of("stop", "length", "content_filter", "tool_call", "error"),
    ("", "outcome"): _is_one_of(*_OUTCOMES),
    ("", "timestamp"): _is_time,
}
"""What Pydantic AI 2.68 reads in a field, by the kind of part; an empty kind is any."""


def _is_retry(content: JsonValue) -> bool:
    is_list = isinstance(content, list) and all(isinstance(each, dict) for each in content)
    return content is None or isinstance(content, str) or is_list
