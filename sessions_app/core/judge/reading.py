"""What the judges read a run with: values that never fail, messages in order, the main loop.

Many lines ask for the same: within `shared_values` it is found once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from sys import float_info

from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, nodes
from sessions_app.core.model_names import could_be_same_model
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import PYDANTIC_AI, SKIPPED, ModelCall, Run, Step, ToolCall, main_model_calls, main_steps
from sessions_app.core.shared_values import once_each

LOOP_CAUSES = frozenset({"validation_error", "unknown_tool", "unavailable_tool", "no_output"})
"""Causes of a retry that the agent's loop writes by itself; no tool ran."""
FAILED_OUTCOMES = frozenset({"failed", "crashed", "error"})
_TEXT_TYPE = re.compile(r"text/|application/([\w.+-]*\+)?(json|xml)\b")


# --- values ------------------------------------------------------------------------------------


def value_of(payload: Payload | None) -> JsonValue:
    """The parsed value; bytes that do not hold what their type says are read as text."""
    if payload is None:
        return None
    try:
        return payload.parsed
    except (ValueError, RecursionError):
        return payload.as_text()


def is_respelled(one: Payload, value: JsonValue, message: Payload, part: JsonObject, key: str) -> bool:
    """Whether a part of a message tells the same value with other digits in a number (`1.0` and `1.00`)."""
    is_special = one.is_json and any(_SPELLED.search(each.content) for each in (one, message))
    if not is_special or not same_json(one.value, value):
        return False
    parts = zip(object_of(message)["parts"], message.spelled["parts"], strict=True)
    return not any(each is part and same_json(one.spelled, spelled.get(key)) for each, spelled in parts)


_SPELLED = re.compile(rb"\d[.eE]|-0")


def text_of(payload: Payload | None) -> str | None:
    """The text, where the bytes are text; None for JSON values that are no string, and binary."""
    if payload is None:
        return None
    if payload.is_text or (not payload.is_json and _TEXT_TYPE.match(payload.media_type)):
        return payload.as_text()
    value = _value_or_none(payload)
    return value if isinstance(value, str) else None


def _value_or_none(payload: Payload) -> JsonValue:
    try:
        return payload.value
    except (ValueError, RecursionError):
        return payload.as_text()


def object_of(payload: Payload | None) -> JsonObject:
    """The value where it is an object, else an empty one."""
    return as_object(value_of(payload))


def as_object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def objects_in(value: JsonValue) -> list[JsonObject]:
    """Of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def listed_rows(value: JsonValue) -> list[JsonObject]:
    """The objects of a list, or of the lists in an object."""
    lists = value.values() if isinstance(value, dict) else [value]
    return [row for each in lists for row in objects_in(each)]


def leaves(value: JsonValue) -> Iterator[tuple[str | None, JsonValue]]:
    """Every scalar with the key that it stands under; lists hand on their key. Any depth."""
    waiting: list[tuple[str | None, JsonValue]] = [(None, value)]
    while waiting:
        key, item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.items())
        elif isinstance(item, list):
            waiting.extend((key, child) for child in item)
        else:
            yield key, item


def argument_key(call: ToolCall) -> bytes:
    """One spelling for equal arguments: key order, spaces and a JSON string do not count."""
    if call.arguments is None or value_of(call.arguments) in (None, "", {}):
        return b"{}"
    return call.arguments.canonical


def result_key(call: ToolCall) -> bytes | None:
    return None if call.result is None else call.result.content


def status_code(step: Step) -> int | None:
    """The HTTP status of a step, from the exchange or from an answer that carries one."""
    if step.http is not None and step.http.status is not None:
        return step.http.status
    if not isinstance(step.call, ToolCall):
        return None
    answer = object_of(step.call.result)
    if not answer:
        return None  # as mostly: whether steps failed is asked again and again
    found = (answer.get(name) for name in ("status_code", "http_status", "status"))
    return next((code for code in found if isinstance(code, int) and 100 <= code <= 599), None)


def http_words(step: Step) -> str:
    """As in ` (HTTP 503)`, to stand behind a name; empty without an error status."""
    status = status_code(step)
    return f" (HTTP {status})" if status is not None and status >= 400 else ""


def is_number(value: JsonValue) -> bool:
    """One that can be reckoned with: JSON has whole numbers that no float holds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def is_of_recorder(run: Run) -> bool:
    """Whether our own recorder for Pydantic AI wrote it: such a record is whole, with a step for each call of an
    answer, and the loop adds to the messages what tools gave and nothing else."""
    return run.source_format == "native" and run.agent.framework == PYDANTIC_AI


# --- the loop ----------------------------------------------------------------------------------


main_models = once_each(main_model_calls)
"""The model calls of the agent's own loop."""


@once_each
def own_tools(run: Run) -> list[tuple[Step, ToolCall]]:
    """Calls of tools; structured output is written as a call and is none."""
    return [(step, call) for step, call in run.tool_calls if not call.is_output]


