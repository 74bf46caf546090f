"""Kit lines about what a run did outside: tools and retrievals."""

from __future__ import annotations

from sessions_app.core.judge.cut_values import is_cut
from sessions_app.core.judge.ends_of_the_loop import OF_THE_LOOP
from sessions_app.core.judge.grading import (
    Finding,
    captured,
    contradictory,
    graded,
    missing,
    partial,
    retrievals_of,
)
from sessions_app.core.judge.last_calls import asked_last, is_answered, waiting
from sessions_app.core.judge.reading import count, name_steps, own_tools, seen_messages, value_of
from sessions_app.core.payload import JsonValue, Payload, canonical_json
from sessions_app.core.run import WAITING, Run, Step, ToolCall


def retrieval(run: Run) -> Finding:
    calls = retrievals_of(run)
    if not calls:
        return captured("Not used: the run has no retrieval step.")
    recorded = [call.chunks for _, call in calls if call.chunks is not None]
    if not recorded:
        return missing(f"{count(len(calls), 'retrieval step')}, no chunks recorded.")
    chunks = [chunk for found in recorded for chunk in found]
    have = {
        "ids": sum(1 for chunk in chunks if chunk.chunk_id),
        "content": sum(1 for chunk in chunks if chunk.content is not None),
        "scores": sum(1 for chunk in chunks if chunk.score is not None),
    }
    facts = ", ".join(f"{name} on {n} of {len(chunks)}" for name, n in have.items())
    searches = f"{len(recorded)} of {count(len(calls), 'search', 'searches')} with chunks"
    is_whole = len(recorded) == len(calls) and all(n == len(chunks) for n in have.values())
    return (captured if is_whole else partial)(f"{searches}: {facts}.")


def tool_io(run: Run) -> Finding:
    tools = own_tools(run)
    if not run.steps:
        return missing("No steps were recorded.")
    if not tools:
        return captured("No tool was called.")
    wrong = contradicting_answers(run)
    if wrong:
        detail = f"The answer of {name_steps(wrong)} is not what the next request told the model."
        return contradictory(detail)
    asked, answered, expected = tool_counts(run)
    without = without_answer(len(tools) - expected)
    detail = f"arguments on {asked} of {count(len(tools), 'call')}, answers on {answered} of {expected}{without}."
    if expected and not answered:
        return missing(f"Tool {detail}")
    given = [step for step, call in tools if call.result is not None or step.error]
    raw = sum(1 for step in given if has_raw_exchange(step))
    bytes_kept = f" HTTP exchange kept byte for byte on {raw} of {len(given)}." if given else ""
    derived = " They were read from the text of Python objects." if "derived" in run.extra else ""
    have, total = asked + answered + raw, len(tools) + expected + len(given)
    return graded(f"Tool {detail}{bytes_kept}{derived}", have=have, total=total)


_CHANGED = frozenset(
    {"body_cut", "body_left_out", "request_body_cut", "request_body_left_out", "respelled", "cassette.respelled"}
)
"""What an exchange says where a body in it is not what went over the wire."""
_WITHOUT_BODY = (204, 304)


def has_raw_exchange(step: Step) -> bool:
    """Whether the bytes that a tool sent and got were kept, and not only the values that it took and gave."""
    http = step.http
    if http is None or http.method is None:
        return False
    is_answered = http.response_body is not None or http.status in _WITHOUT_BODY or "error" in http.extra
    return is_answered and not any(http.extra.get(name) for name in _CHANGED)


def tool_counts(run: Run) -> tuple[int, int, int]:
    """Calls with arguments, calls with an answer, and calls that must have had one: all that began and were not
    stopped from outside."""
    tools = own_tools(run)
    asked = sum(1 for _, call in tools if call.arguments is not None)
    never_ran = {step.index for step, _ in [*waiting(run), *_left_at_limit(run)]}
    owed = [(s, c) for s, c in tools if s.index not in never_ran and c.outcome not in _WITHOUT_ANSWER]
    answered = sum(1 for s, c in owed if c.result is not None or s.error or c.outcome == "crashed")
    return asked, answered, len(owed)


_WITHOUT_ANSWER = WAITING | {"denied", "interrupted"}


def without_answer(calls: int) -> str:
    """So that nobody looks for an answer that there never was."""
    return f"; {count(calls, 'call')} had no answer to record" if calls else ""


def _left_at_limit(run: Run) -> list[tuple[Step, ToolCall]]:
    """Calls that the last answer asked for when the loop ended the run by itself."""
    if run.error is None or run.error.type not in OF_THE_LOOP:
        return []
    return [(step, call) for step, call in asked_last(run) if not is_answered(step, call)]


def contradicting_answers(run: Run) -> list[Step]:
    """Tool steps whose result is not the one that the next request carries for the same call."""
    told = _told_answers(run)
    return [
        step
        for step, call in own_tools(run)
        if call.outcome in (None, "success") and _is_other(call, told.get(step.index))
    ]


def _told_answers(run: Run) -> dict[int, JsonValue]:
    """Step index to what the model was told; call ids may come again in later turns."""
    calls = iter([(step, call) for step, call in run.tool_calls if call.call_id])
    waiting: dict[str, int] = {}
    told: dict[int, JsonValue] = {}
    upcoming = next(calls, None)
    for seen in seen_messages(run):
        while upcoming is not None and upcoming[0].index < seen.step:
            waiting[upcoming[1].call_id or ""] = upcoming[0].index
            upcoming = next(calls, None)
        for part in seen.parts_of("tool-return"):
            index = waiting.pop(str(part.get("tool_call_id")), None)
            if index is not None and "content" in part and part.get("outcome") in (None, "success"):
                told[index] = {"content": part["content"]}
    return told


def _is_other(call: ToolCall, told: JsonValue) -> bool:
    if told is None or call.result is None or not (call.result.is_json or call.result.is_text):
        return False
    return answers_differ(call.result, told["content"])


def answers_differ(given: Payload, told: JsonValue, *, by_letter: bool = False) -> bool:
    """Of one that was cut short nothing can be said. `by_letter` counts the spaces of JSON in two texts."""
    are_texts = by_letter and given.is_text and isinstance(told, str)
    are_equal = given.value == told if are_texts else comparable_answer(value_of(given)) == comparable_answer(told)
    return not (are_equal or is_cut(given) or is_cut(Payload.of_json(told)))


def comparable_answer(value: JsonValue) -> bytes:
    """A list sent as JSON text is the same answer as the list."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        value = value_of(Payload.of_text(value))
    return canonical_json(value)