def calls_made(run: Run) -> list[tuple[int | None, ToolCall]]:
    """Calls with their step; a session file may list calls that its messages do not hold."""
    if run.tool_calls:
        return [(step.index, call) for step, call in own_tools(run)]
    listed = run.extra.get("tool_calls")
    rows = listed if isinstance(listed, list) else []
    return [(None, _listed_call(row)) for row in rows if isinstance(row, dict)]


def _listed_call(row: JsonObject) -> ToolCall:
    arguments = None if "args" not in row else Payload.of_json(row["args"])
    return ToolCall(tool_name=str(row.get("tool")), arguments=arguments)


def is_framework_written(call: ToolCall) -> bool:
    """Whether the answer came from the agent's loop and no tool ran."""
    if call.is_output or (call.retry or {}).get("cause") in LOOP_CAUSES:
        return True
    return (text_of(call.result) or "").startswith(SKIPPED)


def ended_in_error(step: Step) -> bool:
    failed = isinstance(step.call, ToolCall) and step.call.outcome in FAILED_OUTCOMES
    return step.error is not None or failed or (status_code(step) or 0) >= 400


def has_answer(run: Run) -> bool:
    """Whether a run ended with an answer. Of an output beside an error, or beside calls that stand open, nobody knows
    what it answers."""
    return run.status == "ok" and run.output is not None and text_of(run.output) != ""


# --- messages ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenMessage:
    """A message and the step at which it first stood in the record."""

    step: int
    """0 for earlier turns; one more than the last step for what the loop added at the end."""
    message: JsonObject
    is_answer: bool = False

    @property
    def parts(self) -> list[JsonObject]:
        parts = self.message.get("parts")
        return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []

    def parts_of(self, *kinds: str) -> list[JsonObject]:
        return [part for part in self.parts if part.get("part_kind") in kinds]


@once_each
def seen_messages(run: Run) -> list[SeenMessage]:
    """Each message of the record once, in the order in which it appeared."""
    seen: set[str] = set()
    found = _added(run.prior, seen, step=0)
    for step, call in run.model_calls:
        found += _added(call.history, seen, step=step.index)
        if call.response is not None:
            found.append(seen_message(call.response, step=step.index, is_answer=True))
            seen.add(_digest_after(call))
    return found + _added(run.final, seen, step=len(run.steps) + 1)


@once_each
def first_requests(run: Run) -> list[SeenMessage]:
    """What was added before the first model call of the agent's own loop."""
    seen = {node.digest for node in nodes(run.prior)}
    steps = ((step, step.call) for step in main_steps(run))
    first = next(((s, call) for s, call in steps if isinstance(call, ModelCall)), None)
    return [] if first is None else _added(first[1].history, seen, step=first[0].index)


def _digest_after(call: ModelCall) -> str:
    after = call.output_history
    return "" if after is None else after.digest


def _added(history: History | None, seen: set[str], *, step: int) -> list[SeenMessage]:
    new: list[SeenMessage] = []
    for node in nodes(history):
        if node.digest in seen:
            break
        seen.add(node.digest)
        new.append(seen_message(node.message, step=step))
    return new[::-1]


def seen_message(payload: Payload, *, step: int, is_answer: bool = False) -> SeenMessage:
    value = _value_or_none(payload)
    message = value if isinstance(value, dict) else {"text": value}
    return SeenMessage(step=step, message=message, is_answer=is_answer)


def ends_at_answer(call: ModelCall) -> bool:
    """Whether a request ends with words of the model, and with no call that a tool answers."""
    newest = seen_message(call.history.message, step=0) if call.history else None
    if newest is None or newest.message.get("kind") != "response":
        return False
    return all(part.get("part_kind") in ("text", "thinking") for part in newest.parts)


def user_turns(history: History | None) -> int:
    """How many messages of a user stand in a history."""
    return sum(1 for node in nodes(history) if _has_prompt(node.message))


def _has_prompt(payload: Payload) -> bool:
    return bool(seen_message(payload, step=0).parts_of("user-prompt"))


# --- words -------------------------------------------------------------------------------------


TIMES = "\N{MULTIPLICATION SIGN}"


def step_name(step: Step) -> str:
    return f"step {step.index} ({step.name})"


def join_words(words: list[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def name_steps(steps: list[Step], limit: int = 3) -> str:
    """`step 3 (lookup_order)`, several with commas, and how many more there are."""
    shown = [step_name(step) for step in steps[:limit]]
    more = len(steps) - limit
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def count(number: int, word: str, plural: str | None = None) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {plural or word + 's'}"


def contradicting_model(run: Run) -> str | None:
    """The model that the first request names, where it is another one than the run names."""
    asked = next((call.model for _, call in main_models(run) if call.model), None)
    return None if could_be_same_model(run.model, asked) else asked
